"""The marker: how far a run's checkpoints are in the topic, written in the same transactions as their messages.

It is an offset that a consumer group of the run has committed, with metadata. So marker and messages appear together or not at all, and
whoever repeats a commit reads what is there already.

>>> marker = Marker(7, chunks=2, complete=False)
>>> Marker.parsed(marker.checkpoint, marker.metadata("ab12"), "ab12") == marker
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

from ...engine.errors import ConnectorError
from .cluster import KafkaCluster

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

PARTITION = 0
"""The partition of the topic for which the group commits its offset: a broker refuses one that isn't there."""


ANSWER_SECONDS = 10.0
"""The longest wait for one answer in a commit."""


@dataclass(frozen=True, slots=True)
class Marker:
    """The first `chunks` chunks of `checkpoint` are in the topic, and everything before it; `complete`: the checkpoint has no more."""

    checkpoint: int
    chunks: int = 0
    complete: bool = True

    def done_of(self, checkpoint: int) -> int | None:
        """How many chunks of a checkpoint are in the topic; None if all are."""
        if self.checkpoint == checkpoint:
            return None if self.complete else self.chunks
        return None if self.checkpoint > checkpoint else 0

    def metadata(self, run: str) -> str:
        """What is committed beside the offset, which is the checkpoint."""
        return json.dumps({"run": run, "checkpoint": self.checkpoint, "chunks": self.chunks, "complete": self.complete})

    @classmethod
    def parsed(cls, offset: int, metadata: str | None, run: str) -> Marker:
        """What `metadata` gave. Raises ConnectorError for what a marker of this run can't be."""
        try:
            fields = json.loads(metadata or "")
            found = cls(int(fields["checkpoint"]), int(fields["chunks"]), bool(fields["complete"]))
            if fields["run"] == run and found.checkpoint == offset:
                return found
        except (ValueError, TypeError, KeyError):
            pass
        raise ConnectorError(f"the marker at offset {offset} of run {run} is {metadata!r}, which evenflow did not write")


def producer_id(sink: str) -> str:
    """The transactional id of whoever commits for an operator: the same in all runs of its job, so that the newest fences the others."""
    return f"evenflow-{sink}"


def group_of(producer: str, run: str) -> str:
    """The consumer group that holds the marker of a run."""
    return f"{producer}-{run}"


def position(topic: str, marker: Marker, run: str) -> TopicPartition:
    """The marker as the offset that is committed."""
    from confluent_kafka import TopicPartition

    return TopicPartition(topic, PARTITION, marker.checkpoint, metadata=marker.metadata(run))


@contextmanager
def marker_consumer(cluster: KafkaCluster, group: str) -> Iterator[Consumer]:
    """A consumer for the offsets of a group. It joins nothing and reads no messages."""
    consumer = cluster.consumer(group_id=group, isolation_level="read_committed", enable_auto_commit=False)
    try:
        yield consumer
    finally:
        consumer.close()


def read_marker(consumer: Consumer, topic: str, run: str) -> Marker | None:
    """The marker of a run; None if there is none. It waits for the end of a transaction that writes one.

    Raises KafkaException, and ConnectorError for an offset that is no marker.
    """
    from confluent_kafka import KafkaException, TopicPartition

    found = consumer.committed([TopicPartition(topic, PARTITION)], ANSWER_SECONDS)[0]
    if found.error is not None:
        raise KafkaException(found.error)
    return Marker.parsed(found.offset, found.metadata, run) if found.offset >= 0 else None


def write_first_marker(cluster: KafkaCluster, topic: str, producer: str, run: str) -> None:
    """Say that a run begins, before any of its checkpoints: from now on a marker that is missing was lost. Raises KafkaException.

    It needs no transaction: a transaction would fence a job of the same name that runs.
    """
    from confluent_kafka import KafkaException

    with marker_consumer(cluster, group_of(producer, run)) as consumer:
        committed = consumer.commit(offsets=[position(topic, Marker(0), run)], asynchronous=False)
        for each in committed or ():
            if each.error is not None:
                raise KafkaException(each.error)
