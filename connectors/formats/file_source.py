"""The base of file sources: the driver lists and checks the files, and the workers divide their splits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import islice
from typing import Any, Self

import pyarrow as pa

from ...engine.errors import ConnectorError
from ...engine.needed import Needed
from ...engine.protocol.elements import MAX_TIME
from ...engine.source import Source, SourceReader
from ...engine.time.event_time import EventTime
from ..files.folder_columns import FolderColumns
from ..files.paths import Paths, files_now, find_files, path_list, refuse_missing, remote_files
from ..files.remote import is_remote
from ..files.split_position import SplitPosition, share_out_splits
from ..files.splits import Split, SplitReader
from ..followed.arrived import ArrivedFile
from ..followed.files_in_turn import MOST_LOOKED_AT
from ..followed.follow import Follow
from ..followed.reader import FollowReader, share_out_followed
from ..quiet import idle_advice

FOUND = ("_splits", "_schema", "_all", "_known", "_first", "_checked", "_found", "_table", "_shown")
"""The attributes of file sources that `start` finds."""

FIRST_BYTES = 65_536
"""The bytes of a file that are decoded to find its first rows."""


class FileSource(Source):
    """A source of files that don't change while the job runs: those present at the start, and with `follow` also those that
    appear later.

    A subclass checks them, cuts them into splits, and opens splits.
    """

    guarantee = "exactly once (seeks to the checkpointed file and row)"
    extensions: tuple[str, ...]
    may_change = frozenset({"poll_every"})
    has_columns = True
    """False if rows can't have the columns of the folders that their file is in."""

    def __init__(self, paths: Paths, event_time: EventTime | None, follow: Follow | None, name: str) -> None:
        self.name, self._paths, self._event_time = name, path_list(paths, name), event_time
        self.timed, self.time_column = event_time is not None, None if event_time is None else event_time.column
        self._splits: list[Split] | None = None
        self.needed: Needed | None = None
        self.follow = follow
        self.idle_advice = "" if follow is None else idle_advice(event_time, "folder")
        self.folders = FolderColumns(self._paths, name)

    def given_settings(self) -> dict[str, Any]:
        given = self.settings_without("needed", "conditions", "follow", "folders", "idle_advice", *FOUND)
        every, others = None, self.follow
        if self.follow is not None:
            every, others = self.follow.poll_every, replace(self.follow, poll_every=0.0)
        return {**given, "follow": others, "poll_every": every}

    def continuing(self, other: Source) -> Source:
        assert isinstance(other, type(self))
        source = copy(other)
        source.follow, source.needed, source.conditions = self.follow, self.needed, self.conditions
        if source._splits is not None:  # noqa: SLF001 -- a copy of the other one
            source._splits = [replace(split, unwanted=False) for split in source._splits]  # noqa: SLF001 -- as above
        source.narrow()
        return source

    def narrow(self) -> None:
        """Determine the columns to read after those needed have changed, for formats that read columns one by one."""

    def start(self) -> None:
        if self.follow is not None:
            for path in self._paths:
                if not is_remote(path):  # an object store has no folder without files
                    refuse_missing(path, self.name)
            self._plan([path for path, _ in islice(self.arrivals(), MOST_LOOKED_AT)])
            return
        splits = self._plan([path for path, _ in self.arrivals()])
        self._splits = [self._bounded(split) for split in splits] if len(splits) <= MOST_LOOKED_AT else splits

    def reader(self, index: int, parallelism: int) -> SourceReader:
        if self.follow is not None:
            return FollowReader(self, self._open, self.follow, index=index, parallelism=parallelism, event_time=self._event_time)
        if self._splits is None:
            raise ConnectorError(f"operator `{self.name}`: start() lists the files and must be called before reader()")
        return SplitReader(self.name, self._splits, self._open, index=index, parallelism=parallelism, event_time=self._event_time)

    def describe(self) -> str:
        return "" if self.needed is None else self.needed.described

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        if self.follow is not None:
            return share_out_followed(positions, parallelism, self.name)
        shared = share_out_splits([SplitPosition.decode(position) for position in positions], parallelism, self.name)
        return [position.encode() for position in shared]

    def earliest(self, position: Any) -> int:
        if self.follow is not None and self._event_time is not None:
            return int(position["watermark"])
        return MAX_TIME if self._event_time is None else SplitPosition.decode(position).earliest

    def _list(self, path: str) -> list[str]:
        """List the files of a path, a folder or a glob, in reading order. Raises ConnectorError if there is none and none may
        follow.
        """
        return find_files(path, self.extensions, self.name) if self.follow is None else files_now(path, self.extensions)

    def arrivals(self) -> Iterator[tuple[str, ArrivedFile | None]]:
        found = dict[str, ArrivedFile | None]()
        for path in self._paths:
            found |= self._list_remote(path) if is_remote(path) else dict.fromkeys(self._list(path))
        if not self.has_columns:
            for path in found:
                self.folders.refuse(path)
        yield from found.items()

    def _list_remote(self, url: str) -> dict[str, ArrivedFile | None]:
        """List the files of a URL, each with its size and time of change."""
        files = remote_files(url, self.extensions, self.name)
        if not files and self.follow is None:
            raise ConnectorError(f"operator `{self.name}`: {url} has no files that end with {' or '.join(self.extensions)}")
        return {file.url: ArrivedFile(file.changed, file.url, file.size) for file in files}

    def peek(self, path: str) -> Split:
        return self._bounded(Split(path, 0))

    def admit(self, path: str) -> bool:
        return True

    @abstractmethod
    def _plan(self, files: Sequence[str]) -> list[Split]:
        """Check all `files` without reading them whole, and cut them into splits. Raises ConnectorError."""

    @abstractmethod
    def _open(self, split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `split`, see `splits.OpenSplit`."""

    def _reading(self, needed: Needed) -> Self:
        """Return a copy that reads only the needed columns, for formats that read columns one by one."""
        source = copy(self)
        source.needed = needed if self._event_time is None else needed.with_names([self._event_time.column])
        return source

    def _to_read(self, schema: pa.Schema) -> pa.Schema:
        return schema if self.needed is None else pa.schema([schema.field(name) for name in self.needed.among(schema.names)])

    def _first_rows(self, split: Split) -> pa.RecordBatch | None:
        """Return some rows from the first `FIRST_BYTES` of `split`, like those of `_open`, or None if that is impossible."""
        return None

    def _bounded(self, split: Split) -> Split:
        """Give the split a `min_time`: the first row's time less `max_delay`. No later row is older."""
        if self._event_time is None or split.min_time is not None:
            return split
        try:
            rows = self._first_rows(split)
        except (pa.ArrowException, OSError):  # the worker that reads the file reports the error and its place
            return split
        if rows is None or not rows.num_rows:
            return split
        first = int(self._event_time.extract(rows.slice(0, 1), self.name)[0])
        return replace(split, min_time=first - self._event_time.max_delay)


def whole_files(files: Sequence[str]) -> list[Split]:
    """Return each file as one split."""
    return [Split(file, ordinal) for ordinal, file in enumerate(files)]


def refuse_duplicates(schema: pa.Schema, path: str, operator: str) -> None:
    """Raise ConnectorError if two columns of the file share a name: a row could hold only one of them."""
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise ConnectorError(f"operator `{operator}`: {path} has two columns named `{twice}`; rename one of them")
