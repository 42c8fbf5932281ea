"""Files whose content is used where the page cache has it: a gigabyte is neither copied nor given memory of its own.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp(), "state")
>>> path.write_bytes(b"all of it")
9
>>> with MappedReader(path) as file:
...     bytes(file.read(3)), bytes(file.read(100))
(b'all', b' of it')
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from types import TracebackType
from typing import Self

_PIECE = 1 << 18


class MappedReader:
    """A file that never changes, read from start to end by one thread.

    Bytes are read before they are used, because an error of the disk can be reported then only: later it would end the process. Raises
    FileNotFoundError if there is no file, OSError if it can't be read.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 -- closed by `__exit__`
        size = os.fstat(self._file.fileno()).st_size
        self._content = memoryview(mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ) if size else b"")
        self._piece = memoryview(bytearray(_PIECE))

    def seek(self, offset: int, whence: int) -> int:
        """Go to a place, and return it."""
        return self._file.seek(offset, whence)

    def read(self, size: int) -> memoryview:
        """Return the next bytes, fewer than `size` only at the end of the file. They stay valid when the file is closed."""
        begin = at = self._file.tell()
        end = min(begin + size, len(self._content))
        while at < end and (count := self._file.readinto(self._piece[: end - at])):
            at += count
        return self._content[begin:at]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()
