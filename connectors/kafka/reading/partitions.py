"""The partitions of one reader: records that were fetched and not yet emitted, offsets, and the watermark over all partitions.

Records are emitted in approximate order of event time: the partition with the earliest newest event time comes first, and one
that is far ahead of another waits for it.

Invariant: a partition's `next` is the offset after the last emitted record, and only rises. The watermark never falls, and no
later record is older, except one that is more than `max_delay` older than the newest before it in its partition, or one whose
partition was idle or new and whose time is before the clock's less `max_delay`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....engine.protocol.elements import MAX_TIME, MIN_TIME
from ...quiet import TICK

if TYPE_CHECKING:
    from confluent_kafka import Message

MOST_AHEAD = 10_000_000
"""Microseconds of event time by which a partition may be ahead of another that has records."""

PATIENCE = 5.0
"""Seconds for which the other partitions wait for one that has records and emits none: its broker may be down."""

MOST_HELD = 8 << 20
"""Bytes of a waiting partition's records at which fetching of it pauses."""

FRESH = 10.0
"""Seconds for which a look at a partition's end shows that it has been read to its end."""


@dataclass(slots=True)
class Partition:
    """One partition. `next`: the next offset to emit; `fetched`: to fetch; `stop`: the first that isn't read, None for an endless
    stream.

    `end`: the end of its committed records at `seen` (seconds), None before the first look. `gave`: when it last emitted records.
    `held`: records fetched and not emitted. `ended`: True if fetching is over. `turn`: rises each time it emits records.
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
        """True if everything up to `stop` was emitted."""
        return self.stop is not None and self.next >= self.stop

    @property
    def is_known(self) -> bool:
        """True if the end is known."""
        return self.stop is not None or self.end is not None

    @property
    def lag(self) -> int:
        """The number of offsets between the next one to emit and the end."""
        end = self.end if self.stop is None else self.stop
        return 0 if end is None else max(0, end - self.next)

    @property
    def held_bytes(self) -> int:
        """The bytes of the values that are fetched and not emitted. Cheap while these stay the same."""
        count = sum(map(len, self.held))
        if self.measured[0] != count:
            self.measured = count, sum(sum(map(len, records)) for records in self.held)
        return self.measured[1]

    def hold(self, records: list[Message]) -> None:
        """Queue fetched records, in the order of their offsets; known records and those from `stop` on are dropped."""
        first, last = records[0].offset(), records[-1].offset()
        assert first is not None
        assert last is not None
        stop = last + 1 if self.stop is None else self.stop
        if first < self.fetched or last >= stop or last - first != len(records) - 1:
            records, last = self._wanted(records, stop), min(last, stop - 1)
        if records:
            self.held.append(records)
        self.skip_to(last + 1)

    def _wanted(self, records: list[Message], stop: int) -> list[Message]:
        """Select records by offset: compaction and transactions leave gaps, so duplicates can't be found by position."""
        wanted, expected = [], self.fetched
        for record in records:
            offset = record.offset()
            assert offset is not None
            if expected <= offset < stop:
                wanted.append(record)
                expected = offset + 1
        return wanted

    def skip_to(self, offset: int) -> None:
        """Skip offsets without records, so that `offset` is the next to fetch."""
        self.fetched = max(self.fetched, offset)
        if not self.held:
            self.next = self.fetched

    def take(self, count: int, now: float) -> list[Message]:
        """Remove and return at most `count` held records, at least one."""
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
    """The partitions of one reader. `timed`: with event time. `max_delay`: microseconds. `idle_after`: seconds, None if none is
    ever idle.
    """

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
        """Add a partition to read from its `next` on."""
        partition.gave = now
        self._all[partition.ordinal] = partition

    def restart(self, watermark: int) -> None:
        """Remove all partitions, and continue from this watermark."""
        self._all.clear()
        self._watermark = watermark

    @property
    def finished(self) -> bool:
        """True if all records were emitted."""
        return not self._endless and all(partition.complete for partition in self)

    @property
    def lag(self) -> int:
        """The number of available offsets that were not emitted."""
        return sum(partition.lag for partition in self)

    def take(self, most: int, now: float) -> list[tuple[Partition, list[Message]]]:
        """Return at most `most` records to emit now, in runs of one partition each."""
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
        """Return the number of held records that need not wait."""
        return sum(len(records) for partition in self._ready(now) for records in partition.held)

    def waiting(self, now: float) -> list[Partition]:
        """List the partitions with records that are too far ahead in event time to emit them."""
        bound = self._bound_of_waiting(now)
        return [partition for partition in self if partition.newest is not None and partition.newest > bound]

    def watermark(self, now: float, wall: int) -> int:
        """Compute the watermark at `now` (seconds of a monotonic clock) and `wall` (microseconds since the epoch)."""
        if not self._timed or self.finished:
            return MAX_TIME
        today = wall // TICK * TICK - self._max_delay
        bounds = [self._bound(partition, now, today) for partition in self if not partition.complete]
        self._watermark = max(self._watermark, min(bounds, default=today))
        return self._watermark

    def is_idle(self, partition: Partition, now: float) -> bool:
        """Return True if a recent look found that it has been read to its end, and it has been quiet since."""
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
        """Return the newest event time with which a partition need not wait."""
        if not self._timed:
            return MAX_TIME
        active = (p.newest for p in self if p.newest is not None and (p.held or (p.lag and now - p.gave < PATIENCE)))
        return min(active, default=MAX_TIME - MOST_AHEAD) + MOST_AHEAD


def _turn(partition: Partition) -> tuple[int, int]:
    return MIN_TIME if partition.newest is None else partition.newest, partition.turn
