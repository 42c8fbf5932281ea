"""Where checkpoints lie: a folder on any file system that fsspec knows, with a folder per checkpoint.

`checkpoint-00000012/` holds state files and, once the checkpoint is complete, its `manifest`. A checkpoint without a manifest doesn't
count, whatever files it has; manifests appear whole or not at all.

>>> import tempfile
>>> store = CheckpointStore(tempfile.mkdtemp())
>>> with store.writing(3, "count-0") as writer:
...     writer.write(pa.record_batch({"key": [1]}))
>>> store.complete(3, b"all of it"), store.completed(), store.manifest(3)
(None, [3], b'all of it')
>>> [chunk.num_rows for chunk in store.chunks(3, writer.finish())]
[1]
"""

from __future__ import annotations

import os
import posixpath
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa

from .files import CorruptStateError, StateFile, StateFileWriter, read_chunks

MANIFEST = "manifest"
_PREFIX = "checkpoint-"


class CheckpointStore:
    """`url`: a local path, or anything fsspec opens (`s3://bucket/jobs/delays`). Raises ValueError for an unknown protocol."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._files, self._root = fsspec.core.url_to_fs(url)
        self._local = isinstance(self._files, fsspec.implementations.local.LocalFileSystem)

    @contextmanager
    def writing(self, checkpoint: int, name: str) -> Iterator[StateFileWriter]:
        """A new state file of `checkpoint`. Raises OSError where it can't be written, FileExistsError never: names are made unique."""
        folder = self.folder(checkpoint)
        self._files.makedirs(folder, exist_ok=True)
        path = f"{name}-{uuid.uuid4().hex[:8]}.state"
        with self._files.open(posixpath.join(folder, path), "wb") as file:
            yield StateFileWriter(file, path)

    def chunks(self, checkpoint: int, entry: StateFile) -> Iterator[pa.RecordBatch]:
        """The chunks of a state file. Raises CorruptStateError if it is gone or not what was written, before the first chunk."""
        with self._reading(posixpath.normpath(posixpath.join(self.folder(checkpoint), entry.path))) as file:
            yield from read_chunks(file, entry)

    def complete(self, checkpoint: int, manifest: bytes) -> None:
        """Write the manifest: from now on the checkpoint counts. Raises OSError where it can't be written."""
        path = posixpath.join(self.folder(checkpoint), MANIFEST)
        self._files.makedirs(self.folder(checkpoint), exist_ok=True)
        if not self._local:
            self._files.pipe_file(path, manifest)  # object stores show an object when all of it is there
            return
        hidden = Path(f"{path}.inprogress")
        with hidden.open("wb") as file:
            file.write(manifest)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)

    def withdraw(self, checkpoint: int) -> None:
        """Take back a manifest of which nobody knows whether it was written whole."""
        with suppress(OSError):
            self._files.rm_file(posixpath.join(self.folder(checkpoint), MANIFEST))

    def manifest(self, checkpoint: int) -> bytes:
        """The manifest as it was written. Raises CorruptStateError if there is none."""
        with self._reading(posixpath.join(self.folder(checkpoint), MANIFEST)) as file:
            return bytes(file.read())

    def completed(self) -> list[int]:
        """The checkpoints that have a manifest, rising."""
        return sorted(n for n in self._numbers() if self._files.exists(posixpath.join(self.folder(n), MANIFEST)))

    @property
    def occupied(self) -> bool:
        """Whether anything lies in the store's own folder."""
        return bool(self._files.exists(self._root) and self._files.ls(self._root, detail=False, refresh=True))

    def keep(self, checkpoints: Iterable[int], above: int) -> None:
        """Remove all checkpoints but these and those numbered above `above`, which may be under way. What can't be removed stays."""
        kept = set(checkpoints)
        for number in self._numbers():
            if number not in kept and number <= above:
                with suppress(OSError):
                    self._files.rm(self.folder(number), recursive=True)

    def copy(self, checkpoint: int, entries: Iterable[StateFile], target: CheckpointStore, number: int) -> None:
        """Copy state files to checkpoint `number` of another store. Raises OSError, and CorruptStateError if one is gone."""
        target._files.makedirs(target.folder(number), exist_ok=True)
        for entry in entries:
            path = posixpath.join(target.folder(number), posixpath.basename(entry.path))
            source = posixpath.normpath(posixpath.join(self.folder(checkpoint), entry.path))
            with self._reading(source) as file, target._files.open(path, "wb") as copy:
                while piece := file.read(1 << 20):
                    copy.write(piece)

    def folder(self, checkpoint: int) -> str:
        """The folder of a checkpoint; checkpoint 0 is the store's own: that of a savepoint."""
        return posixpath.join(self._root, f"{_PREFIX}{checkpoint:08d}") if checkpoint else str(self._root)

    @contextmanager
    def _reading(self, path: str) -> Iterator[Any]:
        try:
            file = self._files.open(path, "rb")
        except FileNotFoundError as error:
            raise CorruptStateError(f"{path} is gone") from error
        with file:
            yield file

    def _numbers(self) -> list[int]:
        try:
            names = [posixpath.basename(path.rstrip("/")) for path in self._files.ls(self._root, detail=False, refresh=True)]
        except FileNotFoundError:
            return []
        return [int(name.removeprefix(_PREFIX)) for name in names if name.startswith(_PREFIX) and name.removeprefix(_PREFIX).isdigit()]
