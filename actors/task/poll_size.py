"""Sizes the polls of a source: what is read at once leaves its worker in a bounded time, because nothing that comes later can overtake it.

While the size is below the maximum, what was read leaves at once. Otherwise several reads would wait together for the linger of a buffer,
and none of them would be seen to be held back.

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
"""Seconds in which what was read at once should have left."""

FIRST = 1_024


class PollSize:
    """The size of one source worker's polls; `most`: rows."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows = min(FIRST, most)
        """How many rows to read next."""

    @property
    def limited(self) -> bool:
        """Whether polls are smaller than the settings allow."""
        return self.rows < self._most

    def read(self, rows: int, held_back: float) -> None:
        """`rows` were read, have left, and waited `held_back` seconds for credit; 0 rows change nothing."""
        if not rows:
            return
        if held_back > LEAVES_WITHIN:
            self.rows = min(self._most, max(1, int(rows * LEAVES_WITHIN / held_back)))
        elif held_back < LEAVES_WITHIN / 2:
            self.rows = min(self._most, 2 * self.rows)
