"""Windows of event time or processing time, cut into panes so that each record is counted once, however many windows contain it.

A pane is the greatest common divisor of a window's size and slide (Li et al., "No pane, no gain", SIGMOD Record 2005):
a tumbling window is one pane, a sliding one merges several.

>>> Window = tumbling("1h"); Window.pane, Window.size
(3600000000, 3600000000)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import gcd
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from ..batch import Times
from ..errors import FlowError
from .duration import Duration, microseconds, signed_microseconds
from .event_time import EARLIEST, LATEST

MOST_PANES = 100_000
"""The limit of panes per window. A record is in as many sliding windows, each with a row of results."""


TimeOfWindows = Literal["event", "processing"]
"""The time by which rows are put into windows: their event time, or the clock when they arrive."""


def said_time(time: TimeOfWindows) -> str:
    """Return what the description of windows of that time ends with."""
    return " (processing time)" if time == "processing" else ""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows [start, start + size) at every start = offset + k * slide; all in microseconds.

    `time`: the time by which rows are put into windows.
    """

    size: int
    slide: int
    offset: int = 0
    time: TimeOfWindows = "event"

    @property
    def pane(self) -> int:
        """Return the width of a pane in microseconds."""
        return gcd(self.size, self.slide)

    def pane_of(self, times: Times) -> npt.NDArray[np.int64]:
        """Return the start of each time's pane in microseconds, shape (times,)."""
        width = self.pane
        return times - (times - self.offset) % width

    def last_end(self, pane: int) -> int:
        """Return the end of the last window with the pane that starts at `pane`; the pane is not needed after it."""
        return pane - (pane - self.offset) % self.slide + self.size

    def first_end(self, pane: int) -> int:
        """Return the end of the first window with the pane that starts at `pane`."""
        end = pane + self.pane
        return end + (self.offset + self.size - end) % self.slide

    def outside(self, times: Times) -> int | None:
        """Return the first time that is in a window outside the years 1 to 9999; None if all fit."""
        earliest, latest = int(times.min()), int(times.max())
        first, last = self.pane_of(np.array([earliest, latest])).tolist()
        if self.first_end(first) - self.size < EARLIEST:
            return earliest
        return latest if self.last_end(last) > LATEST else None

    def describe(self) -> str:
        kind = "tumbling" if self.size == self.slide else f"sliding every {self.slide / 1e6:g} s,"
        return f"{kind} {self.size / 1e6:g} s{said_time(self.time)}"


def tumbling(size: Duration, *, offset: Duration = 0, time: TimeOfWindows = "event") -> Windows:
    """Return windows of `size`, end to end, aligned to `offset`, which may be negative.

    `time="processing"`: a row is in the window in which it arrives, by the clock of the worker that sends it to the window's
    operator, with or without event time. Windows close by the clock, also while no rows come. From there on the rows' event time is
    the time of arrival. A row that is read again after a recovery may be in another window, but each row is in exactly one.

    Raises FlowError for a size that is zero or no duration, and for another `time`.

    >>> tumbling("1h").size, tumbling("1d", offset="-8h").offset
    (3600000000, -28800000000)
    """
    return sliding(size, every=size, offset=offset, time=time)


def sliding(size: Duration, every: Duration, *, offset: Duration = 0, time: TimeOfWindows = "event") -> Windows:
    """Return windows of `size`, one every `every`, aligned to `offset`, which may be negative; `time` is as for `tumbling`.

    A record is in `size / every` windows, and each window consists of panes of their greatest common divisor. Raises FlowError
    for zero, for gaps between windows (`every` > `size`), and for more than 100,000 panes in a window.

    >>> sliding("1h", every="15m").slide
    900000000
    """
    check_time_of_windows(time)
    shift = signed_microseconds(offset, "window offset")
    windows = Windows(microseconds(size, "window size"), microseconds(every, "window slide"), shift, time)
    if windows.size == 0 or windows.slide == 0:
        raise FlowError(f"window size {size!r} and slide {every!r} must be longer than zero")
    if windows.slide > windows.size:
        raise FlowError(f"windows of {size!r} every {every!r} would leave gaps between them: make them at least as long as the slide")
    if (panes := windows.size // windows.pane) > MOST_PANES:
        raise FlowError(
            f"windows of {size!r} every {every!r} would have {panes:,} panes of {windows.pane:,} us each, and the most is {MOST_PANES:,}: "
            "use a longer slide, or one that divides their size"
        )
    return windows


def check_time_of_windows(time: TimeOfWindows) -> None:
    """Raise FlowError for a time that windows don't know."""
    if time not in get_args(TimeOfWindows):
        raise FlowError(f'windows of time={time!r:.200}: expected "event" or "processing"')


@dataclass(frozen=True, slots=True)
class Window:
    """A window of event time, from `start` up to but without `end`, both in UTC.

    A session's `end` is its gap after its last row.
    """

    start: datetime
    end: datetime
