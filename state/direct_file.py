"""A file that goes to the disk past the page cache, in which a checkpoint would take a second of processor time for each gigabyte.

Where the file system can't do that, it is written as any other. When it is closed, it is on the disk.

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
import mmap
import os
from pathlib import Path
from types import TracebackType
from typing import Self

_AT_ONCE = 1 << 20
_BLOCK = 4096
"""Whole blocks are written, from memory that begins at one."""


class DirectFile:
    """Written once, from the start to the end, by one thread. Raises OSError where it can't be written, FileExistsError if it is there."""

    def __init__(self, path: str | Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        try:
            self._file = os.open(path, flags | getattr(os, "O_DIRECT", 0), 0o644)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            with contextlib.suppress(FileNotFoundError):
                Path(path).unlink()
            self._file = os.open(path, flags, 0o644)
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
        """Write the first so many bytes of the memory."""
        done = 0
        while done < length:
            count = os.write(self._file, self._memory[done:length])
            if count % _BLOCK:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            done += count
        self._written += self._filled
        self._filled = 0
