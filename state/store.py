"""The store of checkpoints: a folder on any file system that fsspec knows, with a folder per checkpoint.

`checkpoint-00000012/` holds state files and, once the checkpoint is complete, its `manifest`. A checkpoint without a manifest is
incomplete; manifests appear whole or not at all. A manifest may refer to files in the folders of earlier checkpoints, so a file
stays while a remaining manifest refers to it. `terms/` has a file for each process that has run the job here, which identifies it
(`scheduler/record/restoring/terms.py`), and notes of that process.

Invariant: every error of the file system is a StoreError (`store_errors.py`) that names the store and the file, except
FileNotFoundError and FileExistsError, and cleaning up never fails.

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from .direct_file import DirectFile
from .durable import make_folder, write_durably
from .errors import CorruptStateError, StoreRefusedError
from .files import StateFile, StateFileWriter, read_chunks
from .mapped_file import MappedReader
from .object_stores import file_system, fresh_listing, has_folders, remove_files
from .store_errors import store_error, translated, unusable

MANIFEST = "manifest"
VOID = "void"
"""The name that replaces the manifest of a checkpoint that the job discarded, because it or an earlier one was damaged."""

Listing = dict[int, list[str]]
"""The names of the files in the folder of each checkpoint."""

_PREFIX = "checkpoint-"
_TERMS = "terms"
"""The folder with a file for each term, named by its number, and next to it the notes of its process: `NUMBER.KIND`."""

_OWNER = "taken-by"
"""The file that names the owner of a store's own folder."""


def folder_name(checkpoint: int) -> str:
    """Return the name of a checkpoint's folder."""
    return f"{_PREFIX}{checkpoint:08d}"


def folder_names(url: str) -> list[str]:
    """List the folders in the folder `url`, in alphabetical order; none if it doesn't exist. Raises OSError."""
    try:
        files, root = file_system(url)
    except (ImportError, ValueError) as error:
        raise StoreRefusedError(f"{url} can't be used: {unusable(url, error)}") from error
    with suppress(FileNotFoundError), translated(url, "."):
        entries = fresh_listing(files, root)
        return sorted(posixpath.basename(entry["name"].rstrip("/")) for entry in entries if entry["type"] == "directory")
    return []


def path_from_sibling(path: str, checkpoint: int) -> str:
    """Return a path in the folder of `checkpoint`, relative to the folder of another checkpoint of the same store.

    >>> path_from_sibling("count-0.state", 7), path_from_sibling("../checkpoint-00000003/count-0.state", 7)
    ('../checkpoint-00000007/count-0.state', '../checkpoint-00000003/count-0.state')
    """
    return posixpath.normpath(posixpath.join("..", folder_name(checkpoint), path))


class CheckpointStore:
    """A store of one job's checkpoints. `url`: a local path, or any URL that fsspec opens (`s3://bucket/jobs/delays`).

    Raises StoreRefusedError for an unknown protocol, and one whose package isn't installed.
    """

    def __init__(self, url: str) -> None:
        import fsspec  # slower to import than everything else in this layer

        self.url = url
        try:
            self._files, self._root = file_system(url)
        except (ImportError, ValueError) as error:
            raise StoreRefusedError(f"{url} can't be used: {unusable(url, error)}") from error
        except Exception as error:  # of any library, about its settings
            raise store_error(error, url) from error
        self._local = isinstance(self._files, fsspec.implementations.local.LocalFileSystem)
        self._has_folders = has_folders(self._files)

    @property
    def local(self) -> bool:
        """True if it is a folder of this machine's file system."""
        return self._local

    @contextmanager
    def writing(self, checkpoint: int, name: str) -> Iterator[StateFileWriter]:
        """Open a new state file of `checkpoint` with a unique name. Raises OSError if it can't be written."""
        name = f"{name}-{uuid.uuid4().hex[:8]}.state"
        path = posixpath.join(self._made(checkpoint), name)
        with self._reached(path), self._new(path) as file:
            yield StateFileWriter(file, name)

    def chunks(self, checkpoint: int, entry: StateFile) -> Iterator[pa.RecordBatch]:
        """Yield the chunks of a state file. Raises CorruptStateError if the file is missing, and instead of a damaged chunk."""
        with self._reading_state(checkpoint, entry) as file:
            yield from read_chunks(file, entry)

    def complete(self, checkpoint: int, manifest: bytes) -> None:
        """Write the manifest, which makes the checkpoint complete.

        Raises FileExistsError if it has one, OSError if it can't be written.
        """
        self._put(posixpath.join(self._made(checkpoint), MANIFEST), manifest, exclusive=True)

    def withdraw(self, checkpoint: int) -> None:
        """Remove a manifest that may have been written. Raises OSError."""
        path = posixpath.join(self.folder(checkpoint), MANIFEST)
        with suppress(FileNotFoundError), self._reached(path):
            self._files.rm_file(path)

    def manifest(self, checkpoint: int) -> bytes:
        """Return the manifest's bytes. Raises CorruptStateError if there is none."""
        with self._reading(posixpath.join(self.folder(checkpoint), MANIFEST)) as file:
            return bytes(file.read())

    def completed(self, listed: Listing | None = None) -> list[int]:
        """List the checkpoints that have a manifest and are not void, ascending."""
        listed = self.listing() if listed is None else listed
        return sorted(number for number, names in listed.items() if MANIFEST in names and VOID not in names)

    def begun(self, after: int) -> list[int]:
        """List the checkpoints later than `after` that have any file, complete or not."""
        return sorted(number for number in self.listing() if number > after)

    def discard(self, checkpoint: int) -> None:
        """Remove a checkpoint that was never complete, and whose files no other needs. Files that can't be removed stay.

        One with a manifest stays: a coordinator that was declared lost wrote it, and another may need it.
        """
        folder = self.folder(checkpoint)
        with suppress(OSError), self._reached(folder):
            self._files.invalidate_cache(folder)
            if not self._files.exists(posixpath.join(folder, MANIFEST)):
                self._files.rm(folder, recursive=True)

    def declare_void(self, after: int) -> None:
        """Make all checkpoints later than `after` void, so that no job can begin from one. Raises OSError."""
        for number, names in self.listing().items():
            if number > after and MANIFEST in names:
                self._put(posixpath.join(self.folder(number), VOID), b"")
                path = posixpath.join(self.folder(number), MANIFEST)
                with self._reached(path):
                    self._files.rm_file(path)

    def void(self) -> list[int]:
        """List the void checkpoints."""
        return [number for number, names in self.listing().items() if VOID in names]

    def claim(self, term: int, content: bytes) -> None:
        """Claim a term, so that no other process can. `content` is unique.

        Raises FileExistsError if it is claimed, OSError.
        """
        self._make(posixpath.join(self._root, _TERMS))
        self._put(self._term(term), content, exclusive=True)

    def claimed(self, term: int) -> bool:
        """Return True if a term is claimed. Raises OSError."""
        path = self._term(term)
        with suppress(FileNotFoundError), self._reached(path):
            self._files.invalidate_cache(posixpath.dirname(path))
            self._files.cat_file(path, start=0, end=1)  # one request, and `exists` would take two
            return True
        return False

    def claims(self) -> list[int]:
        """List the claimed terms, ascending. Raises OSError."""
        folder = posixpath.join(self._root, _TERMS)
        with suppress(FileNotFoundError), self._reached(folder):
            names = [posixpath.basename(entry["name"].rstrip("/")) for entry in fresh_listing(self._files, folder)]
            return sorted(int(name) for name in names if name.isdigit())
        return []

    def claim_of(self, term: int) -> bytes | None:
        """Return the content of a term's claim, None if there is none. Raises OSError."""
        return self._read(self._term(term))

    def note(self, term: int, kind: str, data: bytes, *, once: bool = False) -> None:
        """Store a note of a term's process, replacing an earlier one. Raises OSError.

        `once`: raise FileExistsError if there is one.
        """
        self._put(f"{self._term(term)}.{kind}", data, exclusive=once)

    def noted(self, term: int, kind: str) -> bytes | None:
        """Return the note of that kind, None if there is none. Raises OSError."""
        return self._read(f"{self._term(term)}.{kind}")

    def check_create_only(self) -> None:
        """Create an object twice. Raises StoreRefusedError if the store accepts the second, and other OSErrors.

        With such a store, two processes could both claim a term, and overwrite each other's manifests. A local folder needs no
        check.
        """
        if self._local:
            return
        self._make(posixpath.join(self._root, _TERMS))
        path = posixpath.join(self._root, _TERMS, f"check-{uuid.uuid4().hex}")
        self._put(path, b"first", exclusive=True)
        try:
            self._put(path, b"second", exclusive=True)
        except FileExistsError:
            return
        finally:
            with suppress(OSError), self._reached(path):
                self._files.rm_file(path)
        raise StoreRefusedError(
            f"{self.url}: this store replaces an object that it should create only if there is none (S3 and Azure: If-None-Match, Google: "
            "ifGenerationMatch), so it can't keep two runs of a job apart: use one that honours it, such as AWS S3, Google Cloud "
            "Storage, Azure Blob Storage or a recent MinIO, or a folder that all nodes mount"
        )

    def _term(self, term: int) -> str:
        return posixpath.join(self._root, _TERMS, f"{term:08d}")

    def _read(self, path: str) -> bytes | None:
        with suppress(FileNotFoundError), self._reached(path):
            self._files.invalidate_cache(posixpath.dirname(path))  # another process may have written it meanwhile
            return bytes(self._files.cat_file(path))
        return None

    def names(self) -> list[str]:
        """List the files and folders in the store's own folder, in alphabetical order. Raises OSError."""
        with suppress(FileNotFoundError), self._reached(self._root):
            return sorted(posixpath.basename(entry["name"].rstrip("/")) for entry in fresh_listing(self._files, self._root))
        return []

    def reserve(self, owner: bytes) -> bool:
        """Empty the store's own folder for `owner`, whose name it then holds; return False if it has files of another.

        Raises OSError.
        """
        path = posixpath.join(self._root, _OWNER)
        if self.names():
            if self._read(path) != owner:
                return False
            with self._reached(self._root):
                for name in self._files.ls(self._root, detail=False):
                    if posixpath.basename(name) != _OWNER:
                        self._files.rm_file(name)
        self._make(str(self._root))
        self._put(path, owner)
        return True

    def keep(self, checkpoints: Mapping[int, Iterable[str]], above: int, upto: int = 0, listed: Listing | None = None) -> None:
        """Remove all checkpoints but these and the files that they need.

        Numbers above `above` stay, as they may be in progress, and those up to `upto`, which belong to other runs. Paths are
        relative to the folder of the checkpoint that needs them. `listed`: a recent `listing`. Files that can't be removed stay.
        Raises OSError if the folder can't be listed.
        """
        needed = {posixpath.normpath(posixpath.join(self.folder(n), path)) for n, paths in checkpoints.items() for path in paths}
        for number, names in (self.listing() if listed is None else listed).items():
            if number in checkpoints or not upto < number <= above:
                continue
            folder = self.folder(number)
            left = [name for name in names if posixpath.join(folder, name) not in needed]
            with suppress(OSError), self._reached(folder):
                if MANIFEST in left:
                    self._files.rm_file(posixpath.join(folder, MANIFEST))
                if len(left) == len(names) and self._has_folders:
                    self._files.rm(folder, recursive=True)
                    continue
                if paths := [posixpath.join(folder, name) for name in left if name != MANIFEST]:
                    remove_files(self._files, paths)

    def copy(self, checkpoint: int, entries: Iterable[StateFile], target: CheckpointStore, number: int) -> None:
        """Copy state files to checkpoint `number` of another store. Raises OSError, and CorruptStateError if one is missing."""
        folder = target._made(number)
        for entry in entries:
            path = posixpath.join(folder, posixpath.basename(entry.path))
            with self._reading_state(checkpoint, entry) as file, target._reached(path), target._new(path) as copy:
                while piece := file.read(1 << 20):
                    copy.write(piece)

    def folder(self, checkpoint: int) -> str:
        """Return the folder of a checkpoint; checkpoint 0, for savepoints, is the store's own folder."""
        return posixpath.join(self._root, folder_name(checkpoint)) if checkpoint else str(self._root)

    def _made(self, checkpoint: int) -> str:
        return self._make(self.folder(checkpoint))

    def _make(self, folder: str) -> str:
        with self._reached(folder):
            if self._local:
                make_folder(Path(folder))
            elif self._has_folders:
                self._files.makedirs(folder, exist_ok=True)
        return folder

    def _put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a file that appears whole or not at all. Raises FileExistsError if `exclusive` and it exists with other content.

        The reply of an earlier try, which created it, may be lost, and the file system's library retries automatically.
        """
        try:
            with self._reached(path):
                if self._local:
                    write_durably(Path(path), data, exclusive=exclusive)
                else:  # object stores show only complete objects
                    self._files.pipe_file(path, data, mode="create" if exclusive else "overwrite")
        except FileExistsError:
            if self._read(path) != data:
                raise
        except FileNotFoundError as error:
            if self._has_folders:
                raise
            # An object needs no folder, but a bucket.
            raise StoreRefusedError(f"{self.url}: {error}") from error

    def _new(self, path: str) -> Any:
        return DirectFile(path) if self._local else self._files.open(path, "wb")

    def _reading_state(self, checkpoint: int, entry: StateFile) -> AbstractContextManager[Any]:
        return self._reading(posixpath.normpath(posixpath.join(self.folder(checkpoint), entry.path)), MappedReader if self._local else None)

    @contextmanager
    def _reading(self, path: str, opened: Callable[[str], Any] | None = None) -> Iterator[Any]:
        with self._reached(path):
            try:
                file = self._files.open(path, "rb") if opened is None else opened(path)
            except FileNotFoundError as error:
                raise CorruptStateError(f"{path} is gone") from error
            with file:
                yield file

    @contextmanager
    def _reached(self, path: str) -> Iterator[None]:
        """Translate errors of the file system in the block."""
        with translated(self.url, path.removeprefix(f"{self._root}/")):
            yield

    def listing(self) -> Listing:
        """Return the names in each checkpoint's folder, by one listing, because a chain may span a hundred folders."""
        found: dict[int, list[str]] = {}
        paths: Iterable[str] = ()
        with suppress(FileNotFoundError), self._reached(self._root):
            self._files.invalidate_cache(self._root)
            # Without a depth, an object store lists a thousand objects with one request, and with one it takes a request a folder.
            paths = self._files.find(self._root, **({"maxdepth": 2, "withdirs": True} if self._has_folders else {}))
        for path in paths:
            folder, _, name = path.rstrip("/").removeprefix(self._root).strip("/").partition("/")
            if folder.startswith(_PREFIX) and (digits := folder.removeprefix(_PREFIX)).isdigit():
                names = found.setdefault(int(digits), [])
                if name:
                    names.append(name)
        return found
