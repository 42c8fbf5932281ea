"""A Kafka broker for tests, one of their own or the one that EVENFLOW_KAFKA names, and operations on its topics."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from patience import patience

from evenflow.bench.kafka import broker
from evenflow.bench.kafka.topics import Record


def kafka_broker() -> AbstractContextManager[str]:
    """Yield the address of a broker that is ready; unless EVENFLOW_KAFKA names it, it ends with the block."""
    return broker.kafka_broker(os.environ.get("EVENFLOW_KAFKA"))


def make_topic(bootstrap: str, partitions: int = 1) -> str:
    """Create a topic with a unique name."""
    topic = f"test-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        made.result(timeout=patience(30))
    return topic


def fill(bootstrap: str, topic: str, records: Mapping[int, Sequence[Record]], **more: Any) -> None:
    """Append records to partitions, and wait until the broker has them. `more` are arguments of `Producer.produce`."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    for partition, rows in records.items():
        for key, value in rows:
            producer.produce(topic, value, key, partition, **more)
            producer.poll(0)
    assert producer.flush(patience(60)) == 0
