"""Reads the files that the versions of a table add (Delta Lake, Iceberg), each once, in the order of the versions.

What a version adds never changes, so all readers see the same files. As for other followed files, a hash of a file's name
assigns it to a reader: bucket `b` belongs to reader `b % parallelism`. For each of its buckets a reader knows the next version to
list; a version is listed when all earlier ones have been read. Its position has these numbers, and the listed files that it has
not read to the end.

Event time: a row may be `max_delay` behind the newest time in earlier versions. So the newest time in the files of the listed
versions, less `max_delay`, bounds the files of all later ones. To know it, each reader examines the other readers' files without
reading them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from ...engine.errors import ConnectorError
from ...engine.protocol.elements import MIN_TIME
from ...engine.time.event_time import EventTime
from ..files.split_position import PartlyRead
from ..files.splits import OpenSplit, Split
from ..quiet import CLOCKS, Clocks
from .arrived import BUCKETS, bucket_of, digest_of
from .files_in_turn import MOST_LOOKED_AT, FilesInTurn
from .follow import shared


class FollowedTable(Protocol):
    """The part of a source of such a table that its reader needs."""

    name: str

    @property
    def first(self) -> tuple[int, Sequence[str]]:
        """The version at which reading begins, and its files."""

    def added(self, version: int) -> Sequence[str] | None:
        """List the files with new rows of a version; return None if the table hasn't reached it.

        Raises ConnectorError if the version can't be read.
        """

    def peek(self, file: str) -> Split:
        """Return the file as a split with its known event times. Raises ConnectorError if the file was removed."""


class VersionsReader(FilesInTurn[tuple[int, str]]):
    """A reader of the files in one worker's buckets, each with its version. `poll_every`: seconds between looks for a new
    version.
    """

    def __init__(
        self,
        table: FollowedTable,
        open_split: OpenSplit,
        poll_every: float,
        *,
        index: int,
        parallelism: int,
        event_time: EventTime | None,
        clocks: Clocks = CLOCKS,
    ) -> None:
        super().__init__(table.name, open_split, index=index, parallelism=parallelism, event_time=event_time, clocks=clocks)
        self._table, self._poll_every = table, poll_every
        first, files = table.first
        self._next = dict.fromkeys(range(index, BUCKETS, parallelism), first + 1)
        self._listed: list[tuple[int, str]] = [(first, file) for file in files if _is_of(file, index, parallelism)]
        self._others = [(first, file) for file in files if not _is_of(file, index, parallelism)]
        self._ahead = list[tuple[int, int]]()

    def seek(self, position: Any) -> None:
        super().seek(position)
        self._next = {bucket: version for version, buckets in position["next"] for bucket in buckets}
        self._listed, self._others = [(version, file) for version, file in position["listed"]], []
        for version, file, *read in position["partly"]:
            self._partly.append(((version, file), PartlyRead(0, file, *read)))

    def _position_of_files(self) -> dict[str, Any]:
        return {
            "next": _runs(self._next),
            "listed": [list(each) for each in (*self._listed, *self._queue)],
            "partly": [[*file, read.rows, read.newest, read.bound] for file, read in self._partly_read()],
        }

    def _bound_of_later_files(self, event_time: EventTime) -> int:
        """Bound also the listed files that no reader has examined yet."""
        return MIN_TIME if self._listed or self._newest == MIN_TIME else self._newest - event_time.max_delay

    def _begin(self, file: tuple[int, str], read: PartlyRead | None) -> tuple[int, str]:
        return file

    def _was_read(self, file: tuple[int, str], newest: int | None) -> None:
        self._know(file[0], newest)

    def _look(self) -> None:
        """Queue listed files; list versions until one has files for this reader, or there is no later version."""
        if self._listed or self._others:
            self._take(self._listed, self._others)
            self._listed, self._others = [], []
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
        bound = MIN_TIME if self._event_time is None else self._bound_of_later_files(self._event_time)
        looks = self._event_time is not None and len(own) + len(others) <= MOST_LOOKED_AT
        for version, file in own:
            split = self._table.peek(file) if looks else Split(file, 0)
            self._enqueue((version, file), split, bound if split.min_time is None else split.min_time)
            self._know(version, split.max_time)
        for version, file in others if looks else ():
            with suppress(ConnectorError):  # the reader whose file it is reports the error
                self._know(version, self._table.peek(file).max_time)

    def _know(self, version: int, newest: int | None) -> None:
        """Note the newest event time in a file.

        It counts once no earlier version is unlisted: `self._newest` bounds those.
        """
        if newest is not None:
            self._ahead.append((version, newest))
        first = min(self._next.values(), default=version + 1)
        self._newest = max([self._newest, *(time_ for number, time_ in self._ahead if number < first)])
        self._ahead = [each for each in self._ahead if each[0] >= first]


def share_out_versions(positions: Sequence[Any], parallelism: int, operator: str) -> list[Any]:
    """Return positions of `parallelism` readers that together continue where the readers at `positions` were."""
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
    """Group the buckets as a list of `[version, its buckets]`."""
    return [[version, sorted(bucket for bucket in versions if versions[bucket] == version)] for version in sorted({*versions.values()})]
