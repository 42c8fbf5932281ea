"""Base of the sources that read files: the driver lists and checks them once, the workers share out their splits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import pyarrow as pa

from ..engine.errors import ConnectorError
from ..engine.event_time import EventTime
from ..engine.source import Source
from .paths import Paths, find_files, path_list
from .splits import Split, SplitReader


class FileSource(Source):
    """Files that don't change while the job runs. A subclass says how they are checked, cut into splits, and opened."""

    guarantee = "exactly once (seeks to the checkpointed file and row)"
    extensions: tuple[str, ...]

    def __init__(self, paths: Paths, event_time: EventTime | None, name: str) -> None:
        self.name, self._paths, self._event_time = name, path_list(paths, name), event_time
        self._splits: list[Split] | None = None

    def start(self) -> None:
        self._splits = self._plan(list(dict.fromkeys(file for path in self._paths for file in self._list(path))))

    def reader(self, index: int, parallelism: int) -> SplitReader:
        if self._splits is None:
            raise ConnectorError(f"operator `{self.name}`: start() lists the files and must be called before reader()")
        return SplitReader(self.name, self._splits, self._open, index=index, parallelism=parallelism, event_time=self._event_time)

    def _list(self, path: str) -> list[str]:
        """The files of a file, a folder or a glob, in the order in which they are read. Raises ConnectorError where there is none."""
        return find_files(path, self.extensions, self.name)

    @abstractmethod
    def _plan(self, files: Sequence[str]) -> list[Split]:
        """Checks all `files` as far as it can without reading them through, and cuts them into splits. Raises ConnectorError."""

    @abstractmethod
    def _open(self, split: Split, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of `split`, see `splits.OpenSplit`."""


def whole_files(files: Sequence[str]) -> list[Split]:
    """Each file as one split."""
    return [Split(file, ordinal) for ordinal, file in enumerate(files)]


def refuse_duplicates(schema: pa.Schema, path: str, operator: str) -> None:
    """Raises ConnectorError if two columns of the file have one name: a row could hold only one of them."""
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise ConnectorError(f"operator `{operator}`: {path} has two columns named `{twice}`; rename one of them")
