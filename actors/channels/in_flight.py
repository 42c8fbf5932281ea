"""A limit of the rows in flight on a channel, so that its receiver processes them in a bounded time.

Credit bounds the batches and bytes of a channel. That may be half a second's work for one operator and an hour's for another, and
a barrier, or a marker that would relieve an overloaded operator, waits behind all of it. As in Flink's buffer debloating
(FLIP-183), the limit follows from the processing rate. Little's law gives the rate: the rows in flight when a batch was sent,
over the time until all of them had been processed.

Invariants: one row may always be sent, so that the channel makes progress; without a slow receiver, the limit only grows.

>>> limit = InFlightLimit()
>>> limit.spend(FIRST, now=0.0)
>>> limit.admits(1), limit.done(1, now=0.001), limit.admits(FIRST)
(False, None, True)
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

DRAIN_SECONDS = 0.5
"""Seconds within which a receiver should process the rows in flight on a channel."""

PIECES = 4
"""Batches are cut into pieces of at most this part of the limit.

So the receiver can serve other channels between two pieces, and credit returns.
"""

FIRST = 256
"""The first limit, before any measurement; for a fast receiver the first grant, milliseconds later, raises it a hundredfold."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A batch sent at `time` (seconds), with the rows in flight then, its own included."""

    time: float
    rows: int
    in_flight: int


class InFlightLimit:
    """The limit of one channel, at its sending end. `now`: seconds of a steady clock."""

    def __init__(self) -> None:
        self.rows: float = FIRST
        """The rows that may be in flight."""
        self._in_flight = 0
        self._left: deque[_Sent] = deque()
        self._done = 0

    @property
    def piece(self) -> int:
        """The most rows that should be sent as one batch, at least 1."""
        return max(1, int(self.rows / PIECES))

    def admits(self, rows: int) -> bool:
        """Return True if a batch of `rows` rows may be sent now."""
        return self._in_flight == 0 or self._in_flight + rows <= self.rows

    def spend(self, rows: int, now: float) -> None:
        """Record that a batch was sent."""
        self._in_flight += rows
        self._left.append(_Sent(now, rows, self._in_flight))

    def done(self, batches: int, now: float) -> None:
        """Record that the receiver has processed this many batches in total. Raises ValueError if they were never sent."""
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
