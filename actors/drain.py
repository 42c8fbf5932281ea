"""How many rows may be under way on a channel, so that whoever comes next is through with them in a bounded time, not in a bounded number.

Credit bounds the batches and bytes of a channel, which is half a second's work for one operator and an hour's for another. Signals keep
their place among the records: a barrier, or a marker that brings an overloaded operator relief, would wait as long. As in Flink's buffer
debloating (FLIP-183), what a sender has under way is set by how fast it leaves, which Little's law gives: the rows that were under way
when a batch left, over the time until all of them had been processed.

Invariants: one row may always leave, so that the channel goes on; without any slowness the window only grows.

>>> window = DrainWindow()
>>> window.sent(FIRST, now=0.0)
>>> window.admits(1), window.done(1, now=0.001), window.admits(FIRST)
(False, None, True)
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

DRAIN = 0.5
"""Seconds in which a receiver should be through with what is under way on a channel."""

PIECES = 4
"""A batch leaves in pieces of at most this part of the window: the receiver listens to others between two pieces, and credit comes back."""

FIRST = 256
"""Rows that may be under way before anything is known; the first grant, milliseconds later, raises it a hundredfold for a fast receiver."""


@dataclass(frozen=True, slots=True)
class _Left:
    """A batch that has left at `time` (seconds), with the rows under way then, itself among them."""

    time: float
    rows: int
    under_way: int


class DrainWindow:
    """One channel's, at its sending end. `now`: seconds of a clock that goes on evenly."""

    def __init__(self) -> None:
        self.rows: float = FIRST
        """How many rows may be under way."""
        self._under_way = 0
        self._left: deque[_Left] = deque()
        self._done = 0

    @property
    def piece(self) -> int:
        """The most rows that should leave as one batch, at least 1."""
        return max(1, int(self.rows / PIECES))

    def admits(self, rows: int) -> bool:
        """Whether a batch of so many rows may leave now."""
        return self._under_way == 0 or self._under_way + rows <= self.rows

    def sent(self, rows: int, now: float) -> None:
        """A batch has left."""
        self._under_way += rows
        self._left.append(_Left(now, rows, self._under_way))

    def done(self, batches: int, now: float) -> None:
        """The receiver has processed so many batches in all. Raises ValueError if they were never sent."""
        if batches - self._done > len(self._left):
            raise ValueError(f"{batches} batches were processed, {self._done + len(self._left)} sent")
        newest = None
        while self._done < batches:
            newest = self._left.popleft()
            self._under_way -= newest.rows
            self._done += 1
        if newest is not None:
            self._learn(newest.under_way, now - newest.time)

    def _learn(self, rows: int, seconds: float) -> None:
        drained = rows * DRAIN / max(seconds, 1e-6)
        self.rows = max(self.rows, drained) if seconds <= DRAIN else max(1.0, min(self.rows, drained))
