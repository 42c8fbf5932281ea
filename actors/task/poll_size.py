"""The size of a source's polls: the rows of one poll are sent in a bounded time, because no later element can overtake them.

While the size is below the maximum, the rows are sent at once. Otherwise several reads would wait together for the linger of a
buffer, and the delay of each would not be noticed.

Invariants: at least 1 and at most what the job's settings say; without any waiting the size grows to that within a few reads.

>>> size = PollSize(most=131_072)
>>> size.rows, size.read(1_024, held_back=0.0), size.rows
(1024, None, 2048)
>>> size.read(2_048, held_back=10.0)
>>> size.rows
51
"""

from __future__ import annotations

LEAVES_WITHIN = 0.25
"""Seconds within which the rows of one poll should have been sent."""

FIRST = 1_024


class PollSize:
    """The size of one source worker's polls; `most`: rows."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows = min(FIRST, most)
        """The number of rows to read next."""

    @property
    def limited(self) -> bool:
        """True if polls are smaller than the settings allow."""
        return self.rows < self._most

    def read(self, rows: int, held_back: float) -> None:
        """Record that `rows` were read and sent, and waited `held_back` seconds for credit; 0 rows change nothing."""
        if not rows:
            return
        if held_back > LEAVES_WITHIN:
            self.rows = min(self._most, max(1, int(rows * LEAVES_WITHIN / held_back)))
        elif held_back < LEAVES_WITHIN / 2:
            self.rows = min(self._most, 2 * self.rows)
