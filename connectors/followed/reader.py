"""Reads the files of a folder as they appear, each once, in the order of the times of their last changes.

A reader lists the folder when it has read what it knew of, and takes the files of its buckets (`arrived.py`). Its position has the files
that it has read (`read_files.py`) and those that it has partly read; all of it belongs to a bucket, so a reassignment moves buckets.

Event time: a later file may be `max_delay` behind the newest time before it. What was known before a look at the folder began bounds the
files that the look did not show, because they appeared after it began. So the watermark uses that, the newest time at the beginning of the
last look. Each look also reads the time of the newest file of the other readers, so that a reader without files holds nobody back.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from typing import Any, Protocol

from ...engine.batch import Batch
from ...engine.errors import ConnectorError
from ...engine.protocol.elements import MAX_TIME, MIN_TIME
from ...engine.source import SourceReader
from ...engine.time.event_time import EventTime
from ..split_position import PartlyRead
from ..splits import LEAST_DECODED, OpenSplit, Split, SplitRows, UnreadSplits
from .arrived import BUCKETS, Arrived, bucket_of, digest_of, look_at
from .follow import LOOKING, Follow, shared
from .read_files import ReadFiles

MOST_LOOKED_AT = 1_000
"""With more unread files, none is examined before it is read."""


class FollowedFiles(Protocol):
    """The files of a source, as the reader needs them."""

    name: str

    def arrivals(self) -> Iterator[tuple[str, Arrived | None]]:
        """The paths of all files that there are now, and those that the listing describes as they are."""

    def peek(self, path: str) -> Split:
        """The file as a split, with what is known of its event times without reading it."""

    def admit(self, path: str) -> bool:
        """Whether the file has rows. Raises ConnectorError if they don't fit the stream's columns."""


@dataclass(frozen=True, slots=True)
class _Partly:
    """A file that was read up to a row."""

    path: str
    changed: int
    size: int
    rows: int
    newest: int | None
    bound: int


class FollowReader(SourceReader):
    """Reads the files of one worker's buckets. It is never finished."""

    def __init__(
        self,
        files: FollowedFiles,
        open_split: OpenSplit,
        follow: Follow,
        *,
        index: int,
        parallelism: int,
        event_time: EventTime | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files, self._open_split, self._follow, self._event_time, self._clock = files, open_split, follow, event_time, clock
        self._index, self._parallelism = index, parallelism
        self._read = ReadFiles(follow.max_age)
        self._partly: deque[_Partly] = deque()
        self._unread = UnreadSplits()
        self._queue: deque[Arrived] = deque()
        self._listed = 0
        self._open: SplitRows | None = None
        self._opened = Arrived(0, "", 0)
        self._newest = self._settled = self._watermark = MIN_TIME
        self._next_look = -1.0
        self._peeked: Arrived | None = None

    def poll(self, max_rows: int) -> Batch | None:
        while True:
            if self._open is None and not self._open_next(max(max_rows, LEAST_DECODED)):
                return None
            if self._open is not None:
                batch = self._open.read(max_rows)
                if batch is not None:
                    return batch
                self._close_read()

    @property
    def finished(self) -> bool:
        return False

    def watermark(self) -> int:
        if self._event_time is None:
            return MAX_TIME
        bound = min([self._unread.bound, self._settled - self._event_time.max_delay, *(partly.bound for partly in self._partly)])
        if self._open is not None:
            bound = min(bound, self._open.bound)
        self._watermark = max(self._watermark, bound)
        return self._watermark

    def position(self) -> dict[str, Any]:
        self.watermark()
        partly = [*self._partly]
        if self._open is not None:
            read = self._open.partly_read
            partly.append(_Partly(read.path, self._opened.changed, self._opened.size, read.rows, read.newest, read.bound))
        return {
            "reader": [self._index, self._parallelism],
            "read": self._read.encode(range(self._index, BUCKETS, self._parallelism)),
            "partly": [list(astuple(file)) for file in partly],
            "newest": self._newest,
            "watermark": self._watermark,
        }

    def seek(self, position: Any) -> None:
        self._read = ReadFiles(self._follow.max_age, position["read"])
        self._partly = deque(_Partly(*file) for file in position["partly"])
        self._newest, self._watermark = position["newest"], position["watermark"]

    def ready_in(self) -> float:
        return max(0.0, self._next_look - self._clock())

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _open_next(self, batch_rows: int) -> bool:
        """Open the next file that has rows, or mark it as read if it has none; False if there is nothing to read now."""
        if self._partly:
            self._resume(self._partly.popleft(), batch_rows)
            return True
        if not self._queue and self._clock() >= self._next_look:
            self._look()
        if not self._queue:
            return False
        listed, split = self._queue.popleft(), self._unread.popleft()
        self._opened = self._still(listed.path, "was read")
        if self._files.admit(listed.path):
            self._open = SplitRows(split, self._open_split(split, batch_rows), self._event_time, self._files.name, None)
        else:
            self._read.add(self._opened)
        return True

    def _resume(self, partly: _Partly, batch_rows: int) -> None:
        self._opened = self._still(partly.path, f"was read to its end, after {partly.rows} rows")
        if (self._opened.changed, self._opened.size) != (partly.changed, partly.size):
            raise self._changed(partly.path, f"after {partly.rows} of its rows were read")
        self._files.admit(partly.path)
        split = Split(partly.path, 0)
        read = PartlyRead(0, partly.path, partly.rows, partly.newest, partly.bound)
        self._open = SplitRows(split, self._open_split(split, batch_rows), self._event_time, self._files.name, read)

    def _close_read(self) -> None:
        """The open file was read to its end."""
        assert self._open is not None
        newest, self._open = self._open.partly_read.newest, None
        now = self._now(self._opened.path)
        if now is not None and now != self._opened:
            raise self._changed(now.path, "while it was read")
        self._newest = self._newest if newest is None else max(self._newest, newest)
        self._read.add(self._opened)

    def _look(self) -> None:
        """List the folder, and take the new files of this reader's buckets."""
        began, known_before = self._clock(), self._newest
        new, newest_of_others = list[Arrived](), None
        for path, described in self._files.arrivals():
            own = bucket_of(digest_of(path)) % self._parallelism == self._index
            file = (described or self._now(path)) if own or self._event_time is not None else None
            if file is None:
                continue
            if not own:
                newest_of_others = file if newest_of_others is None else max(newest_of_others, file)
            elif self._is_new(file):
                new.append(file)
        self._take(sorted(new))
        self._settled = max(self._settled, known_before)
        self._peek_at(newest_of_others)
        ended = self._clock()
        self._next_look = ended + max(self._follow.poll_every, (ended - began) * (1 / LOOKING - 1))

    def _take(self, files: Sequence[Arrived]) -> None:
        for file in files:
            self._listed += 1
            split = self._files.peek(file.path) if self._event_time is not None and len(files) <= MOST_LOOKED_AT else Split(file.path, 0)
            split = Split(split.path, self._listed, min_time=split.min_time, max_time=split.max_time)
            self._unread.append(split, MIN_TIME if split.min_time is None else split.min_time)
            self._queue.append(file)

    def _peek_at(self, file: Arrived | None) -> None:
        """Take note of the event time of another reader's file."""
        if self._event_time is None or file is None or file == self._peeked:
            return
        self._peeked = file
        with suppress(ConnectorError):  # the reader whose file it is reports the error
            split = self._files.peek(file.path)
            if split.max_time is not None:
                self._newest = max(self._newest, split.max_time)
            elif split.min_time is not None:
                self._newest = max(self._newest, split.min_time + self._event_time.max_delay)

    def _is_new(self, file: Arrived) -> bool:
        try:
            return self._read.is_new(file)
        except ValueError:
            raise self._changed(file.path, "after it was read") from None

    def _still(self, path: str, when: str) -> Arrived:
        file = self._now(path)
        if file is None:
            raise ConnectorError(f"operator `{self._files.name}`: {path} is gone before it {when}; put it back")
        return file

    def _now(self, path: str) -> Arrived | None:
        """The file as it is now."""
        try:
            return look_at(path)
        except OSError as error:
            raise ConnectorError(f"operator `{self._files.name}`: {path} can't be looked at: {error}") from error

    def _changed(self, path: str, when: str) -> ConnectorError:
        return ConnectorError(
            f"operator `{self._files.name}`: {path} has changed {when}; a file of a followed folder must be complete when it appears: "
            "write it under a name that begins with `.` or `_`, or elsewhere on the same file system, and rename it"
        )


def share_out_followed(positions: Sequence[Any], parallelism: int, operator: str) -> list[Any]:
    """Positions of `parallelism` readers that together continue where the readers at `positions` were."""
    read = [bucket for position in positions for bucket in position["read"]]
    partly = [file for position in positions for file in position["partly"]]
    return [
        {
            **common,
            "read": [bucket for bucket in read if bucket[0] % parallelism == index],
            "partly": [file for file in partly if bucket_of(digest_of(file[0])) % parallelism == index],
        }
        for index, common in enumerate(shared(positions, parallelism, operator))
    ]
