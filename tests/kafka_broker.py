"""A Kafka broker for tests, one of their own or the one that EVENFLOW_KAFKA names, and what they do with its topics."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from evenflow.bench.kafka import broker

Record = tuple[bytes | None, bytes | None]
"""A key and a value."""


def kafka_broker() -> AbstractContextManager[str]:
    """The address of a broker that is ready; unless EVENFLOW_KAFKA names one, it ends with the block."""
    return broker.kafka_broker(os.environ.get("EVENFLOW_KAFKA"))


def make_topic(bootstrap: str, partitions: int = 1) -> str:
    """A new topic with a name of its own."""
    topic = f"test-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        made.result(timeout=30)
    return topic


def add_partitions(bootstrap: str, topic: str, count: int) -> None:
    """Make it `count` partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})  # the answer doesn't come without it
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(timeout=30)


def fill(bootstrap: str, topic: str, records: Mapping[int, Sequence[Record]], **more: Any) -> None:
    """Append records to partitions, and wait until the broker has them. `more` are arguments of `Producer.produce`."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    for partition, rows in records.items():
        for key, value in rows:
            producer.produce(topic, value, key, partition, **more)
            producer.poll(0)
    assert producer.flush(60) == 0


def records_of(bootstrap: str, topic: str, isolation: str = "read_committed") -> dict[int, list[Record]]:
    """The records of each partition up to its end, as a reader of that isolation level sees them."""
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": f"test-{uuid.uuid4().hex}",
        "isolation.level": isolation,
        "enable.partition.eof": True,
    }
    consumer = Consumer({**config, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        found: dict[int, list[Record]] = {partition: [] for partition in partitions}
        at_end: set[int] = set()
        until = time.monotonic() + 60
        while len(at_end) < len(partitions):
            assert time.monotonic() < until, f"only the partitions {at_end} of {topic} could be read to their ends"
            for message in consumer.consume(10_000, 0.1):
                error, partition = message.error(), message.partition()
                assert partition is not None
                if error is None:
                    found[partition].append((message.key(), message.value()))
                elif error.name() == "_PARTITION_EOF":
                    at_end.add(partition)
                else:
                    raise KafkaException(error)
        return found
    finally:
        consumer.close()
