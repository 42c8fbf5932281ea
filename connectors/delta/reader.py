"""Reads the files that the versions of a Delta Lake table add, each once, in the order of the versions.

A version's log entry never changes, so all readers see the same files of it. A hash of its name says whose a file is, as for other followed
files: bucket `b` belongs to reader `b % parallelism`. A reader knows for each of its buckets the next version that it has not listed; a
version is listed when all before it were read. Its position has these numbers, and the files that it has listed and not read to the end.

Event time: a row may be `max_delay` behind the newest time in the versions before its own. So the newest time of the files of the listed
versions, less `max_delay`, bounds the files of all later ones. Each reader looks into the files of the others for it, without reading them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from typing import Any, Protocol

from ...engine.batch import Batch
from ...engine.errors import ConnectorError
from ...engine.protocol.elements import MAX_TIME, MIN_TIME
from ...engine.source import SourceReader
from ...engine.time.event_time import EventTime
from ..followed.arrived import BUCKETS, bucket_of, digest_of
from ..followed.follow import shared
from ..followed.reader import MOST_LOOKED_AT
from ..split_position import PartlyRead
from ..splits import LEAST_DECODED, OpenSplit, Split, SplitRows, UnreadSplits


class FollowedTable(Protocol):
    """The table of a source, as the reader needs it."""

    name: str

    @property
    def first(self) -> tuple[int, Sequence[str]]:
        """The version at which reading begins, and its files."""

    def added(self, version: int) -> Sequence[str] | None:
        """The files with new rows of a version; None if the table has not come to it. Raises ConnectorError if it can't be read."""

    def peek(self, file: str) -> Split:
        """The file as a split, with what is known of its event times. Raises ConnectorError if it is gone."""


@dataclass(frozen=True, slots=True)
class _Partly:
    """A file that was read up to a row."""

    version: int
    file: str
    rows: int
    newest: int | None
    bound: int


class DeltaReader(SourceReader):
    """Reads the files of one worker's buckets. It is never finished. `poll_every`: seconds between two looks for a new version."""

    def __init__(
        self,
        table: FollowedTable,
        open_split: OpenSplit,
        poll_every: float,
        *,
        index: int,
        parallelism: int,
        event_time: EventTime | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._table, self._open_split, self._poll_every, self._event_time, self._clock = table, open_split, poll_every, event_time, clock
        self._index, self._parallelism = index, parallelism
        first, files = table.first
        self._next = dict.fromkeys(range(index, BUCKETS, parallelism), first + 1)
        self._listed: list[tuple[int, str]] = [(first, file) for file in files if _is_of(file, index, parallelism)]
        self._others = [(first, file) for file in files if not _is_of(file, index, parallelism)]
        self._partly: deque[_Partly] = deque()
        self._unread, self._queue = UnreadSplits(), deque[tuple[int, str]]()
        self._ordinal = 0
        self._open: SplitRows | None = None
        self._opened = (0, "")
        self._newest = self._watermark = MIN_TIME
        self._ahead = list[tuple[int, int]]()
        self._next_look = -1.0

    def poll(self, max_rows: int) -> Batch | None:
        while True:
            if self._open is None and not self._open_next(max(max_rows, LEAST_DECODED)):
                return None
            if self._open is not None:
                batch = self._open.read(max_rows)
                if batch is not None:
                    return batch
                newest, self._open = self._open.partly_read.newest, None
                self._know(self._opened[0], newest)

    @property
    def finished(self) -> bool:
        return False

    def watermark(self) -> int:
        if self._event_time is None:
            return MAX_TIME
        bound = min([self._unread.bound, self._later_bound, *(partly.bound for partly in self._partly)])
        if self._open is not None:
            bound = min(bound, self._open.bound)
        self._watermark = max(self._watermark, bound)
        return self._watermark

    def position(self) -> dict[str, Any]:
        self.watermark()
        partly = [*self._partly]
        if self._open is not None:
            read = self._open.partly_read
            partly.append(_Partly(*self._opened, read.rows, read.newest, read.bound))
        return {
            "reader": [self._index, self._parallelism],
            "next": _runs(self._next),
            "listed": [list(each) for each in (*self._listed, *self._queue)],
            "partly": [list(astuple(file)) for file in partly],
            "newest": self._newest,
            "watermark": self._watermark,
        }

    def seek(self, position: Any) -> None:
        self._next = {bucket: version for version, buckets in position["next"] for bucket in buckets}
        self._listed, self._others = [(version, file) for version, file in position["listed"]], []
        self._partly = deque(_Partly(*file) for file in position["partly"])
        self._newest, self._watermark = position["newest"], position["watermark"]

    def ready_in(self) -> float:
        return max(0.0, self._next_look - self._clock())

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    @property
    def _later_bound(self) -> int:
        """A lower bound of the event times in files that are not listed, and in listed ones that nobody has looked into."""
        if self._event_time is None or self._listed or self._newest == MIN_TIME:
            return MIN_TIME
        return self._newest - self._event_time.max_delay

    def _open_next(self, batch_rows: int) -> bool:
        """Open the next file; False if there is none now."""
        if self._partly:
            partly = self._partly.popleft()
            read = PartlyRead(0, partly.file, partly.rows, partly.newest, partly.bound)
            self._opened, split = (partly.version, partly.file), Split(partly.file, 0)
            self._open = SplitRows(split, self._open_split(split, batch_rows), self._event_time, self._table.name, read)
            return True
        if self._listed or self._others:
            self._take(self._listed, self._others)
            self._listed, self._others = [], []
        if not self._queue and self._clock() >= self._next_look:
            self._look()
        if not self._queue:
            return False
        self._opened, split = self._queue.popleft(), self._unread.popleft()
        self._open = SplitRows(split, self._open_split(split, batch_rows), self._event_time, self._table.name, None)
        return True

    def _look(self) -> None:
        """List versions, until one has files of this reader's, or there is no later one."""
        while not self._queue and self._next:
            version = min(self._next.values())
            files = self._table.added(version)
            if files is None:
                self._next_look = self._clock() + self._poll_every
                return
            own = [file for file in files if self._next.get(bucket_of(digest_of(file)), version + 1) <= version]
            self._next = {bucket: max(number, version + 1) for bucket, number in self._next.items()}
            self._take([(version, file) for file in own], [(version, file) for file in files if file not in own])
        if not self._next:
            self._next_look = self._clock() + self._poll_every

    def _take(self, own: Sequence[tuple[int, str]], others: Sequence[tuple[int, str]]) -> None:
        """Queue the files of versions, and learn the newest event time in them."""
        bound, looks = self._later_bound, self._event_time is not None and len(own) + len(others) <= MOST_LOOKED_AT
        for version, file in own:
            split = self._table.peek(file) if looks else Split(file, 0)
            self._ordinal += 1
            self._unread.append(Split(file, self._ordinal, min_time=split.min_time), bound if split.min_time is None else split.min_time)
            self._queue.append((version, file))
            self._know(version, split.max_time)
        for version, file in others if looks else ():
            with suppress(ConnectorError):  # the reader whose file it is reports the error
                self._know(version, self._table.peek(file).max_time)

    def _know(self, version: int, newest: int | None) -> None:
        """Take note of the newest event time in a file. It counts when there is no unlisted version before: `self._newest` bounds that."""
        if newest is not None:
            self._ahead.append((version, newest))
        first = min(self._next.values(), default=version + 1)
        self._newest = max([self._newest, *(time_ for number, time_ in self._ahead if number < first)])
        self._ahead = [each for each in self._ahead if each[0] >= first]


def share_out_versions(positions: Sequence[Any], parallelism: int, operator: str) -> list[Any]:
    """Positions of `parallelism` readers that together continue where the readers at `positions` were."""
    upcoming = {bucket: version for position in positions for version, buckets in position["next"] for bucket in buckets}
    listed, partly = ([file for position in positions for file in position[kind]] for kind in ("listed", "partly"))
    return [
        {
            **common,
            "next": _runs({bucket: version for bucket, version in upcoming.items() if bucket % parallelism == index}),
            "listed": sorted(file for file in listed if _is_of(file[1], index, parallelism)),
            "partly": [file for file in partly if _is_of(file[1], index, parallelism)],
        }
        for index, common in enumerate(shared(positions, parallelism, operator))
    ]


def _is_of(file: str, index: int, parallelism: int) -> bool:
    return bucket_of(digest_of(file)) % parallelism == index


def _runs(versions: dict[int, int]) -> list[list[Any]]:
    """`[version, its buckets]` for each version."""
    return [[version, sorted(bucket for bucket in versions if versions[bucket] == version)] for version in sorted({*versions.values()})]
