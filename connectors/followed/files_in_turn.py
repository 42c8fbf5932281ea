"""The base of readers of unchanging files, which read each file once, from start to end, one after the other.

A reader has a queue of listed files, at most one open file, and files that an earlier reader has partly read, which come first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import Generic, TypeVar

from ...engine.batch import Batch
from ...engine.time.event_time import EventTime
from ..files.split_position import PartlyRead
from ..files.splits import LEAST_DECODED, OpenSplit, Split, SplitRows, UnreadSplits
from ..quiet import CLOCKS, Clocks
from .following_reader import FollowingReader

F = TypeVar("F")
"""The type by which a reader identifies a file."""

MOST_LOOKED_AT = 1_000
"""The most unread files that are examined before they are read."""


class FilesInTurn(FollowingReader, Generic[F]):
    """A reader of files in sequence.

    A subclass lists files and queues its own (`_look`, `_enqueue`), checks each before it is read (`_begin`) and records the end
    of it (`_was_read`).
    """

    def __init__(
        self,
        operator: str,
        open_split: OpenSplit,
        *,
        index: int,
        parallelism: int,
        event_time: EventTime | None,
        clocks: Clocks = CLOCKS,
    ) -> None:
        super().__init__(index, parallelism, event_time, clocks)
        self._operator, self._open_split = operator, open_split
        self._partly: deque[tuple[F, PartlyRead]] = deque()
        self._queue: deque[F] = deque()
        self._unread = UnreadSplits()
        self._ordinal = 0
        self._open: tuple[F, SplitRows] | None = None

    def poll(self, max_rows: int) -> Batch | None:
        while self._open is not None or self._open_next(max(max_rows, LEAST_DECODED)):
            if self._open is not None:
                file, rows = self._open
                batch = rows.read(max_rows)
                if batch is not None:
                    self._quiet.gave()
                    return batch
                self._open = None
                self._was_read(file, rows.partly_read.newest)
        return None

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    @abstractmethod
    def _look(self) -> None:
        """List files, queue those of this reader, and set `_next_look`. Called when no file is queued, not before `_next_look`."""

    @abstractmethod
    def _begin(self, file: F, read: PartlyRead | None) -> F | None:
        """Return the current state of a file about to be read, or None if it has no rows.

        Raises ConnectorError if it changed.
        """

    @abstractmethod
    def _was_read(self, file: F, newest: int | None) -> None:
        """Record that the file was read to its end. `newest`: the newest event time in it."""

    @abstractmethod
    def _bound_of_later_files(self, event_time: EventTime) -> int:
        """Return a lower bound of the event times in files that are not queued."""

    def _enqueue(self, file: F, split: Split, bound: int) -> None:
        """Queue a file. `bound`: lower bound of its event times."""
        self._ordinal += 1
        self._unread.append(Split(split.path, self._ordinal, min_time=split.min_time, max_time=split.max_time), bound)
        self._queue.append(file)

    def _partly_read(self) -> list[tuple[F, PartlyRead]]:
        return [*self._partly] if self._open is None else [*self._partly, (self._open[0], self._open[1].partly_read)]

    def _bound(self, event_time: EventTime) -> int:
        begun = [read.bound for _, read in self._partly_read()]
        return min([self._unread.bound, self._bound_of_later_files(event_time), *begun])

    def _open_next(self, batch_rows: int) -> bool:
        """Open the next file with rows; return False if there is none."""
        read: PartlyRead | None = None
        if self._partly:
            listed, read = self._partly.popleft()
            split = Split(read.path, 0)
        else:
            if not self._queue and self._clock() >= self._next_look:
                look = self._quiet.look()
                self._look()
                if not self._queue:
                    self._quiet.found_nothing(look)
            if not self._queue:
                return False
            listed, split = self._queue.popleft(), self._unread.popleft()
        file = self._begin(listed, read)
        if file is not None:
            self._open = file, SplitRows(split, self._open_split(split, batch_rows), self._event_time, self._operator, read)
        return True
