"""Values of some records of a topic, from which a source infers the columns."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING

from .cluster import REPLY_SECONDS, KafkaCluster
from .reading import Extent
from .topics import Topics

if TYPE_CHECKING:
    from confluent_kafka import Consumer

MOST_RECORDS = 1_000
"""Records of each partition that are looked at."""

MOST_PARTITIONS = 16
"""Partitions that are looked at."""


def sample(
    cluster: KafkaCluster, topics: Topics, extents: Mapping[int, Extent], ends: Mapping[int, int], group_id: str
) -> list[bytes | None]:
    """Values of the first records that will be read of each partition, or of the last ones where there is none to read yet."""
    filled = [ordinal for ordinal, extent in extents.items() if ends[ordinal] > extent.first][:MOST_PARTITIONS]
    consumer = cluster.consumer(
        group_id=group_id,
        enable_auto_commit=False,
        enable_partition_eof=True,
        isolation_level="read_committed",
        auto_offset_reset="error",
    )
    try:
        return [value for ordinal in filled for value in _values(consumer, topics, ordinal, extents[ordinal], ends[ordinal])]
    finally:
        consumer.close()


def _values(consumer: Consumer, topics: Topics, ordinal: int, extent: Extent, end: int) -> list[bytes | None]:
    """Waits for a broker's answer at most, not for records to come: there are some, unless their transaction was aborted."""
    from confluent_kafka import TopicPartition

    begin = extent.start if extent.start < end else max(extent.first, end - MOST_RECORDS)
    place = TopicPartition(*topics.at(ordinal), begin)
    consumer.assign([place])
    values: list[bytes | None] = []
    until = monotonic() + REPLY_SECONDS
    while len(values) < MOST_RECORDS and monotonic() < until:
        messages = consumer.consume(MOST_RECORDS - len(values), 0.1)
        values += [message.value() for message in messages if message.error() is None]
        if any(message.error() is not None for message in messages):
            break  # the end; what is wrong with the partition the reader will say
    consumer.unassign()
    return values
