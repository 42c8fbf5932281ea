"""The waker: lets any thread interrupt another thread's wait, through a pipe that is polled together with the sockets.

>>> waker = Waker()
>>> waker.wake(), waker.wake(), waker.clear(), waker.close()
(None, None, None, None)
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress


class Waker:
    """A pipe whose `fileno()` is readable from the first `wake` until `clear`. Waking a closed one does nothing."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._lock = threading.Lock()
        self._closed = False

    def fileno(self) -> int:
        return self._reader

    def wake(self) -> None:
        # The lock keeps a late call from writing into a descriptor that was closed and reused.
        with self._lock, suppress(BlockingIOError):  # a full pipe is readable already
            if not self._closed:
                os.write(self._writer, b"\0")

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                pass

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._reader)
                os.close(self._writer)
