"""Dates and times of Python and pandas as columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa


class MisfitError(ValueError):
    """The error for values that no column, or no column of the given type, can hold."""


_ZONE = attrgetter("tzinfo")


def datetimes(values: Sequence[Any]) -> pa.Array:
    """Convert datetimes, all with a zone or all without, to timestamps in microseconds. Raises MisfitError for a mixture."""
    zones = _zones(values)
    if len({zone is None for zone in zones}) > 1:
        raise MisfitError("datetimes with and without a zone")
    return pa.array(values, pa.timestamp("us", "UTC") if len(set(map(str, zones))) > 1 else None)


def times_of_day(values: Sequence[Any]) -> pa.Array:
    """Convert times without a zone to a column in microseconds. Raises MisfitError for times with a zone."""
    if _zones(values) != {None}:
        raise MisfitError("times of the day with a zone")
    return pa.array(values, pa.time64("us"))


def pandas_datetimes(values: Sequence[Any]) -> pa.Array:
    """Convert pandas timestamps, which may have nanoseconds, and datetimes among them."""
    plain = datetimes(values)
    if not any(getattr(value, "nanosecond", 0) for value in values):
        return plain
    if any(type(value) is datetime and not 1678 <= value.year <= 2261 for value in values):
        raise MisfitError("times of nanoseconds and times that nanoseconds have no room for")
    stamps = [
        None if value is None else np.datetime64(_utc(value), "us") if type(value) is datetime else value.to_datetime64()
        for value in values
    ]
    return pa.array(np.array(stamps, "datetime64[ns]")).cast(pa.timestamp("ns", plain.type.tz))


def _utc(value: datetime) -> datetime:
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def pandas_durations(values: Sequence[Any]) -> pa.Array:
    """Convert pandas timedeltas, which may have nanoseconds, and Python's among them."""
    if not any(getattr(value, "nanoseconds", 0) for value in values):
        return pa.array(values, pa.duration("us"))
    return pa.array(np.array([_duration(value) for value in values], "timedelta64[ns]"))


def _zones(values: Sequence[Any]) -> set[Any]:
    try:
        return set(map(_ZONE, values))
    except AttributeError:
        return set(map(_ZONE, filter(None, values)))


def _duration(value: Any) -> Any:
    return value if value is None or type(value) is timedelta else value.to_timedelta64()
