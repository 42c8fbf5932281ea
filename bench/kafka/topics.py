"""Topics of a benchmark: creates them, fills them with rows as JSON, reads them to their ends, and deletes them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from ...connectors.kafka.cluster import KafkaCluster
from ...connectors.kafka.values.encoding import Encoding
from ..harness.errors import BenchmarkError

PARTITIONS = 4
SECONDS = 60.0
"""The longest wait for the broker."""

MEMORY_KILOBYTES = 1 << 16
"""Kilobytes of messages that may wait in the producer."""

READS_ALL: Final = {"receive.message.max.bytes": 2_000_000_000}
"""An option for readers: noida-db responds with all records of a partition, whatever the request."""

Record = tuple[bytes | None, bytes | None]
"""A key and a value."""


@contextmanager
def topics(bootstrap: str, names: Sequence[str], partitions: int = PARTITIONS) -> Iterator[dict[str, str]]:
    """Create topics with unique names, and delete them when the block ends; returns the unique names."""
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # its stub forgets to export it

    admin, run = cluster_at(bootstrap).admin(), uuid.uuid4().hex[:8]
    made = {name: f"evenflow-bench-{run}-{name}" for name in names}
    for one in admin.create_topics([NewTopic(topic, partitions, 1) for topic in made.values()]).values():
        one.result(SECONDS)
    try:
        yield made
    finally:
        for one in admin.delete_topics(list(made.values())).values():
            one.result(SECONDS)


def produce(bootstrap: str, topic: str, batches: Iterable[pa.RecordBatch], key: str | None = None, partitions: int = PARTITIONS) -> int:
    """Write rows as JSON objects; returns how many.

    With `key`, a column, the rows of a key are in one partition; without it batches go to the partitions in turn. Either way the rows of a
    partition are in the order of the batches. Raises BenchmarkError if the broker doesn't accept them.
    """
    producer = cluster_at(bootstrap).producer(
        acks="all", enable_idempotence=True, linger_ms=20, partitioner="murmur2_random", queue_buffering_max_kbytes=MEMORY_KILOBYTES
    )
    encoding, rows = Encoding("json", key), 0
    for turn, batch in enumerate(batches):
        place: dict[str, Any] = {} if key is not None else {"partition": turn % partitions}
        messages = encoding.messages(batch)
        for value, name in zip(messages.column("value").to_pylist(), messages.column("key").to_pylist(), strict=True):
            while True:
                try:
                    producer.produce(topic, value, name, **place)
                    break
                except BufferError:
                    producer.poll(0.01)
        producer.poll(0)
        rows += batch.num_rows
    if producer.flush(SECONDS):
        raise BenchmarkError(f"the broker at {bootstrap} did not accept all records within {SECONDS:g} s")
    return rows


def add_partitions(bootstrap: str, topic: str, count: int) -> None:
    """Increase the number of partitions to `count`."""
    from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]  # its stub forgets to export it

    admin = cluster_at(bootstrap).admin()  # the answer doesn't come without it
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(SECONDS)


def records_of(bootstrap: str, topic: str, isolation: str = "read_committed") -> dict[int, list[Record]]:
    """Return the records of each partition up to its end, as a reader of that isolation level sees them.

    Raises BenchmarkError if it doesn't reach an end, KafkaException if the broker refuses.
    """
    from confluent_kafka import KafkaException, TopicPartition

    consumer = cluster_at(bootstrap).consumer(
        group_id=f"bench-{uuid.uuid4().hex}",
        isolation_level=isolation,
        enable_partition_eof=True,
        enable_auto_commit=False,
        receive_message_max_bytes=READS_ALL["receive.message.max.bytes"],
    )
    try:
        partitions = consumer.list_topics(topic, timeout=SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        found: dict[int, list[Record]] = {partition: [] for partition in partitions}
        at_end: set[int] = set()
        until = time.monotonic() + SECONDS
        while len(at_end) < len(partitions):
            if time.monotonic() > until:
                raise BenchmarkError(f"only the partitions {at_end} of {topic} could be read to their ends")
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


def cluster_at(bootstrap: str) -> KafkaCluster:
    """Return the cluster of a broker, for clients with their own options only."""
    return KafkaCluster(bootstrap, {}, "bench")
