"""The columns of a window's bounds, and the check that a record's windows have bounds that timestamps can represent."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...batch import Batch, Times
from ...errors import RecordError
from ...state_description import seconds_text
from ...time.event_time import shown_time
from ...time.sessions import SessionWindows
from ...time.windows import Windows

START, END = "window_start", "window_end"

TIMESTAMP = pa.timestamp("us", tz="UTC")
"""The type of both."""


def bounds_of(start: int, end: int, rows: int) -> list[pa.Array]:
    """Return the columns `window_start` and `window_end` of `rows` results of one window."""
    return [timestamps(np.full(rows, time, np.int64)) for time in (start, end)]


def timestamps(times: Times) -> pa.Array:
    """Return event times as a column."""
    return pa.array(times).cast(pa.timestamp("us")).cast(TIMESTAMP)


def timed(batch: Batch, windows: Windows | SessionWindows, operator: str) -> Times:
    """Return the batch's event times.

    Raises RecordError if it has none, or a record is in a window whose bounds no timestamp can represent.
    """
    if batch.times is None:
        raise RecordError(operator, "it has windows, but its stream has no event time: give the source event_time=")
    if (outside := windows.outside(batch.times)) is not None:
        raise RecordError(
            operator,
            f"a record of {shown_time(outside)} is in a window that begins before the year 1 or ends after 9999, which no timestamp "
            "of Python's can represent: filter such records out before the window, or give them another time",
            record=batch.slice(int(np.flatnonzero(batch.times == outside)[0]), 1).to_rows()[0],
        )
    return batch.times


def described_windows(windows: Windows | SessionWindows) -> str:
    """Describe the windows for a `StateDescription`, with everything that assigns rows to them."""
    if isinstance(windows, SessionWindows):
        return f"sessions, {seconds_text(windows.gap)} apart"
    kind = "tumbling" if windows.size == windows.slide else f"sliding every {seconds_text(windows.slide)},"
    offset = windows.offset % windows.slide
    return f"{kind} {seconds_text(windows.size)}{f', offset {seconds_text(offset)}' if offset else ''}"
