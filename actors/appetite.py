"""How many rows a source reads at once: what leaves its worker in a bounded time, for nothing that comes later can leave before.

As long as that is little, what was read leaves at once: of several reads that wait together for the linger of a buffer, none would be seen
to be held back.

Invariants: at least 1 and at most what the job's settings say; without any waiting it grows to that within a few reads.

>>> appetite = Appetite(most=131_072)
>>> appetite.rows, appetite.read(1_024, held_back=0.0), appetite.rows
(1024, None, 2048)
>>> appetite.read(2_048, held_back=10.0)
>>> appetite.rows
51
"""

from __future__ import annotations

LEAVES = 0.25
"""Seconds in which what was read at once should have left."""

FIRST = 1_024


class Appetite:
    """One source worker's; `most`: rows."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows = min(FIRST, most)
        """How many rows to read next."""

    @property
    def held(self) -> bool:
        """Whether less is read than might be."""
        return self.rows < self._most

    def read(self, rows: int, held_back: float) -> None:
        """So many rows were read, have left, and were held back for so many seconds for want of credit; 0 rows say nothing."""
        if not rows:
            return
        if held_back > LEAVES:
            self.rows = min(self._most, max(1, int(rows * LEAVES / held_back)))
        elif held_back < LEAVES / 2:
            self.rows = min(self._most, 2 * self.rows)
