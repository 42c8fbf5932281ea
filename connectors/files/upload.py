"""A new object of a remote store, which is uploaded while it is written and appears whole when it is finished.

>>> import fsspec
>>> upload = Upload(fsspec.filesystem("memory").open("/upload/a", "wb"), "memory://upload")
>>> _ = upload.write(b"abc")
>>> upload.finish(), fsspec.filesystem("memory").cat_file("/upload/a")
(3, b'abc')
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

from ...state.store_errors import translated


class Upload(io.RawIOBase):
    """An object that fsspec writes. All its errors are StoreErrors that name `url`."""

    def __init__(self, file: Any, url: str) -> None:
        self._file, self._url, self._size = file, url, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with translated(self._url, "write"):
            self._file.write(data)
        count = memoryview(data).nbytes
        self._size += count
        return count

    def tell(self) -> int:
        return self._size

    def finish(self) -> int:
        """Complete the object, and return its size in bytes. Raises OSError."""
        with translated(self._url, "write"):
            self._file.close()
        self.close()
        return self._size

    def drop(self) -> None:
        """Abort the upload, so that no object appears. Never raises."""
        with contextlib.suppress(Exception):  # any error of any library: the store may be out of reach
            self._file.discard()
        with contextlib.suppress(AttributeError):
            self._file.closed = True  # fsspec would complete the object when it is garbage-collected
        self.close()
