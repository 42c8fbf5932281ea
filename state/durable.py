"""Durable writing of local files and folders: they appear whole and survive a loss of power.

The content is on the disk once the file is synced, and its name once the folder is synced. The same holds for a new folder in its
parent.

>>> import tempfile
>>> path = make_folder(Path(tempfile.mkdtemp(), "a", "b")) / "mark"
>>> write_durably(path, b"7")
>>> path.read_bytes(), [found.name for found in path.parent.iterdir()]
(b'7', ['mark'])
"""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
"""The errors of a file system without hard links."""


def write_durably(path: Path, data: bytes, *, exclusive: bool = False) -> None:
    """Write a file that appears whole or not at all, and replaces an existing one; `exclusive`: only if none exists.

    Raises FileExistsError if `exclusive` found one, and OSError, in which case the file may have been written nevertheless.
    """
    hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex}.inprogress")
    try:
        with hidden.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if exclusive:
            _link(hidden, path)
        else:
            hidden.replace(path)
        sync_folder(path.parent)
    finally:
        hidden.unlink(missing_ok=True)


def make_folder(path: Path) -> Path:
    """Create a folder and its missing parents, and return it. Raises OSError."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)
    return path


def sync_folder(folder: Path) -> None:
    """Sync the names in `folder` to the disk: renames, new and removed files. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link(hidden: Path, path: Path) -> None:
    """Give a file its name. Raises FileExistsError if the name is taken; a rename would not."""
    try:
        os.link(hidden, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():
            raise FileExistsError(f"{path} exists already") from error
        hidden.replace(path)
