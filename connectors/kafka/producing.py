"""Producing staged messages exactly once: each chunk in a transaction with the marker that says so.

Invariant: a session reads a marker only after `init_transactions`, which fences every producer before it and ends its transaction; so the
marker tells what is in the topic, and nobody else can add to it while this session goes on. Whatever goes wrong, the session is dropped,
and the next one finds out what has become of it, as in Materialize, whose marker is a topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...engine.errors import ConnectorError
from .cluster import KafkaCluster
from .marker import ANSWER_SECONDS, Marker, group_of, marker_consumer, position, read_marker
from .sending import Sender, final, kafka_error

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

PATIENCE = 15.0
"""Seconds without a chunk that got through, after which a commit fails with its next error."""

PAUSE = 0.2
"""Seconds before the next try."""

Chunk = Callable[[], Iterable[pa.RecordBatch]]
"""Gives the messages of a chunk, each time that it is produced."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the messages go. `producer`: the transactional id. `group`: the group of a run's marker, but for the run at its end."""

    topic: str
    producer: str
    partitioner: str
    most_bytes: int

    def group(self, run: str) -> str:
        """The consumer group that holds the marker of a run."""
        return group_of(self.producer, run)


class Committer:
    """Commits the checkpoints of one sink. Used by one thread. `alive` is called now and then while it is at work."""

    def __init__(
        self,
        cluster: KafkaCluster,
        target: Target,
        alive: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster, self._target, self._alive, self._clock, self._pause = cluster, target, alive, clock, pause
        self._session: _Session | None = None

    def commit(self, run: str, checkpoint: int, chunks: Sequence[Chunk], *, begun: bool) -> None:
        """Put the chunks of a run's checkpoint into the topic, those that are not there yet; then the marker says so.

        `begun`: the run has written a marker when it began, so that none means that it was lost. Raises ConnectorError.
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
        """Drop the session; the next commit begins another. A transaction that it had open never becomes visible."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _cause(self, error: KafkaError) -> KafkaError:
        """What a time-out comes from, if the client knows: a broker that is gone, a password that was refused."""
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
            self._session.commit(run, Marker(checkpoint, number, number == len(chunks)), chunk())
            got_on()
        if not chunks:
            self._session.commit(run, Marker(checkpoint), ())

    def _lost(self, run: str, checkpoint: int) -> str:
        group = self._target.group(run)
        return (
            f"operator `{self._cluster.operator}`: the marker of this run, the committed offset of the group `{group}`, is gone: it was "
            "deleted, or has expired (offsets.retention.minutes of the brokers, 7 days by default). So it can't be told whether the rows "
            f"of checkpoint {checkpoint} are in topic `{self._target.topic}`. Look there for them. If they are missing, or may come "
            'twice, begin from the checkpoint\'s folder with guarantee="at_least_once", which writes them; if not, begin anew without it'
        )


class _Session:
    """One producer, from its `init_transactions` to the first thing that goes wrong. Everything here may raise KafkaException."""

    def __init__(self, cluster: KafkaCluster, target: Target, alive: Callable[[], None]) -> None:
        self._cluster, self._target = cluster, target
        self._sender = Sender(cluster, target.topic, target.partitioner, target.most_bytes, alive, transactional_id=target.producer)
        self.producer = self._sender.producer
        self._groups: dict[str, Any] = {}
        self._markers: dict[str, Marker | None] = {}

    def problems(self) -> KafkaError | None:
        """The worst that the client had to cope with."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException, SystemError):
            self.producer.poll(0)  # calls `problems`
        return self._sender.problems.worst

    def begin(self) -> None:
        """Fence whoever produced before."""
        self.producer.init_transactions(ANSWER_SECONDS)

    def marker(self, run: str) -> Marker | None:
        """Of a run; None if there is none."""
        if run not in self._groups:
            with marker_consumer(self._cluster, self._target.group(run)) as consumer:
                self._markers[run] = read_marker(consumer, self._target.topic, run)
                self._groups[run] = consumer.consumer_group_metadata()
        return self._markers[run]

    def commit(self, run: str, marker: Marker, messages: Iterable[pa.RecordBatch]) -> None:
        """One transaction: the messages, and the marker of a run whose marker was read."""
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
