"""Durations as users write them: "500ms", "1h", 2.5 (seconds), or a timedelta.

>>> microseconds("1.5s"), microseconds(2), microseconds("1h")
(1500000, 2000000, 3600000000)
"""

from __future__ import annotations

import re
from datetime import timedelta
from math import isfinite

from ..errors import FlowError

Duration = str | int | float | timedelta
"""A duration: a number of seconds, a timedelta, or a text like "250us", "2ms", "10s", "5m", "1h", "7d"."""

_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
LONGEST = 10_000 * 366 * _UNITS["d"]
"""Microseconds of the longest duration: no two event times are further apart, and sums of a few of them fit 64 bits."""

_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")


def microseconds(duration: Duration, what: str = "duration") -> int:
    """Return `duration` in whole microseconds. Raises FlowError, naming `what`, if it is negative or no duration."""
    if isinstance(duration, timedelta):
        value = duration // timedelta(microseconds=1)
    elif isinstance(duration, bool):
        raise FlowError(_explain(duration, what))
    elif isinstance(duration, (int, float)) and isfinite(duration):
        value = round(duration * 1_000_000)
    elif isinstance(duration, str) and (match := _PATTERN.fullmatch(duration)) and match[2] in _UNITS:
        value = round(float(match[1]) * _UNITS[match[2]])
    else:
        raise FlowError(_explain(duration, what))
    if value < 0:
        raise FlowError(_explain(duration, what))
    if value > LONGEST:
        raise FlowError(f"{what} {duration!r} is longer than 10,000 years")
    return value


def signed_microseconds(duration: Duration, what: str = "duration") -> int:
    """Return a duration that may be negative, such as "-5m", -2.5 or timedelta(hours=-8), in whole microseconds.

    >>> signed_microseconds("-100ms"), signed_microseconds("1s")
    (-100000, 1000000)

    Raises FlowError as `microseconds` does.
    """
    try:
        if isinstance(duration, str) and duration.strip().startswith("-"):
            return -microseconds(duration.strip()[1:], what)
        if isinstance(duration, (int, float)) and not isinstance(duration, bool) and duration < 0:
            return -microseconds(-duration, what)
        if isinstance(duration, timedelta) and duration < timedelta(0):
            return -microseconds(-duration, what)
    except FlowError:
        raise FlowError(_explain(duration, what)) from None
    return microseconds(duration, what)


def seconds(duration: Duration, what: str = "duration") -> float:
    """Return `duration` in seconds. Raises FlowError as `microseconds` does."""
    return microseconds(duration, what) / 1_000_000


def _explain(duration: object, what: str) -> str:
    return f'{what} {duration!r} is not a duration: write "500ms", "10s", "5m", "1h", "7d", a number of seconds, or a timedelta'
