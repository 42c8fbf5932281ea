"""The marker: the progress of a run's checkpoints in the topic, written in the same transactions as their messages.

It is an offset with metadata, committed for a consumer group of the run. So marker and messages appear together or not at all,
and a repeated commit can read which messages are in the topic.

>>> marker = CommitMarker(7, chunks=2, complete=False)
>>> CommitMarker.parsed(marker.checkpoint, marker.metadata("ab12"), "ab12") == marker
True
>>> marker.done_of(6), marker.done_of(7), marker.done_of(8)
(None, 2, 0)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....engine.errors import ConnectorError
from ..cluster import KafkaCluster

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

PARTITION = 0
"""The partition for which the group commits its offset: a broker rejects one that doesn't exist."""


ANSWER_SECONDS = 10.0
"""The longest wait for one response in a commit."""


@dataclass(frozen=True, slots=True)
class CommitMarker:
    """A record that the first `chunks` chunks of `checkpoint`, and all earlier ones, are in the topic. `complete`: there are no
    more chunks.
    """

    checkpoint: int
    chunks: int = 0
    complete: bool = True

    def done_of(self, checkpoint: int) -> int | None:
        """Return how many chunks of a checkpoint are in the topic; None if all are."""
        if self.checkpoint == checkpoint:
            return None if self.complete else self.chunks
        return None if self.checkpoint > checkpoint else 0

    def metadata(self, run: str) -> str:
        """Return the metadata to commit with the offset, which is the checkpoint's number."""
        return json.dumps({"run": run, "checkpoint": self.checkpoint, "chunks": self.chunks, "complete": self.complete})

    @classmethod
    def parsed(cls, offset: int, metadata: str | None, run: str) -> CommitMarker:
        """Parse the result of `metadata`. Raises ConnectorError for metadata that a marker of this run can't have."""
        try:
            fields = json.loads(metadata or "")
            found = cls(int(fields["checkpoint"]), int(fields["chunks"]), bool(fields["complete"]))
            if fields["run"] == run and found.checkpoint == offset:
                return found
        except (ValueError, TypeError, KeyError):
            pass
        raise ConnectorError(f"the marker at offset {offset} of run {run} is {metadata!r}, which evenflow did not write")


def producer_id(sink: str) -> str:
    """Return the transactional id that commits for an operator: the same in all runs of its job, so that the newest fences the
    others.
    """
    return f"evenflow-{sink}"


def group_of(producer: str, run: str) -> str:
    """Return the consumer group that holds the marker of a run."""
    return f"{producer}-{run}"


def position(topic: str, marker: CommitMarker, run: str) -> TopicPartition:
    """Return the marker as an offset to commit."""
    from confluent_kafka import TopicPartition

    return TopicPartition(topic, PARTITION, marker.checkpoint, metadata=marker.metadata(run))


@contextmanager
def marker_consumer(cluster: KafkaCluster, group: str) -> Iterator[Consumer]:
    """Open a consumer for the offsets of a group. It doesn't join the group and reads no messages."""
    consumer = cluster.consumer(group_id=group, isolation_level="read_committed", enable_auto_commit=False)
    try:
        yield consumer
    finally:
        consumer.close()


def read_marker(consumer: Consumer, topic: str, run: str) -> CommitMarker | None:
    """Read the marker of a run; return None if there is none. Waits for the end of a transaction that writes one.

    Raises KafkaException, and ConnectorError for an offset that is no marker.
    """
    from confluent_kafka import KafkaException, TopicPartition

    found = consumer.committed([TopicPartition(topic, PARTITION)], ANSWER_SECONDS)[0]
    if found.error is not None:
        raise KafkaException(found.error)
    return CommitMarker.parsed(found.offset, found.metadata, run) if found.offset >= 0 else None


def write_first_marker(cluster: KafkaCluster, topic: str, producer: str, run: str) -> None:
    """Write a marker at the start of a run, before any checkpoint: from then on, a missing marker was lost. Raises KafkaException.

    No transaction is used, because it would fence a running job of the same name.
    """
    from confluent_kafka import KafkaException

    with marker_consumer(cluster, group_of(producer, run)) as consumer:
        committed = consumer.commit(offsets=[position(topic, CommitMarker(0), run)], asynchronous=False)
        for each in committed or ():
            if each.error is not None:
                raise KafkaException(each.error)
