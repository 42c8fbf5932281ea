"""Topics of a benchmark: made, filled with rows as JSON, read to their ends, and deleted."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from ...connectors.kafka.cluster import KafkaCluster
from ...connectors.kafka.values.encoding import Encoding
from ..errors import BenchmarkError

PARTITIONS = 4
SECONDS = 60.0
"""The longest wait for the broker."""

MEMORY_KILOBYTES = 1 << 16
"""Messages that may wait in the producer."""

TAKES_ALL: Final = {"receive.message.max.bytes": 2_000_000_000}
"""An option for readers: noida-db answers with all that a partition has, whatever it is asked for."""

Record = tuple[bytes | None, bytes | None]
"""A key and a value."""


@contextmanager
def topics(bootstrap: str, names: Sequence[str], partitions: int = PARTITIONS) -> Iterator[dict[str, str]]:
    """New topics by name, each called by a name that nobody else has; they are deleted when the block ends."""
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
    """Rows as JSON objects; returns how many.

    With `key`, a column, the rows of a key are in one partition; without it batches go to the partitions in turn. Either way the
    rows of a partition are in the order of the batches. Raises BenchmarkError if the broker doesn't take them.
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
        raise BenchmarkError(f"the broker at {bootstrap} did not take all records within {SECONDS:g} s")
    return rows


def add_partitions(bootstrap: str, topic: str, count: int) -> None:
    """Make it `count` partitions."""
    from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]  # its stub forgets to export it

    admin = cluster_at(bootstrap).admin()  # the answer doesn't come without it
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(SECONDS)


def records_of(bootstrap: str, topic: str, isolation: str = "read_committed") -> dict[int, list[Record]]:
    """The records of each partition up to its end, as a reader of that isolation level sees them.

    Raises BenchmarkError if an end isn't reached, KafkaException if the broker refuses.
    """
    from confluent_kafka import KafkaException, TopicPartition

    consumer = cluster_at(bootstrap).consumer(
        group_id=f"bench-{uuid.uuid4().hex}",
        isolation_level=isolation,
        enable_partition_eof=True,
        enable_auto_commit=False,
        receive_message_max_bytes=TAKES_ALL["receive.message.max.bytes"],
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
    """The broker, for clients with nothing but their own options."""
    return KafkaCluster(bootstrap, {}, "bench")
