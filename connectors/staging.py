"""Rows that wait for their checkpoint: files in a folder that all workers and the committing process reach.

A file is written once, has a checksum, and is on the disk before its checkpoint counts. On a local file system it has a hidden name until
then.

>>> import tempfile
>>> staging = Staging(tempfile.mkdtemp())
>>> rows = pa.record_batch({"key": pa.array([b"a"]), "value": pa.array([b"1"])})
>>> file = staging.write("ab12-0-0", [rows])
>>> staging.seal([file])
>>> [found.to_pydict() for found in staging.read(StagedFile.of(file.entry()))]
[{'key': [b'a'], 'value': [b'1']}]
>>> staging.remove([file.name])
>>> staging.names("ab12")
[]
"""

from __future__ import annotations

import io
import os
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ..state.durable import make_folder, sync_folder
from ..state.errors import CorruptStateError
from ..state.files import StateFile, StateFileWriter, read_chunks

_ENDING, _HIDDEN = ".staged", ".inprogress"


@dataclass(frozen=True, slots=True)
class StagedFile:
    """`rows` rows of `payload` bytes, in a file of `size` bytes."""

    name: str
    rows: int
    payload: int
    size: int
    checksum: str

    @classmethod
    def of(cls, entry: Sequence[Any]) -> StagedFile:
        """From what `entry` gave."""
        return cls(*entry)

    def entry(self) -> list[Any]:
        """As msgpack and a manifest can hold it."""
        return [self.name, self.rows, self.payload, self.size, self.checksum]


class Place(NamedTuple):
    """Where rows wait and where they go: the folder `staging`, the target, whose they are in all runs of a job, and the run."""

    staging: str
    target: str
    sink: str
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """What a writer has staged for a checkpoint: the sink's committable, as fields. `files`: their entries."""

    staging: str
    target: str
    sink: str
    run: str
    files: list[list[Any]]

    @property
    def place(self) -> Place:
        return Place(self.staging, self.target, self.sink, self.run)


class Staging:
    """`url`: a local path, or anything fsspec opens. Names begin with the run that writes."""

    def __init__(self, url: str) -> None:
        import fsspec

        self.url = url
        self._files, self._root = fsspec.core.url_to_fs(url)
        self._local = isinstance(self._files, fsspec.implementations.local.LocalFileSystem)

    @property
    def folder(self) -> Path | None:
        """The folder, if it is local."""
        return Path(self._root) if self._local else None

    def write(self, stem: str, rows: Iterable[pa.RecordBatch]) -> StagedFile:
        """A new file, whose content is on the disk. Raises OSError."""
        name, payload = stem + _ENDING, 0
        try:
            with self._new(name) as file:
                writer = StateFileWriter(file, name)
                for batch in rows:
                    writer.write(batch)
                    payload += batch.nbytes
                if self._local:
                    file.flush()
                    os.fsync(file.fileno())
        except BaseException:
            self.abandon([name])
            raise
        entry = writer.finish()
        return StagedFile(name, entry.keys, payload, entry.size, entry.checksum)

    def seal(self, files: Sequence[StagedFile]) -> None:
        """Give the files their names, and make these durable. Raises OSError."""
        if self._local and files:
            for file in files:
                self._path(f".{file.name}{_HIDDEN}").replace(self._path(file.name))
            sync_folder(Path(self._root))

    def read(self, file: StagedFile) -> Iterator[pa.RecordBatch]:
        """The rows. Raises CorruptStateError before the first if the file is missing or is not what was written, OSError."""
        try:
            data = self._files.cat_file(posixpath.join(self._root, file.name))
        except FileNotFoundError as error:
            raise CorruptStateError(f"{posixpath.join(self.url, file.name)} is gone") from error
        return read_chunks(io.BytesIO(data), StateFile(file.name, file.size, file.checksum, file.rows))

    def names(self, run: str) -> list[str]:
        """The sealed files of a run. Raises OSError."""
        with suppress(FileNotFoundError):
            found = [posixpath.basename(path) for path in self._files.ls(self._root, detail=False, refresh=True)]
            return sorted(name for name in found if name.startswith(f"{run}-") and name.endswith(_ENDING))
        return []

    def remove(self, names: Iterable[str]) -> None:
        """Remove sealed files; those that are gone already count as removed. Raises OSError."""
        for name in names:
            with suppress(FileNotFoundError):
                self._files.rm_file(posixpath.join(self._root, name))

    def abandon(self, names: Iterable[str]) -> None:
        """Remove files that were never sealed. Never raises."""
        for name in names:
            with suppress(OSError):
                if self._local:
                    self._path(f".{name}{_HIDDEN}").unlink(missing_ok=True)
                else:
                    self.remove([name])

    def remove_hidden(self, run: str) -> None:
        """Remove what killed writers of a run never sealed. Raises OSError."""
        if self._local and Path(self._root).is_dir():
            for path in Path(self._root).glob(f".{run}-*{_HIDDEN}"):
                path.unlink(missing_ok=True)

    def _new(self, name: str) -> Any:
        if self._local:
            make_folder(Path(self._root))
            return self._path(f".{name}{_HIDDEN}").open("xb")
        self._files.makedirs(self._root, exist_ok=True)
        return self._files.open(posixpath.join(self._root, name), "wb")

    def _path(self, name: str) -> Path:
        return Path(self._root, name)


def chunks(files: Iterable[StagedFile], most_rows: int, most_bytes: int) -> list[list[StagedFile]]:
    """The files in chunks for one transaction each: the same ones for the same files.

    They are in order of their names, which is for each writer the order in which it wrote them.

    A chunk exceeds the bounds only if one file does.

    >>> files = [StagedFile(name, 10, 100, 0, "") for name in ("r-b", "r-a", "r-c")]
    >>> [[file.name for file in chunk] for chunk in chunks(files, 20, 1000)]
    [['r-a', 'r-b'], ['r-c']]
    """
    found: list[list[StagedFile]] = []
    rows = size = 0
    for file in sorted(files, key=lambda file: file.name):
        if not found or rows + file.rows > most_rows or size + file.payload > most_bytes:
            found.append([])
            rows = size = 0
        found[-1].append(file)
        rows, size = rows + file.rows, size + file.payload
    return found
