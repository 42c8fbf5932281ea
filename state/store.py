"""The store of checkpoints: a folder on any file system that fsspec knows, with a folder per checkpoint.

`checkpoint-00000012/` holds state files and, once the checkpoint is complete, its `manifest`. A checkpoint without a manifest doesn't
count, whatever files it has; manifests appear whole or not at all. A manifest may refer to files in the folders of earlier checkpoints, so
a file stays while a remaining manifest refers to it. `terms/` has a file for each coordinator that replaced a lost one
(`scheduler/checkpoints/terms.py`).

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

import posixpath
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from .direct_file import DirectFile
from .durable import make_folder, write_durably
from .errors import CorruptStateError
from .files import StateFile, StateFileWriter, read_chunks

MANIFEST = "manifest"
VOID = "void"
"""Replaces the manifest of a checkpoint that the job has gone back behind, because it or an earlier one was damaged."""

_PREFIX = "checkpoint-"
_TERMS, _BEGUN = "terms", ".begun"
"""A file for each coordinator of a run but the first, and beside it a note about its start."""


def folder_name(checkpoint: int) -> str:
    """The name of a checkpoint's folder."""
    return f"{_PREFIX}{checkpoint:08d}"


def seen_from_beside(path: str, checkpoint: int) -> str:
    """A path in the folder of `checkpoint`, relative to the folder of another checkpoint of the same store.

    >>> seen_from_beside("count-0.state", 7), seen_from_beside("../checkpoint-00000003/count-0.state", 7)
    ('../checkpoint-00000007/count-0.state', '../checkpoint-00000003/count-0.state')
    """
    return posixpath.normpath(posixpath.join("..", folder_name(checkpoint), path))


class CheckpointStore:
    """`url`: a local path, or anything fsspec opens (`s3://bucket/jobs/delays`). Raises ValueError for an unknown protocol."""

    def __init__(self, url: str) -> None:
        import fsspec  # takes longer than all else that a worker without checkpoints loads of this layer

        self.url = url
        self._files, self._root = fsspec.core.url_to_fs(url)
        self._local = isinstance(self._files, fsspec.implementations.local.LocalFileSystem)

    @contextmanager
    def writing(self, checkpoint: int, name: str) -> Iterator[StateFileWriter]:
        """A new state file of `checkpoint`, with a unique name. Raises OSError if it can't be written."""
        name = f"{name}-{uuid.uuid4().hex[:8]}.state"
        with self._new(posixpath.join(self._made(checkpoint), name)) as file:
            yield StateFileWriter(file, name)

    def chunks(self, checkpoint: int, entry: StateFile) -> Iterator[pa.RecordBatch]:
        """The chunks of a state file. Raises CorruptStateError before the first chunk if the file is missing or damaged."""
        with self._reading(posixpath.normpath(posixpath.join(self.folder(checkpoint), entry.path))) as file:
            yield from read_chunks(file, entry)

    def complete(self, checkpoint: int, manifest: bytes) -> None:
        """Write the manifest: from now on the checkpoint counts. Raises FileExistsError if it has one, OSError if it can't be written."""
        self._put(posixpath.join(self._made(checkpoint), MANIFEST), manifest, exclusive=True)

    def withdraw(self, checkpoint: int) -> None:
        """Remove a manifest that may not have been written whole."""
        with suppress(OSError):
            self._files.rm_file(posixpath.join(self.folder(checkpoint), MANIFEST))

    def manifest(self, checkpoint: int) -> bytes:
        """The manifest's bytes. Raises CorruptStateError if there is none."""
        with self._reading(posixpath.join(self.folder(checkpoint), MANIFEST)) as file:
            return bytes(file.read())

    def completed(self) -> list[int]:
        """The checkpoints that have a manifest and are not void, rising."""
        return sorted(number for number, names in self._listing().items() if MANIFEST in names and VOID not in names)

    def begun(self, after: int) -> list[int]:
        """The checkpoints later than `after` that have any file, complete or not."""
        return sorted(number for number in self._listing() if number > after)

    def discard(self, checkpoint: int) -> None:
        """Remove a checkpoint that was never complete, and whose files no other needs. Files that can't be removed stay.

        One with a manifest stays: a coordinator that was declared lost wrote it, and another may need it.
        """
        with suppress(OSError):
            if not self._files.exists(posixpath.join(self.folder(checkpoint), MANIFEST)):
                self._files.rm(self.folder(checkpoint), recursive=True)

    def declare_void(self, after: int) -> None:
        """Make all checkpoints later than `after` void: no job can begin from one any more. Raises OSError."""
        for number, names in self._listing().items():
            if number > after and MANIFEST in names:
                self._put(posixpath.join(self.folder(number), VOID), b"")
                self._files.rm_file(posixpath.join(self.folder(number), MANIFEST))

    def void(self) -> list[int]:
        """The checkpoints that are void."""
        return [number for number, names in self._listing().items() if VOID in names]

    def claim(self, run: str, after: int = 0) -> int:
        """Claim the next term of a run, which no other coordinator can claim. Returns its number, above `after`. Raises OSError."""
        self._make(posixpath.join(self._root, _TERMS))
        term = after + 1
        while True:
            try:
                self._put(self._term(run, term), b"", exclusive=True)
            except FileExistsError:
                term += 1
            else:
                return term

    def claimed(self, run: str, term: int) -> bool:
        """Whether a term of a run has begun. Raises OSError."""
        path = self._term(run, term)
        self._files.invalidate_cache(posixpath.dirname(path))
        return bool(self._files.exists(path))

    def note_begin(self, run: str, term: int, note: bytes) -> None:
        """Store the note of a term's coordinator about its start. Raises OSError."""
        self._put(f"{self._term(run, term)}{_BEGUN}", note, exclusive=True)

    def begins(self, run: str, before: int) -> Iterator[bytes]:
        """The notes of a run's coordinators in terms below `before`, the newest first. Raises OSError."""
        for term in range(before - 1, 0, -1):
            with suppress(FileNotFoundError):
                yield bytes(self._files.cat_file(f"{self._term(run, term)}{_BEGUN}"))

    def _term(self, run: str, term: int) -> str:
        return posixpath.join(self._root, _TERMS, f"{run}-{term:08d}")

    @property
    def occupied(self) -> bool:
        """Whether the store's own folder has any file."""
        return bool(self._files.exists(self._root) and self._files.ls(self._root, detail=False, refresh=True))

    def keep(self, checkpoints: Mapping[int, Iterable[str]], above: int) -> None:
        """Remove all checkpoints but these and the files that they need. Numbers above `above` stay, as they may be in progress.

        Paths are relative to the folder of the checkpoint that needs them. Files that can't be removed stay. Raises OSError if the folder
        can't be listed.
        """
        needed = {posixpath.normpath(posixpath.join(self.folder(n), path)) for n, paths in checkpoints.items() for path in paths}
        for number, names in self._listing().items():
            if number in checkpoints or number > above:
                continue
            folder = self.folder(number)
            left = [name for name in names if posixpath.join(folder, name) not in needed]
            with suppress(OSError):
                if MANIFEST in left:
                    self._files.rm_file(posixpath.join(folder, MANIFEST))
                if len(left) == len(names):
                    self._files.rm(folder, recursive=True)
                    continue
                for name in left:
                    if name != MANIFEST:
                        self._files.rm_file(posixpath.join(folder, name))

    def copy(self, checkpoint: int, entries: Iterable[StateFile], target: CheckpointStore, number: int) -> None:
        """Copy state files to checkpoint `number` of another store. Raises OSError, and CorruptStateError if one is missing."""
        folder = target._made(number)
        for entry in entries:
            path = posixpath.join(folder, posixpath.basename(entry.path))
            source = posixpath.normpath(posixpath.join(self.folder(checkpoint), entry.path))
            with self._reading(source) as file, target._new(path) as copy:
                while piece := file.read(1 << 20):
                    copy.write(piece)

    def folder(self, checkpoint: int) -> str:
        """The folder of a checkpoint; checkpoint 0, for savepoints, is the store's own folder."""
        return posixpath.join(self._root, folder_name(checkpoint)) if checkpoint else str(self._root)

    def _made(self, checkpoint: int) -> str:
        """The folder of a checkpoint, created if it is missing."""
        return self._make(self.folder(checkpoint))

    def _make(self, folder: str) -> str:
        if self._local:
            make_folder(Path(folder))
        else:
            self._files.makedirs(folder, exist_ok=True)
        return folder

    def _put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a file that appears whole or not at all. Raises FileExistsError if `exclusive` and it exists."""
        if self._local:
            write_durably(Path(path), data, exclusive=exclusive)
        else:  # object stores show only complete objects
            self._files.pipe_file(path, data, mode="create" if exclusive else "overwrite")

    def _new(self, path: str) -> Any:
        """A new file, written once."""
        return DirectFile(path) if self._local else self._files.open(path, "wb")

    @contextmanager
    def _reading(self, path: str) -> Iterator[Any]:
        try:
            file = self._files.open(path, "rb")
        except FileNotFoundError as error:
            raise CorruptStateError(f"{path} is gone") from error
        with file:
            yield file

    def _listing(self) -> dict[int, list[str]]:
        """The names in each checkpoint's folder, by one listing, because a chain may reach through a hundred folders."""
        self._files.invalidate_cache(self._root)
        found: dict[int, list[str]] = {}
        for path in self._files.find(self._root, maxdepth=2, withdirs=True):
            folder, _, name = path.rstrip("/").removeprefix(self._root).strip("/").partition("/")
            if folder.startswith(_PREFIX) and (digits := folder.removeprefix(_PREFIX)).isdigit():
                names = found.setdefault(int(digits), [])
                if name:
                    names.append(name)
        return found
