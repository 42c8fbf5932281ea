"""When something is to be read again: a state machine over the times at which it is asked.

Invariant: at most one reading is under way, and from the end of one to the beginning of the next it takes `every` seconds.

>>> refresh = Refresh(10)
>>> refresh.due(0), refresh.due(9_999_999), refresh.due(10_000_000), refresh.due(99_000_000)
(False, False, True, False)
>>> refresh.returned()
>>> refresh.due(100_000_000), refresh.due(110_000_000)
(False, True)
"""

from __future__ import annotations


class Refresh:
    """`every`: seconds. Times are microseconds that don't go back."""

    def __init__(self, every: float) -> None:
        self.every = every
        self._since: int | None = None
        self._reading = self._told = False

    def due(self, now: int) -> bool:
        """Whether to begin to read now; it counts as begun then."""
        if self._since is None:
            self._since = now
        if self._reading or now - self._since < self.every * 1_000_000:
            return False
        self._reading, self._told, self._since = True, False, now
        return True

    def overdue(self, now: int) -> bool:
        """Whether the reading has been under way for longer than `every`; True once for each."""
        if not self._reading or self._told or self._since is None or now - self._since < self.every * 1_000_000:
            return False
        self._told = True
        return True

    def returned(self) -> None:
        """The reading is over, however it ended."""
        self._reading, self._since = False, None
