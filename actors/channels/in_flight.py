"""Limits the rows in flight on a channel, so that its receiver is through with them in a bounded time.

Credit bounds the batches and bytes of a channel. That may be half a second's work for one operator and an hour's for another, and a
barrier, or a marker that would relieve an overloaded operator, waits behind all of it. As in Flink's buffer debloating (FLIP-183), the
limit follows from how fast rows leave. Little's law gives the rate: the rows in flight when a batch left, over the time until all of them
had been processed.

Invariants: one row may always leave, so that the channel makes progress; as long as nothing is slow, the limit only grows.

>>> limit = InFlightLimit()
>>> limit.sent(FIRST, now=0.0)
>>> limit.admits(1), limit.done(1, now=0.001), limit.admits(FIRST)
(False, None, True)
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

DRAIN_SECONDS = 0.5
"""Seconds in which a receiver should have processed what is in flight on a channel."""

PIECES = 4
"""A batch leaves in pieces of at most this part of the limit: the receiver listens to others between two pieces, and credit comes back."""

FIRST = 256
"""Rows that may be in flight before anything is known; for a fast receiver the first grant, milliseconds later, raises it a hundredfold."""


@dataclass(frozen=True, slots=True)
class _Left:
    """A batch that has left at `time` (seconds), with the rows in flight then, its own included."""

    time: float
    rows: int
    in_flight: int


class InFlightLimit:
    """The limit of one channel, at its sending end. `now`: seconds of a clock that goes on evenly."""

    def __init__(self) -> None:
        self.rows: float = FIRST
        """How many rows may be in flight."""
        self._in_flight = 0
        self._left: deque[_Left] = deque()
        self._done = 0

    @property
    def piece(self) -> int:
        """The most rows that should leave as one batch, at least 1."""
        return max(1, int(self.rows / PIECES))

    def admits(self, rows: int) -> bool:
        """Whether a batch of `rows` rows may leave now."""
        return self._in_flight == 0 or self._in_flight + rows <= self.rows

    def sent(self, rows: int, now: float) -> None:
        """A batch has left."""
        self._in_flight += rows
        self._left.append(_Left(now, rows, self._in_flight))

    def done(self, batches: int, now: float) -> None:
        """The receiver has processed this many batches in total. Raises ValueError if they were never sent."""
        if batches - self._done > len(self._left):
            raise ValueError(f"{batches} batches were processed, {self._done + len(self._left)} sent")
        newest = None
        while self._done < batches:
            newest = self._left.popleft()
            self._in_flight -= newest.rows
            self._done += 1
        if newest is not None:
            self._learn(newest.in_flight, now - newest.time)

    def _learn(self, rows: int, seconds: float) -> None:
        drained = rows * DRAIN_SECONDS / max(seconds, 1e-6)
        self.rows = max(self.rows, drained) if seconds <= DRAIN_SECONDS else max(1.0, min(self.rows, drained))
