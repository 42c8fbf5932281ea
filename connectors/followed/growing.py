r"""A file to which lines are appended, and its next block of complete lines.

Its inode identifies the file, also after it is renamed. Its head, a hash of its first bytes, distinguishes it from a file that
replaced it: a shorter one, one that reuses its inode, and one that was truncated and has grown again.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp(), "a.log")
>>> _ = path.write_bytes(b"to be\nor not\nto")
>>> file = Growing(inode=path.stat().st_ino, path=str(path), size=path.stat().st_size)
>>> file.next_block(header=False)
LineBlock(header=b'', lines=b'to be\nor not\n', end=13)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

BLOCK = 1 << 20
"""The bytes read at once, unless a line is longer."""

HEAD = 1024
"""The most bytes of a head."""


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Complete lines, the file's header line if it has one, and the position in the file where the lines end."""

    header: bytes
    lines: bytes
    end: int


class MovedError(Exception):
    """The path leads to another file, or to none."""


class ReplacedError(Exception):
    """The file no longer begins with the bytes that were read."""


@dataclass(slots=True)
class Growing:
    """A file that grows. `offset`: start of the block from which `rows` rows were emitted. `size`, `changed` (nanoseconds): as of
    the last look.

    `unread`: True if there may be complete lines before `size` that were not emitted. `newest`: the newest event time, in
    microseconds.
    """

    inode: int
    path: str
    offset: int = 0
    rows: int = 0
    size: int = 0
    changed: int = 0
    unread: bool = True
    head: bytes = b""
    head_bytes: int = 0
    newest: int | None = None

    def restart(self) -> None:
        """Restart at the first byte."""
        self.offset = self.rows = self.head_bytes = 0
        self.head, self.newest, self.unread = b"", None, True

    def check(self) -> None:
        """Raise MovedError or ReplacedError unless it is the file read so far, and OSError if it can't be read."""
        with self._opened():
            pass

    def next_block(self, *, header: bool) -> LineBlock | None:
        """Return the next lines before `size`, or None if there is no complete one. Raises as `check` does."""
        with self._opened() as file:
            file.seek(0)
            first = file.readline(self.size) if header else b""
            if header and not first.endswith(b"\n"):
                return None
            self.offset = max(self.offset, len(first))
            file.seek(self.offset)
            lines = self._complete_lines(file)
            if not lines:
                return None
            end = self.offset + len(lines)
            self.head_bytes = min(end, HEAD)
            self.head = _head(file, self.head_bytes)
            return LineBlock(first, lines, end)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        try:
            file = Path(self.path).open("rb")  # noqa: SIM115 -- closed below
        except FileNotFoundError as error:
            raise MovedError from error
        with file:
            found = os.fstat(file.fileno())
            if found.st_ino != self.inode:
                raise MovedError
            if found.st_size < self.offset or _head(file, self.head_bytes) != self.head:
                raise ReplacedError
            yield file

    def _complete_lines(self, file: BinaryIO) -> bytes:
        lines, left = b"", self.size - self.offset
        while left > 0 and (read := file.read(min(BLOCK, left))):
            lines, left = lines + read, left - len(read)
            end = lines.rfind(b"\n") + 1
            if end:
                return lines[:end]
        return b""


def _head(file: BinaryIO, count: int) -> bytes:
    if not count:
        return b""
    file.seek(0)
    return blake2b(file.read(count), digest_size=16).digest()
