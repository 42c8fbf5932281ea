"""The partitions of one reader: records that were fetched and not yet given, offsets, and the watermark over all partitions.

Records leave in the order of event time, as far as a reader can see: the partition whose newest event time is the earliest gives first, and
one that is far ahead of another waits for it.

Invariant: `next` of a partition is the offset behind the last record given, and rises only. The watermark never falls, and no record that
comes is earlier, except one that is more than `max_delay` older than the newest before it in its partition, or that comes to a partition
that was idle, or new, with a time before the clock's less `max_delay`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...engine.protocol.elements import MAX_TIME, MIN_TIME

if TYPE_CHECKING:
    from confluent_kafka import Message

MOST_AHEAD = 10_000_000
"""Microseconds of event time by which a partition may be ahead of another that has records to give."""

PATIENCE = 5.0
"""Seconds for which the others wait for a partition that has records and gives none: its broker may be gone."""

MOST_HELD = 8 << 20
"""Bytes of a waiting partition's records from which on no more of them are fetched."""

FRESH = 10.0
"""Seconds for which a look at a partition's end says whether it has been read to its end."""

TICK = 100_000
"""Microseconds in which the time of the clock rises in watermarks: each that rises is sent to all workers behind."""


@dataclass(slots=True)
class Partition:
    """One partition. `next`: the offset to give next; `fetched`: to fetch next; `stop`: the first that isn't read, None without end.

    `end`: where its committed records ended at `seen` (seconds), None before the first look. `gave`: when it last gave records.
    `held`: what was fetched and not given. `ended`: nothing of it is fetched any more. `turn`: counts on with each time it gave.
    `measured`: how many records were held when their bytes were last counted, and the bytes.
    """

    ordinal: int
    topic: str
    number: int
    next: int
    stop: int | None
    newest: int | None = None
    fetched: int = 0
    end: int | None = None
    seen: float = 0.0
    gave: float = 0.0
    held: deque[list[Message]] = field(default_factory=deque)
    paused: bool = False
    ended: bool = False
    turn: int = 0
    measured: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self.fetched = self.next
        self.ended = self.complete

    @property
    def complete(self) -> bool:
        """Whether all of it has been given that is to be read."""
        return self.stop is not None and self.next >= self.stop

    @property
    def lag(self) -> int:
        """Offsets between what was given and the end."""
        end = self.end if self.stop is None else self.stop
        return 0 if end is None else max(0, end - self.next)

    @property
    def held_bytes(self) -> int:
        """Bytes of the values that are fetched and not given. Cheap as long as these are the same."""
        count = sum(map(len, self.held))
        if self.measured[0] != count:
            self.measured = count, sum(sum(map(len, records)) for records in self.held)
        return self.measured[1]

    def hold(self, records: list[Message]) -> None:
        """Records that were fetched, in the order of their offsets; those that are known already, or not to be read, are left out."""
        first, last = records[0].offset(), records[-1].offset()
        assert first is not None
        assert last is not None
        stop = last + 1 if self.stop is None else self.stop
        if first < self.fetched or last >= stop or last - first != len(records) - 1:
            records, last = self._wanted(records, stop), min(last, stop - 1)
        if records:
            self.held.append(records)
        self.reach(last + 1)

    def _wanted(self, records: list[Message], stop: int) -> list[Message]:
        """Compaction and transactions leave gaps, so what was fetched again must be looked for."""
        wanted, expected = [], self.fetched
        for record in records:
            offset = record.offset()
            assert offset is not None
            if expected <= offset < stop:
                wanted.append(record)
                expected = offset + 1
        return wanted

    def reach(self, offset: int) -> None:
        """There is nothing to give between what was fetched and `offset`."""
        self.fetched = max(self.fetched, offset)
        if not self.held:
            self.next = self.fetched

    def take(self, count: int, now: float) -> list[Message]:
        """At most `count` records, at least one, that are held."""
        records = self.held.popleft()
        if len(records) > count:
            self.held.appendleft(records[count:])
            records = records[:count]
        self.gave = now
        last = records[-1].offset()
        assert last is not None
        self.next = last + 1 if self.held else self.fetched
        return records


class Partitions:
    """`timed`: with event time. `max_delay`: microseconds. `idle_after`: seconds, None if no partition counts as idle."""

    def __init__(self, *, timed: bool, max_delay: int, idle_after: float | None, endless: bool) -> None:
        self._timed, self._max_delay, self._idle_after, self._endless = timed, max_delay, idle_after, endless
        self._all: dict[int, Partition] = {}
        self._watermark = MIN_TIME
        self._turn = 0

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._all.values())

    def __contains__(self, ordinal: int) -> bool:
        return ordinal in self._all

    def __getitem__(self, ordinal: int) -> Partition:
        return self._all[ordinal]

    def add(self, partition: Partition, now: float) -> None:
        """A partition to read, from its `next` on."""
        partition.gave = now
        self._all[partition.ordinal] = partition

    def restart(self, watermark: int) -> None:
        """Forget all partitions, and go on from this watermark."""
        self._all.clear()
        self._watermark = watermark

    @property
    def finished(self) -> bool:
        """Whether all has been given."""
        return not self._endless and all(partition.complete for partition in self)

    @property
    def lag(self) -> int:
        """Offsets that are there and were not given."""
        return sum(partition.lag for partition in self)

    def take(self, most: int, now: float) -> list[tuple[Partition, list[Message]]]:
        """Records to give now, at most `most`, in runs of one partition each."""
        runs: list[tuple[Partition, list[Message]]] = []
        for partition in sorted(self._ready(now), key=_turn):
            while most and partition.held:
                records = partition.take(most, now)
                most -= len(records)
                runs.append((partition, records))
            self._turn += 1
            partition.turn = self._turn
            if not most:
                break
        return runs

    def held(self, now: float) -> int:
        """Records that are held and need not wait."""
        return sum(len(records) for partition in self._ready(now) for records in partition.held)

    def waiting(self, now: float) -> list[Partition]:
        """Partitions that are too far ahead in event time to give what they hold."""
        bound = self._bound_of_waiting(now)
        return [partition for partition in self if partition.newest is not None and partition.newest > bound]

    def watermark(self, now: float, wall: int) -> int:
        """At `now` (seconds of a clock that doesn't jump) and `wall` (microseconds since the epoch)."""
        if not self._timed or self.finished:
            return MAX_TIME
        today = wall // TICK * TICK - self._max_delay
        bounds = [self._bound(partition, now, today) for partition in self if not partition.complete]
        self._watermark = max(self._watermark, min(bounds, default=today))
        return self._watermark

    def is_idle(self, partition: Partition, now: float) -> bool:
        """Whether it has been read to its end, which somebody has looked at lately, and has been quiet since."""
        if self._idle_after is None or partition.held or partition.end is None:
            return False
        at_end = partition.next >= partition.end and now - partition.seen < FRESH
        return at_end and partition.seen - partition.gave >= self._idle_after

    def _bound(self, partition: Partition, now: float, today: int) -> int:
        known = MIN_TIME if partition.newest is None else partition.newest - self._max_delay
        return max(known, today) if self.is_idle(partition, now) else known

    def _ready(self, now: float) -> Sequence[Partition]:
        bound = self._bound_of_waiting(now)
        return [partition for partition in self if partition.held and (partition.newest is None or partition.newest <= bound)]

    def _bound_of_waiting(self, now: float) -> int:
        """The newest event time with which a partition need not wait."""
        if not self._timed:
            return MAX_TIME
        going_on = (p.newest for p in self if p.newest is not None and (p.held or (p.lag and now - p.gave < PATIENCE)))
        return min(going_on, default=MAX_TIME - MOST_AHEAD) + MOST_AHEAD


def _turn(partition: Partition) -> tuple[int, int]:
    return MIN_TIME if partition.newest is None else partition.newest, partition.turn
