"""A lock that threads acquire in the order of their requests.

Python's own locks are not fair: a thread that releases one and requests it again at once may get it before threads that wait.

>>> lock = FairLock()
>>> with lock, lock:
...     pass
"""

from __future__ import annotations

from collections import deque
from threading import Lock, get_ident
from types import TracebackType


class FairLock:
    """A re-entrant lock for `with`.

    Invariant: releasing it hands it to the thread that has waited longest. Each waiting thread blocks on its own lock, and is
    `_owner` as soon as that is released.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._waiting: deque[tuple[int, Lock]] = deque()
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> None:
        me = get_ident()
        if self._owner != me:
            self._wait(me)
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._depth -= 1
        if not self._depth:
            self._hand_over()

    def _wait(self, me: int) -> None:
        with self._guard:
            if self._owner is None:
                self._owner = me
                return
            mine = Lock()
            mine.acquire()
            self._waiting.append((me, mine))
        try:
            mine.acquire()
        except BaseException:  # Ctrl-C: this thread no longer waits, and may have got the lock just now
            self._leave(me, mine)
            raise

    def _leave(self, me: int, mine: Lock) -> None:
        with self._guard:
            if (me, mine) in self._waiting:
                self._waiting.remove((me, mine))
                return
        self._hand_over()

    def _hand_over(self) -> None:
        with self._guard:
            self._owner, first = self._waiting.popleft() if self._waiting else (None, None)
            if first is not None:
                first.release()
