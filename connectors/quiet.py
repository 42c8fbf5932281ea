"""Inputs that give no rows for a while: after `idle_after` they count with the clock's time, so they don't hold event time back.

An input is a reader, or one of its splits. The clock's time counts only as of the last look that found nothing unread. A row that
arrives later is on time if it is at most `max_delay` older than that look, no matter when the reader is polled again.

>>> now = 100.0
>>> quiet = Quiet(EventTime("ts", max_delay=2_000_000, idle_after=30_000_000), Clocks(lambda: now, lambda: now))
>>> quiet.found_nothing(quiet.look()), quiet.bound == MIN_TIME
(None, True)
>>> now = 131.0
>>> quiet.found_nothing(quiet.look()), quiet.bound
(None, 129000000)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..engine.errors import FlowError
from ..engine.protocol.elements import MIN_TIME
from ..engine.time.duration import Duration, microseconds
from ..engine.time.event_time import EventTime

TICK = 100_000
"""Microseconds by which the clock's time advances in watermarks: each new watermark is sent to all downstream workers."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a reader. `now`: monotonic seconds; `wall`: seconds since the epoch."""

    now: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


CLOCKS = Clocks()
"""The machine's clocks."""

Look = tuple[float, float]
"""The beginning of a look for rows, by both clocks."""


class Quiet:
    """The quiet time of one input since its last row, or since it was opened."""

    def __init__(self, event_time: EventTime | None, clocks: Clocks = CLOCKS) -> None:
        self._event_time, self._clocks = event_time, clocks
        self._gave, self.bound = clocks.now(), MIN_TIME
        """`bound`: a lower bound (microseconds) of the event times of later rows by the clock; `MIN_TIME` unless idle."""

    @property
    def is_idle(self) -> bool:
        """True if the last look found nothing, `idle_after` or more after the last row."""
        return self.bound != MIN_TIME

    def look(self) -> Look:
        """Return the time at which a look for rows begins."""
        return self._clocks.now(), self._clocks.wall()

    def found_nothing(self, look: Look) -> None:
        """Note that everything which existed when this look began was emitted."""
        spec = self._event_time
        if spec is not None and spec.idle_after is not None and (look[0] - self._gave) * 1e6 >= spec.idle_after:
            self.bound = round(look[1] * 1e6) // TICK * TICK - spec.max_delay

    def gave(self) -> None:
        """Note that the input gave rows."""
        spec = self._event_time
        if spec is not None and spec.idle_after is not None:
            self._gave, self.bound = self._clocks.now(), MIN_TIME


FOLLOWED = "follow=True"
"""The streams without an end of sources that can follow their files or table."""


def event_time_of(
    column: str | None, unit: str, max_delay: Duration, idle_after: Duration | None, *, name: str, ends: str | None
) -> EventTime | None:
    """Check the event time of a source's arguments; None without event time.

    `ends`: None if the stream has no end, else the words for what has none. Raises FlowError if `idle_after` makes no sense.
    """
    idle = None if idle_after is None else microseconds(idle_after, "idle_after")
    if idle is not None:
        if ends is not None:
            raise FlowError(f"operator `{name}`: idle_after= is for {ends}; this stream ends with its last row, so leave it out")
        if column is None:
            raise FlowError(f"operator `{name}`: idle_after= needs event_time=; without event time no input holds anything back")
    if column is None:
        return None
    return EventTime(column, unit, microseconds(max_delay, "max_delay"), idle)


def idle_advice(event_time: EventTime | None, what: str) -> str:
    """Return `Source.idle_advice` for a stream without an end, whose inputs are called `what`."""
    return "" if event_time is None or event_time.idle_after is not None else f"; idle_after= lets a quiet {what} count as idle"
