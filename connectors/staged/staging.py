"""Staging of rows until their checkpoint completes: files in a folder that all workers and the committing process share.

A file is written once, has a checksum, and is on the disk before its checkpoint counts. On a local file system it has a hidden
name until then.

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
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ...state.durable import make_folder, sync_folder
from ...state.errors import CorruptStateError
from ...state.files import StateFile, StateFileWriter, read_chunks
from ...state.object_stores import file_system, fresh_listing, has_folders
from ...state.store_errors import translated

_ENDING, _HIDDEN = ".staged", ".inprogress"


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A staged file with `rows` rows of `payload` bytes, and `size` bytes in all."""

    name: str
    rows: int
    payload: int
    size: int
    checksum: str

    @classmethod
    def of(cls, entry: Sequence[Any]) -> StagedFile:
        """Create it from a result of `entry`."""
        return cls(*entry)

    def entry(self) -> list[Any]:
        """Return the fields as msgpack and a manifest can hold them."""
        return [self.name, self.rows, self.payload, self.size, self.checksum]


class StagingPlace(NamedTuple):
    """The folder `staging` of a sink, the target of its rows, the sink's id in all runs of a job, and the run."""

    staging: str
    target: str
    sink: str
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The sink's committable as fields: the files that a writer has staged for a checkpoint. `files`: their entries."""

    staging: str
    target: str
    sink: str
    run: str
    files: list[list[Any]]

    @property
    def place(self) -> StagingPlace:
        return StagingPlace(self.staging, self.target, self.sink, self.run)


class Staging:
    """A folder for staged files. `url`: a local path, or any URL that fsspec opens. File names begin with the run that writes
    them.
    """

    def __init__(self, url: str) -> None:
        import fsspec

        self.url = url
        self._files, self._root = file_system(url)
        self._local = isinstance(self._files, fsspec.implementations.local.LocalFileSystem)

    @property
    def folder(self) -> Path | None:
        """The folder, if it is local."""
        return Path(self._root) if self._local else None

    def write(self, stem: str, rows: Iterable[pa.RecordBatch]) -> StagedFile:
        """Write a new file durably. Raises OSError."""
        name, payload = stem + _ENDING, 0
        try:
            with self._reached(name), self._new(name) as file:
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
        """Give the files their final names, durably. Raises OSError."""
        if self._local and files:
            for file in files:
                self._path(f".{file.name}{_HIDDEN}").replace(self._path(file.name))
            sync_folder(Path(self._root))

    def read(self, file: StagedFile) -> list[pa.RecordBatch]:
        """Read the rows of a file.

        Raises CorruptStateError before the first row if the file is missing or was changed, and OSError.
        """
        try:
            with self._reached(file.name):
                data = self._files.cat_file(posixpath.join(self._root, file.name))
        except FileNotFoundError as error:
            raise CorruptStateError(f"{posixpath.join(self.url, file.name)} is missing") from error
        return list(read_chunks(io.BytesIO(data), StateFile(file.name, file.size, file.checksum, file.rows)))

    def names(self, run: str) -> list[str]:
        """List the sealed files of a run. Raises OSError."""
        with suppress(FileNotFoundError), self._reached("list"):
            found = [posixpath.basename(entry["name"]) for entry in fresh_listing(self._files, self._root)]
            return sorted(name for name in found if name.startswith(f"{run}-") and name.endswith(_ENDING))
        return []

    def remove(self, names: Iterable[str]) -> None:
        """Remove sealed files; missing ones count as removed. Raises OSError."""
        for name in names:
            with suppress(FileNotFoundError), self._reached(name):
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
        """Remove files that killed writers of a run never sealed. Raises OSError."""
        if self._local and Path(self._root).is_dir():
            for path in Path(self._root).glob(f".{run}-*{_HIDDEN}"):
                path.unlink(missing_ok=True)

    def _new(self, name: str) -> Any:
        if self._local:
            make_folder(Path(self._root))
            return self._path(f".{name}{_HIDDEN}").open("xb")
        if has_folders(self._files):
            self._files.makedirs(self._root, exist_ok=True)
        return self._files.open(posixpath.join(self._root, name), "wb")

    def _reached(self, what: str) -> AbstractContextManager[None]:
        """Translate errors of a remote file system in the block."""
        return nullcontext() if self._local else translated(self.url, what)

    def _path(self, name: str) -> Path:
        return Path(self._root, name)


def chunks(files: Iterable[StagedFile], most_rows: int, most_bytes: int) -> list[list[StagedFile]]:
    """Group the files into chunks for one transaction each, deterministically.

    They are in the order of their names, which for each writer is the order in which it wrote them.

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
