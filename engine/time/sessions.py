"""Session windows: runs of a key's rows that are at most `gap` apart.

A session has no fixed bounds, but rows of one key in one pane of width `gap` are always in the same session. So rows are
combined by pane before their session is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..batch import Times
from ..errors import FlowError
from .duration import Duration, microseconds
from .event_time import EARLIEST, LATEST
from .windows import TimeOfWindows, check_time_of_windows, said_time


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Sessions of rows at most `gap` microseconds apart. A session ends `gap` after its last row.

    `time`: the time by which rows are apart.
    """

    gap: int
    time: TimeOfWindows = "event"

    @property
    def pane(self) -> int:
        """Return the width of a pane in microseconds."""
        return self.gap

    def pane_of(self, times: Times) -> npt.NDArray[np.int64]:
        """Return the start of each time's pane in microseconds, shape (times,)."""
        return times - times % self.gap

    def outside(self, times: Times) -> int | None:
        """Return the first time whose session begins or ends outside the years 1 to 9999; None if all fit."""
        if int(times.min()) < EARLIEST:
            return int(times.min())
        latest = int(times.max())
        return latest if latest + self.gap > LATEST else None

    def describe(self) -> str:
        return f"sessions, {self.gap / 1e6:g} s apart{said_time(self.time)}"


def session(gap: Duration, *, time: TimeOfWindows = "event") -> SessionWindows:
    """Return session windows: the rows of a key at most `gap` apart, equality included. A row between two sessions merges them.

    A session begins at its first row's time and ends `gap` after its last row's. `time="processing"`: a session ends by the clock, once
    no row of the key has arrived for longer than `gap`; else as for `tumbling`. Raises FlowError for a gap that is zero or no duration,
    and for another `time`.

    >>> session("10s").gap
    10000000
    """
    check_time_of_windows(time)
    windows = SessionWindows(microseconds(gap, "session gap"), time)
    if windows.gap == 0:
        raise FlowError(f"session gap {gap!r} must be longer than zero: rows of one session are at most that far apart")
    return windows
