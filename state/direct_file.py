"""Writing of a file past the page cache, where a gigabyte would cost a second of processor time and evict other pages.

The beginning of the file stays in the page cache, for a fast restore. Closing the file syncs it to the disk.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp(), "state")
>>> with DirectFile(path) as file:
...     file.write(b"all of it")
>>> path.read_bytes()
b'all of it'
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
from pathlib import Path
from types import TracebackType
from typing import Self

_AT_ONCE = 1 << 20
_CACHED = 64 << 20
_BLOCK = 4096
"""The block size: writes are whole blocks, from aligned memory."""


class DirectFile:
    """A file written once, from start to end, by one thread. Raises OSError if it can't be written, FileExistsError if it exists."""

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o644)
        self._memory = memoryview(mmap.mmap(-1, _AT_ONCE))
        self._filled = self._written = 0

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes."""
        left = memoryview(data).cast("B")
        while len(left):
            piece = left[: _AT_ONCE - self._filled]
            self._memory[self._filled : self._filled + len(piece)] = piece
            self._filled += len(piece)
            left = left[len(piece) :]
            if self._filled == _AT_ONCE:
                self._put(_AT_ONCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                size = self._written + self._filled
                self._put(-(-self._filled // _BLOCK) * _BLOCK)
                os.ftruncate(self._file, size)
                os.fsync(self._file)
        finally:
            os.close(self._file)

    def _put(self, length: int) -> None:
        """Write the first `length` bytes of the memory."""
        done = 0
        while done < length:
            count = os.write(self._file, self._memory[done:length])
            if count % _BLOCK:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            done += count
        self._written += self._filled
        self._filled = 0
        if self._written == _CACHED and hasattr(os, "O_DIRECT"):
            with contextlib.suppress(OSError):  # the file system doesn't support it
                fcntl.fcntl(self._file, fcntl.F_SETFL, fcntl.fcntl(self._file, fcntl.F_GETFL) | os.O_DIRECT)
