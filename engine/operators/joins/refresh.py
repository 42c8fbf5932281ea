"""The schedule of a table that is read again and again: a state machine over times.

Invariant: at most one reading is under way, and from the end of one to the beginning of the next it takes `every` seconds.

>>> refresh = Refresh(10)
>>> refresh.due(0), refresh.due(9_999_999), refresh.due(10_000_000), refresh.due(99_000_000)
(False, False, True, False)
>>> refresh.ended()
>>> refresh.due(100_000_000), refresh.due(110_000_000)
(False, True)
"""

from __future__ import annotations


class Refresh:
    """A schedule with a pause of `every` seconds. Times are microseconds that don't go back."""

    def __init__(self, every: float) -> None:
        self.every = every
        self._since: int | None = None
        self._reading = self._told = False

    def due(self, now: int) -> bool:
        """Return True to begin to read now; the reading counts as begun then."""
        if self._since is None:
            self._since = now
        if self._reading or now - self._since < self.every * 1_000_000:
            return False
        self._reading, self._told, self._since = True, False, now
        return True

    def overdue(self, now: int) -> bool:
        """Return True, once for each reading, if it has been under way for longer than `every`."""
        if not self._reading or self._told or self._since is None or now - self._since < self.every * 1_000_000:
            return False
        self._told = True
        return True

    def ended(self) -> None:
        """Note that the reading has ended, with or without success."""
        self._reading, self._since = False, None
