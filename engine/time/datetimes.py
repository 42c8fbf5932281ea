"""Event times as datetimes, for users' functions and for figures; the engine counts microseconds.

>>> as_datetime(1_500_000)
datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc)
>>> as_microseconds(as_datetime(1_500_000))
1500000
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from .event_time import EARLIEST, LATEST

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def as_datetime(time: int) -> datetime:
    """Return an event time in microseconds as a datetime in UTC; the first or last one if it is outside the years 1 to 9999."""
    return _EPOCH + timedelta(0, 0, time if EARLIEST <= time <= LATEST else LATEST if time > 0 else EARLIEST)


def as_microseconds(at: datetime) -> int:
    """Return a datetime in microseconds since the epoch; without a zone it is UTC, as in a source's column."""
    return ((at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
