"""Files and folders of a local file system that are whole, and still there when the machine has lost power.

What is written is on the disk once the file is, and its name once the folder is that has it. The same holds for a new folder in the one
above it.

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
"""What a file system without hard links says."""


def write_durably(path: Path, data: bytes, *, exclusive: bool = False) -> None:
    """Write a file that appears whole, or not at all, in place of one that is there; `exclusive`: only where none is.

    Raises OSError, of which FileExistsError says that `exclusive` found one. What raises another may have written it nevertheless.
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
    """Make a folder and those above it that are missing; returns it. Raises OSError."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)
    return path


def sync_folder(folder: Path) -> None:
    """Have the names in `folder` on the disk: what was renamed, made and removed in it. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link(hidden: Path, path: Path) -> None:
    """Give a file its name. Raises FileExistsError if that is taken, which a rename would not."""
    try:
        os.link(hidden, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():
            raise FileExistsError(f"{path} is there already") from error
        hidden.replace(path)
