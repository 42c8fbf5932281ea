"""The reader of one worker: takes records from the client's queue, converts them to rows, and tracks offsets and event time.

It joins no group: its index determines its partitions, and its position, not the broker, determines where it resumes. The client
fetches ahead in its own threads; a poll takes what has arrived and never waits.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....engine.batch import Batch, Times
from ....engine.errors import ConnectorError
from ....engine.source import SourceReader, SplitFigures
from ...quiet import CLOCKS, Clocks
from ..cluster import Problems
from ..values.decoding import decoded
from ..values.record_columns import record_times
from .dead_letters import DeadLetters
from .partitions import MOST_HELD, Partition, Partitions
from .position import At, KafkaPosition
from .read_plan import ReadPlan
from .watch import Look, PartitionWatch, recreated

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

_LOG = logging.getLogger(__name__)

LOOK_EVERY = 1.0
"""Seconds between two looks at the partitions' ends."""

READY_SECONDS = 0.005
"""Seconds for which a reader without records sleeps: a poll of an empty queue takes microseconds."""

EXTENT_SECONDS = 10.0
"""The longest wait for the beginning and end of a partition whose offset was deleted: the source stops, or continues elsewhere."""

OFTEN = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "_MAX_POLL_EXCEEDED"})
"""Temporary errors: the client tries again. The watch decides when a broker has been unreachable for too long."""


class KafkaReader(SourceReader):
    """A reader of the partitions whose ordinals fit `index` and `parallelism`."""

    def __init__(
        self,
        plan: ReadPlan,
        index: int,
        parallelism: int,
        consumer: Consumer,
        watch: PartitionWatch,
        problems: Problems,
        clocks: Clocks = CLOCKS,
    ) -> None:
        self._problems = problems
        self._plan, self._index, self._parallelism = plan, index, parallelism
        self._consumer, self._watch, self._clocks = consumer, watch, clocks
        self._partitions = Partitions(
            timed=plan.event_time is not None,
            max_delay=0 if plan.event_time is None else plan.event_time.max_delay,
            idle_after=plan.idle_after,
            endless=plan.endless,
        )
        self._begun = self._looking = False
        self._asked = -LOOK_EVERY
        self._failure: ConnectorError | None = None
        self._to_commit: list[At] = []
        self._dead_letters = DeadLetters(plan)
        for ordinal, extent in self._own_extents():
            self._add(ordinal, extent.start)

    def poll(self, max_rows: int) -> Batch | None:
        self._begin()
        self._look()
        if self._failure is not None:
            raise self._failure
        now = self._clocks.now()
        held = self._partitions.held(now)
        if held < max_rows:
            self._fetch(max_rows - held)
        runs = self._partitions.take(max_rows, now)
        if not runs:
            return None
        batch = self._rows(runs)
        return batch if batch.num_rows else None

    @property
    def finished(self) -> bool:
        return self._partitions.finished

    def watermark(self) -> int:
        return self._partitions.watermark(self._clocks.now(), round(self._clocks.wall() * 1e6))

    def position(self) -> dict[str, Any]:
        """Return the encoded `KafkaPosition`."""
        self._commit()
        offsets = tuple(At(partition.ordinal, partition.next, partition.newest) for partition in self._partitions)
        self._to_commit = list(offsets)
        names, ids, watermark = self._plan.topics.names, self._plan.ids, self.watermark()
        return KafkaPosition(names, ids, self._index, self._parallelism, offsets, watermark=watermark, finished=self.finished).encode()

    def seek(self, position: Any) -> None:
        sought = KafkaPosition.decode(position)
        self._check(sought)
        self._partitions.restart(sought.watermark)
        for at in sought.offsets:
            self._add(at.ordinal, at.offset, at.newest)
        # A partition that existed at the start and isn't in the position is new: none of its records was emitted.
        for ordinal, extent in self._own_extents():
            if ordinal not in self._partitions:
                self._add(ordinal, extent.first)

    def backlog(self) -> int | None:
        self._look()
        return self._partitions.lag

    def dead_letters(self) -> Batch | None:
        return self._dead_letters.take()

    @property
    def skipped_records(self) -> int:
        return self._dead_letters.count

    def split_figures(self) -> list[SplitFigures]:
        now, many = self._clocks.now(), len(self._plan.topics.names) > 1
        return [
            SplitFigures(
                f"{p.topic}-{p.number}" if many else str(p.number),
                p.lag if p.is_known else None,
                p.newest,
                self._partitions.is_idle(p, now),
                p.next,
            )
            for p in self._partitions
        ]

    def ready_in(self) -> float:
        return READY_SECONDS

    def close(self) -> None:
        self._watch.close()
        if self.finished:
            self._commit()
        try:
            self._consumer.close()
        except Exception as error:  # noqa: BLE001 -- no error can be handled while the reader closes
            _LOG.warning("operator `%s`: the consumer could not be closed: %s", self._plan.operator, error)

    def _own_extents(self) -> Sequence[tuple[int, Any]]:
        return [it for it in self._plan.extents.items() if it[0] % self._parallelism == self._index]

    def _add(self, ordinal: int, offset: int, newest: int | None = None) -> None:
        extent = self._plan.extents.get(ordinal)
        stop = None if self._plan.endless or extent is None else extent.stop
        topic, number = self._plan.topics.at(ordinal)
        self._partitions.add(Partition(ordinal, topic, number, offset, stop, newest), self._clocks.now())

    def _check(self, sought: KafkaPosition) -> None:
        plan = self._plan
        if sought.topics != plan.topics.names:
            raise ConnectorError(
                f"operator `{plan.operator}`: the checkpoint is of the topics {', '.join(sought.topics)}, this flow reads "
                f"{', '.join(plan.topics.names)}; read the same topics in the same order, and other topics with another read_kafka"
            )
        for topic, before, now in zip(sought.topics, sought.ids, plan.ids, strict=True):
            if before and now and before != now:
                raise ConnectorError(
                    f"operator `{plan.operator}`: topic `{topic}` was deleted and recreated after the checkpoint (id {before}, "
                    f"now {now}); start without the checkpoint to read it from its beginning"
                )

    def _begin(self) -> None:
        """Assign the partitions, once their offsets are known."""
        if not self._begun:
            self._begun = True
            self._assign([partition for partition in self._partitions if not partition.ended])

    def _assign(self, partitions: Sequence[Partition]) -> None:
        from confluent_kafka import TopicPartition

        if partitions:
            self._consumer.incremental_assign([TopicPartition(p.topic, p.number, p.fetched) for p in partitions])

    def _unassign(self, partition: Partition) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.incremental_unassign([TopicPartition(partition.topic, partition.number)])

    def _look(self) -> None:
        """Process the answer of the last look, and request the next one."""
        answer = self._watch.answer()
        if answer is not None:
            self._looking = False
            self._learn(answer)
        if not self._looking and self._clocks.now() - self._asked >= LOOK_EVERY:
            self._asked, self._looking = self._clocks.now(), True
            self._watch.ask({partition.ordinal: partition.fetched for partition in self._partitions})

    def _learn(self, look: Look) -> None:
        self._failure = look.error
        for partition in self._partitions:
            if partition.ordinal in look.ends:
                partition.end, partition.seen = look.ends[partition.ordinal], look.requested
        new = [ordinal for ordinal in look.found if ordinal not in self._partitions]
        for ordinal in new:
            self._add(ordinal, look.found[ordinal])
        if self._begun:
            self._assign([self._partitions[ordinal] for ordinal in new])

    def _fetch(self, most: int) -> None:
        """Take what the client has fetched, about `most` records at most."""
        self._align()
        messages = self._consumer.consume(most, 0.0)
        events = [message for message in messages if message.error() is not None]
        records = [message for message in messages if message.error() is None] if events else messages
        for ordinal, first, stop in self._runs(records):
            partition = self._partitions[ordinal]
            if not partition.ended:
                partition.hold(records[first:stop])
                self._end(partition)
        for event in events:
            self._take_event(event)
        for problem in self._problems.taken():
            if not _passes(problem):
                raise self._plan.cluster.error(problem, "the cluster")

    def _runs(self, records: Sequence[Message]) -> list[tuple[int, int, int]]:
        """Split records into stretches of one partition each: the partition's ordinal, and the first and last place."""
        if not records:
            return []
        numbers = np.array([record.partition() for record in records], np.int64)
        names = self._plan.topics.names
        if len(names) > 1:
            places = {name: place for place, name in enumerate(names)}
            numbers = numbers * len(names) + np.array([places[str(record.topic())] for record in records], np.int64)
        firsts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()]
        return [(int(numbers[first]), first, stop) for first, stop in zip(firsts, [*firsts[1:], len(records)], strict=True)]

    def _end(self, partition: Partition) -> None:
        """Stop fetching a partition whose records have all arrived."""
        if partition.stop is not None and partition.fetched >= partition.stop and not partition.ended:
            partition.ended = True
            self._unassign(partition)

    def _align(self) -> None:
        """Pause fetching of partitions that wait with much, and resume those that don't wait."""
        from confluent_kafka import TopicPartition

        waiting = {partition.ordinal for partition in self._partitions.waiting(self._clocks.now())}
        for partition in self._partitions:
            waits = partition.ordinal in waiting
            if waits and not partition.paused and partition.held_bytes > MOST_HELD:
                partition.paused = True
                self._consumer.pause([TopicPartition(partition.topic, partition.number)])
            elif partition.paused and not waits and not partition.held:
                partition.paused = False
                self._consumer.resume([TopicPartition(partition.topic, partition.number)])

    def _take_event(self, event: Message) -> None:
        error = event.error()
        assert error is not None
        name = error.name()
        if name == "_PARTITION_EOF":
            partition = self._partitions[self._ordinal(event)]
            offset = event.offset()
            if not partition.ended and offset is not None and offset >= 0:
                partition.skip_to(offset)
                self._end(partition)
        elif name in {"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"}:
            self._skip_lost_offsets(self._partitions[self._ordinal(event)])
        elif not _passes(error):
            what = f"topic `{event.topic()}`" if event.topic() else "the cluster"
            raise self._plan.cluster.error(error, what)

    def _ordinal(self, event: Message) -> int:
        topic, number = event.topic(), event.partition()
        assert topic is not None
        assert number is not None
        return self._plan.topics.ordinal(topic, number)

    def _skip_lost_offsets(self, partition: Partition) -> None:
        """Skip deleted offsets. Raises ConnectorError unless the user allows it."""
        from confluent_kafka import KafkaException, TopicPartition

        plan, place = self._plan, TopicPartition(partition.topic, partition.number)
        try:
            extent = self._consumer.get_watermark_offsets(place, timeout=EXTENT_SECONDS)
        except KafkaException as error:
            raise plan.cluster.error(error.args[0], plan.topics.shown(partition.ordinal)) from error
        assert extent is not None
        first, end = extent
        if end < partition.fetched:
            raise recreated(plan, partition.ordinal, partition.fetched, end)
        lost = f"{plan.topics.shown(partition.ordinal)}: offsets {partition.fetched} to {first - 1} are no longer there"
        if first > partition.fetched and plan.on_lost_offsets == "stop":
            raise ConnectorError(
                f"operator `{plan.operator}`: {lost}: the broker deleted them before they were read; keep records for longer, or say "
                'on_lost_offsets="earliest" to continue without them'
            )
        _LOG.warning("operator `%s`: %s; continuing with %d", plan.operator, lost, first)
        self._unassign(partition)
        partition.skip_to(first)
        partition.paused = False
        self._assign([partition])
        self._end(partition)

    def _rows(self, runs: Sequence[tuple[Partition, list[Message]]]) -> Batch:
        """Convert these records to rows with event times, and note the times in their partitions."""
        plan = self._plan
        records = runs[0][1] if len(runs) == 1 else [record for _, run in runs for record in run]
        rows, counts = decoded(
            plan.decoder, plan.decoder.contents(records), lambda place, problem: self._dead_letters.add(records[place], problem)
        )
        origins = None if counts is None else np.repeat(np.arange(len(records)), counts)
        given = records if origins is None else [records[place] for place in origins.tolist()]
        times = None
        if plan.event_time is not None:
            times, wrong = self._times(rows, given)
            if wrong.any():
                rows, given, times, origins = self._without(wrong, rows, given, times, origins)
            self._note(runs, times, origins)
        return Batch(plan.columns.appended_to(rows, given), times)

    def _times(self, rows: pa.RecordBatch, records: Sequence[Message]) -> tuple[Times, npt.NDArray[np.bool_]]:
        """Return the event time of each row, and which rows have none."""
        event_time = self._plan.event_time
        assert event_time is not None
        if self._plan.by_timestamp:
            return record_times(records)
        event_time.check(rows.schema, self._plan.operator)
        return event_time.times(rows.column(event_time.column))

    def _without(
        self,
        wrong: npt.NDArray[np.bool_],
        rows: pa.RecordBatch,
        records: Sequence[Message],
        times: Times,
        origins: npt.NDArray[np.int64] | None,
    ) -> tuple[pa.RecordBatch, list[Message], Times, npt.NDArray[np.int64]]:
        """Return the rows that have an event time; the others are refused."""
        assert self._plan.event_time is not None
        for place in np.flatnonzero(wrong).tolist():
            self._dead_letters.add(
                records[place], f"its event time `{self._plan.event_time.column}` is missing, or outside of the years 1 to 9999"
            )
        right = np.flatnonzero(~wrong)
        places = np.arange(len(records)) if origins is None else origins
        return rows.take(pa.array(right)), [records[place] for place in right.tolist()], times[right], places[right]

    def _note(self, runs: Sequence[tuple[Partition, list[Message]]], times: Times, origins: npt.NDArray[np.int64] | None) -> None:
        """Note the newest event time of each partition. `origins`: the record of each row, None if each record has one."""
        first = 0
        for partition, run in runs:
            stop = first + len(run)
            begin, end = (first, stop) if origins is None else np.searchsorted(origins, [first, stop]).tolist()
            if begin < end:
                newest = int(times[begin:end].max())
                partition.newest = newest if partition.newest is None else max(partition.newest, newest)
            first = stop

    def _commit(self) -> None:
        """Commit the previous position to the group, for tools that show lag."""
        from confluent_kafka import KafkaException, TopicPartition

        if self._plan.group_id is None or not self._to_commit:
            return
        offsets = [TopicPartition(*self._plan.topics.at(at.ordinal), at.offset) for at in self._to_commit]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            _LOG.warning("operator `%s`: offsets could not be committed to group `%s`: %s", self._plan.operator, self._plan.group_id, error)


def _passes(error: KafkaError) -> bool:
    """Return True if the client recovers from the error automatically. The group and its coordinator don't matter."""
    name = error.name()
    of_group = "GROUP" in name or "COORD" in name or "FindCoordinator" in error.str()
    return not error.fatal() and (error.retriable() or name in OFTEN or of_group)
