"""Topics of a benchmark: made, filled with rows as JSON, and deleted."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from ...connectors.kafka.cluster import KafkaCluster
from ...connectors.kafka.encoding import Encoding
from ..errors import BenchmarkError

PARTITIONS = 4
SECONDS = 60.0
"""The longest wait for the broker."""

MEMORY_KILOBYTES = 1 << 16
"""Messages that may wait in the producer."""


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

    With `key`, a column, the rows of a key are in one partition; without it batches go to the partitions in turn. Either way the rows of a
    partition are in the order of the batches. Raises BenchmarkError if the broker doesn't take them.
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


def cluster_at(bootstrap: str) -> KafkaCluster:
    """The broker, for clients with nothing but their own options."""
    return KafkaCluster(bootstrap, {}, "bench")
