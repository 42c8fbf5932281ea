"""Event-time windows, cut into panes so that each record is counted once however many windows it falls into.

A pane is the greatest common divisor of a window's size and slide (Li et al., "No pane, no gain", SIGMOD Record 2005):
a tumbling window is one pane, a sliding one merges several.

>>> Window = tumbling("1h"); Window.pane, Window.size
(3600000000, 3600000000)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
import numpy.typing as npt

from ..batch import Times
from ..errors import FlowError
from .duration import Duration, microseconds, signed_microseconds
from .event_time import EARLIEST, LATEST

MOST_PANES = 100_000
"""The most panes of a window: one record is in that many sliding windows, each with a row of results."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows [start, start + size) at every start = offset + k * slide; all in microseconds."""

    size: int
    slide: int
    offset: int = 0

    @property
    def pane(self) -> int:
        """Width of a pane in microseconds."""
        return gcd(self.size, self.slide)

    def pane_of(self, times: Times) -> npt.NDArray[np.int64]:
        """The start of each time's pane, microseconds."""
        width = self.pane
        return times - (times - self.offset) % width

    def last_end(self, pane: int) -> int:
        """End of the last window with the pane that starts at `pane`; after it the pane is not needed."""
        return pane - (pane - self.offset) % self.slide + self.size

    def first_end(self, pane: int) -> int:
        """End of the first window with the pane that starts at `pane`."""
        end = pane + self.pane
        return end + (self.offset + self.size - end) % self.slide

    def outside(self, times: Times) -> int | None:
        """The first time that is in a window outside the years 1 to 9999; None if there is none."""
        earliest, latest = int(times.min()), int(times.max())
        first, last = self.pane_of(np.array([earliest, latest])).tolist()
        if self.first_end(first) - self.size < EARLIEST:
            return earliest
        return latest if self.last_end(last) > LATEST else None

    def describe(self) -> str:
        kind = "tumbling" if self.size == self.slide else f"sliding every {self.slide / 1e6:g} s,"
        return f"{kind} {self.size / 1e6:g} s"


def tumbling(size: Duration, *, offset: Duration = 0) -> Windows:
    """Windows of `size`, end to end, that begin at `offset` and every `size` before and after it; `offset` may be negative.

    Raises FlowError for a size that is no duration or is zero.

    >>> tumbling("1h").size, tumbling("1d", offset="-8h").offset
    (3600000000, -28800000000)
    """
    return sliding(size, every=size, offset=offset)


def sliding(size: Duration, every: Duration, *, offset: Duration = 0) -> Windows:
    """Windows of `size`, one of which begins at `offset`, and one every `every` before and after it; `offset` may be negative.

    A record is in `size / every` windows, and each window consists of panes of their greatest common divisor. Raises FlowError for zero,
    for gaps between windows (`every` > `size`), and for more than 100,000 panes in a window.

    >>> sliding("1h", every="15m").slide
    900000000
    """
    windows = Windows(microseconds(size, "window size"), microseconds(every, "window slide"), signed_microseconds(offset, "window offset"))
    if windows.size == 0 or windows.slide == 0:
        raise FlowError(f"window size {size!r} and slide {every!r} must be longer than zero")
    if windows.slide > windows.size:
        raise FlowError(f"windows of {size!r} every {every!r} would leave gaps between them: make them at least as long as the slide")
    if (panes := windows.size // windows.pane) > MOST_PANES:
        raise FlowError(
            f"windows of {size!r} every {every!r} would have {panes:,} panes of {windows.pane:,} us each, and the most is {MOST_PANES:,}: "
            "let them begin less often, or after a whole part of their size"
        )
    return windows
