"""Reads the files of a folder as they appear, each once, in the order of the times of their last changes.

A reader lists the folder when it has read all files it knows, and takes the files of its buckets (`arrived.py`). Its position has
the files that it has read (`read_files.py`) and those that it has partly read; each belongs to a bucket, so a reassignment moves
buckets.

Event time: a later file may be `max_delay` behind the newest time before it. Files that a look at the folder doesn't show appear
after the look began, so the newest time known at its beginning bounds them, and the watermark. Each look also reads the time of
the other readers' newest file, so that a reader without files doesn't hold back the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

from ...engine.errors import ConnectorError
from ...engine.protocol.elements import MIN_TIME
from ...engine.time.event_time import EventTime
from ..files.split_position import PartlyRead
from ..files.splits import OpenSplit, Split
from ..quiet import CLOCKS, Clocks
from .arrived import BUCKETS, ArrivedFile, bucket_of, digest_of, look_at
from .files_in_turn import MOST_LOOKED_AT, FilesInTurn
from .follow import Follow, shared
from .read_files import ReadFiles


class FollowedFiles(Protocol):
    """The part of a source that its reader of followed files needs."""

    name: str

    def arrivals(self) -> Iterator[tuple[str, ArrivedFile | None]]:
        """Yield the paths of all existing files, with their state where the listing contains it."""

    def peek(self, path: str) -> Split:
        """Return the file as a split, with the event times that are known without reading it."""

    def admit(self, path: str) -> bool:
        """Return True if the file has rows. Raises ConnectorError if they don't fit the stream's columns."""


class FollowReader(FilesInTurn[ArrivedFile]):
    """A reader of the files in one worker's buckets."""

    def __init__(
        self,
        files: FollowedFiles,
        open_split: OpenSplit,
        follow: Follow,
        *,
        index: int,
        parallelism: int,
        event_time: EventTime | None,
        clocks: Clocks = CLOCKS,
    ) -> None:
        super().__init__(files.name, open_split, index=index, parallelism=parallelism, event_time=event_time, clocks=clocks)
        self._files, self._follow = files, follow
        self._read = ReadFiles(follow.max_age)
        self._settled = MIN_TIME
        self._peeked: ArrivedFile | None = None

    def seek(self, position: Any) -> None:
        super().seek(position)
        self._read = ReadFiles(self._follow.max_age, position["read"])
        for path, changed, size, *read in position["partly"]:
            self._partly.append((ArrivedFile(changed, path, size), PartlyRead(0, path, *read)))

    def _position_of_files(self) -> dict[str, Any]:
        return {
            "read": self._read.encode(range(self._index, BUCKETS, self._parallelism)),
            "partly": [[file.path, file.changed, file.size, read.rows, read.newest, read.bound] for file, read in self._partly_read()],
        }

    def _bound_of_later_files(self, event_time: EventTime) -> int:
        return self._settled - event_time.max_delay

    def _begin(self, file: ArrivedFile, read: PartlyRead | None) -> ArrivedFile | None:
        now = self._still(file.path, "was read" if read is None else f"was read to its end, after {read.rows} rows")
        if read is not None and now != file:
            raise self._changed(file.path, f"after {read.rows} of its rows were read")
        if self._files.admit(file.path):
            return now
        self._read.add(now)
        return None

    def _was_read(self, file: ArrivedFile, newest: int | None) -> None:
        now = self._now(file.path)
        if now is not None and now != file:
            raise self._changed(file.path, "while it was read")
        self._newest = self._newest if newest is None else max(self._newest, newest)
        self._read.add(file)

    def _look(self) -> None:
        """List the folder, and take the new files of this reader's buckets."""
        began, known_before = self._clock(), self._newest
        new, newest_of_others = list[ArrivedFile](), None
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
        self._next_look = self._follow.next_look(began, self._clock())

    def _take(self, files: Sequence[ArrivedFile]) -> None:
        for file in files:
            split = self._files.peek(file.path) if self._event_time is not None and len(files) <= MOST_LOOKED_AT else Split(file.path, 0)
            self._enqueue(file, split, MIN_TIME if split.min_time is None else split.min_time)

    def _peek_at(self, file: ArrivedFile | None) -> None:
        """Note the event time of another reader's file."""
        if self._event_time is None or file is None or file == self._peeked:
            return
        self._peeked = file
        with suppress(ConnectorError):  # the reader whose file it is reports the error
            split = self._files.peek(file.path)
            if split.max_time is not None:
                self._newest = max(self._newest, split.max_time)
            elif split.min_time is not None:
                self._newest = max(self._newest, split.min_time + self._event_time.max_delay)

    def _is_new(self, file: ArrivedFile) -> bool:
        try:
            return self._read.is_new(file)
        except ValueError:
            raise self._changed(file.path, "after it was read") from None

    def _still(self, path: str, when: str) -> ArrivedFile:
        file = self._now(path)
        if file is None:
            raise ConnectorError(f"operator `{self._files.name}`: {path} was removed before it {when}; restore it")
        return file

    def _now(self, path: str) -> ArrivedFile | None:
        try:
            return look_at(path)
        except OSError as error:
            raise ConnectorError(f"operator `{self._files.name}`: {path} can't be examined: {error}") from error

    def _changed(self, path: str, when: str) -> ConnectorError:
        return ConnectorError(
            f"operator `{self._files.name}`: {path} has changed {when}; a file of a followed folder must be complete when it appears: "
            "write it under a name that begins with `.` or `_`, or elsewhere on the same file system, and rename it"
        )


def share_out_followed(positions: Sequence[Any], parallelism: int, operator: str) -> list[Any]:
    """Return positions of `parallelism` readers that together continue where the readers at `positions` were."""
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
