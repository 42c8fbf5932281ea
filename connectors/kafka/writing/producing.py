"""Exactly-once production of staged messages: each chunk shares a transaction with the marker that records it.

Invariant: a session reads a marker only after `init_transactions`, which fences every earlier producer and ends its transaction.
So the marker shows what is in the topic, and no other producer can add to it during this session. After any error the session is
dropped, and the next one determines from the marker what was committed, as in Materialize, whose marker is a topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ....engine.errors import ConnectorError
from ..cluster import KafkaCluster
from .marker import ANSWER_SECONDS, CommitMarker, group_of, marker_consumer, position, read_marker
from .sending import Sender, final, kafka_error

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

PATIENCE = 15.0
"""Seconds without a committed chunk after which the next error fails the commit."""

PAUSE = 0.2
"""Seconds before the next try."""

Chunk = Callable[[], Iterable[pa.RecordBatch]]
"""A function that returns the messages of a chunk, called each time that it is produced."""


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """The destination of the messages. `producer`: the transactional id."""

    topic: str
    producer: str
    partitioner: str
    most_bytes: int

    def group(self, run: str) -> str:
        """Return the consumer group that holds the marker of a run."""
        return group_of(self.producer, run)


class Committer:
    """Commits the checkpoints of one sink. Used by one thread. `alive` is called regularly during a commit."""

    def __init__(
        self,
        cluster: KafkaCluster,
        target: TopicTarget,
        alive: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster, self._target, self._alive, self._clock, self._pause = cluster, target, alive, clock, pause
        self._session: _Session | None = None

    def commit(self, run: str, checkpoint: int, chunks: Sequence[Chunk], *, begun: bool) -> None:
        """Produce the chunks of a run's checkpoint that are not in the topic yet, and then update the marker.

        `begun`: True if the run wrote a marker at its start, so that a missing one was lost. Raises ConnectorError.
        """
        from confluent_kafka import KafkaException

        until = self._clock() + PATIENCE

        def got_on() -> None:
            nonlocal until
            until = self._clock() + PATIENCE

        while True:
            self._alive()
            try:
                self._commit(run, checkpoint, chunks, got_on, begun=begun)
            except (KafkaException, SystemError) as refused:
                error = self._cause(kafka_error(refused, self._session.producer if self._session is not None else None))
                self.close()
                if final(error) or self._clock() >= until:
                    raise self._cluster.error(
                        error, f"checkpoint {checkpoint} can't be committed to topic `{self._target.topic}`"
                    ) from refused
                self._pause(PAUSE)
            except BaseException:
                self.close()
                raise
            else:
                return

    def close(self) -> None:
        """Drop the session; the next commit begins another. An open transaction never becomes visible."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _cause(self, error: KafkaError) -> KafkaError:
        """Return the cause of a time-out if the client knows it, such as an unreachable broker or a wrong password."""
        if self._session is None:
            return error
        worst = self._session.problems()
        return worst if worst is not None and error.name() in ("_TIMED_OUT", "_MSG_TIMED_OUT") else error

    def _commit(self, run: str, checkpoint: int, chunks: Sequence[Chunk], got_on: Callable[[], None], *, begun: bool) -> None:
        if self._session is None:
            self._session = _Session(self._cluster, self._target, self._alive)
            self._session.begin()
        marker = self._session.marker(run)
        if marker is None and begun and chunks:
            raise ConnectorError(self._lost(run, checkpoint))
        done = marker.done_of(checkpoint) if marker is not None else 0
        if done is None:
            return
        for number, chunk in enumerate(chunks[done:], done + 1):
            self._session.commit(run, CommitMarker(checkpoint, number, number == len(chunks)), chunk())
            got_on()
        if not chunks:
            self._session.commit(run, CommitMarker(checkpoint), ())

    def _lost(self, run: str, checkpoint: int) -> str:
        group = self._target.group(run)
        return (
            f"operator `{self._cluster.operator}`: the marker of this run, the committed offset of the group `{group}`, is missing: it was "
            "deleted, or has expired (offsets.retention.minutes of the brokers, 7 days by default). So it can't be told whether the rows "
            f"of checkpoint {checkpoint} are in topic `{self._target.topic}`. Look for them in the topic. If they are missing, or may "
            "be written "
            'twice, begin from the checkpoint\'s folder with guarantee="at_least_once", which writes them; if not, start without it'
        )


class _Session:
    """One producer, from its `init_transactions` to the first error. All methods may raise KafkaException."""

    def __init__(self, cluster: KafkaCluster, target: TopicTarget, alive: Callable[[], None]) -> None:
        self._cluster, self._target = cluster, target
        self._sender = Sender(cluster, target.topic, target.partitioner, target.most_bytes, alive, transactional_id=target.producer)
        self.producer = self._sender.producer
        self._groups: dict[str, Any] = {}
        self._markers: dict[str, CommitMarker | None] = {}

    def problems(self) -> KafkaError | None:
        """Return the worst problem that the client reported."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException, SystemError):
            self.producer.poll(0)  # calls `problems`
        return self._sender.problems.worst

    def begin(self) -> None:
        """Fence earlier producers."""
        self.producer.init_transactions(ANSWER_SECONDS)

    def marker(self, run: str) -> CommitMarker | None:
        """Return the marker of a run; None if there is none."""
        if run not in self._groups:
            with marker_consumer(self._cluster, self._target.group(run)) as consumer:
                self._markers[run] = read_marker(consumer, self._target.topic, run)
                self._groups[run] = consumer.consumer_group_metadata()
        return self._markers[run]

    def commit(self, run: str, marker: CommitMarker, messages: Iterable[pa.RecordBatch]) -> None:
        """Commit the messages and the run's marker, which must have been read, in one transaction."""
        producer = self.producer
        producer.begin_transaction()
        for batch in messages:
            self._sender.send(batch)
        self._sender.flush()
        producer.send_offsets_to_transaction([position(self._target.topic, marker, run)], self._groups[run], ANSWER_SECONDS)
        producer.commit_transaction(ANSWER_SECONDS)
        self._markers[run] = marker

    def close(self) -> None:
        self._sender.close()
