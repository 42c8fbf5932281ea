"""Checks of the options of an expression's methods."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from ..errors import FlowError, short

_EXPECTED = {int: "a whole number", str: "a text", bool: "True or False"}
_STEP = re.compile(r"\s*(\d+)\s*([a-z]+)\s*")
_UNITS = {
    "us": "microsecond", "ms": "millisecond", "s": "second", "m": "minute", "min": "minute", "h": "hour", "d": "day", "w": "week",
    "mo": "month", "q": "quarter", "y": "year",
}  # fmt: skip
_LONGEST_STEP = 2**31 - 1


def option(method: str, name: str, value: Any, kind: type) -> Any:
    """Return an option. Raises FlowError unless it is of the Python type `kind`: int, str or bool."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise FlowError(f"{method}({name}={short(value)}): expected {_EXPECTED[kind]}")
    return value


def time_step(method: str, every: Any) -> tuple[int, str]:
    """Return a step of time as a number and Arrow's name of its unit. Raises FlowError for anything else.

    >>> time_step("dt.truncate", "15m"), time_step("dt.truncate", timedelta(hours=36))
    ((15, 'minute'), (36, 'hour'))
    """
    if isinstance(every, timedelta) and every > timedelta(0):
        count = every // timedelta(microseconds=1)
        for unit, size in (
            ("hour", 3_600_000_000),
            ("minute", 60_000_000),
            ("second", 1_000_000),
            ("millisecond", 1_000),
            ("microsecond", 1),
        ):
            if count % size == 0 and count // size <= _LONGEST_STEP:
                return count // size, unit
    found = _STEP.fullmatch(every) if isinstance(every, str) else None
    if found is None or found[2] not in _UNITS or not 0 < int(found[1]) <= _LONGEST_STEP:
        example = '"500ms", "15m", "1h", "1d", "1w", "1mo", "1q" or "1y"'
        raise FlowError(f"{method}({short(every)}): expected a step of time, for example {example}, or a timedelta")
    return int(found[1]), _UNITS[found[2]]
