"""Functions of dates, times and durations. Times with the zone UTC lose it meanwhile: Arrow would look it up for each of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..trees.problems import BindingError
from .distinct import encoded_if_repeated, over_distinct
from .operand import Binder, Kernel, unary

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAYS = frozenset("YmdjyebBaAuwUVWGgFhCDxzZ")
"""The directives of a format whose text is that of the whole day, in a zone without summer time."""
_SHORT = ("hour", "minute", "second", "millisecond", "microsecond")


def _is_point(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _has_clock(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_time(kind))


def _without_utc(kind: pa.DataType) -> pa.DataType | None:
    """Return the type without a zone for times in UTC, None for all others."""
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) and kind.tz in ("UTC", "Etc/UTC", "+00:00") else None


def _part(kernel: Callable[[Any], Any]) -> Callable[[pa.DataType], Kernel]:
    def make(kind: pa.DataType) -> Kernel:
        naive = _without_utc(kind)
        return lambda values: kernel(values if naive is None else values.cast(naive)).cast(pa.int64())

    return make


def _date(kind: pa.DataType) -> Kernel:
    naive = _without_utc(kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None and naive is None:
        return lambda values: pc.local_timestamp(values).cast(pa.date32(), safe=False)
    return lambda values: (values if naive is None else values.cast(naive)).cast(pa.date32(), safe=False)


def _truncate(kind: pa.DataType, count: int, unit: str) -> Kernel:
    if pa.types.is_date(kind) and unit in _SHORT:
        raise BindingError(f"dt.truncate: a {kind} has no {unit}s")
    naive = _without_utc(kind)
    if naive is not None:
        return lambda values: pc.floor_temporal(values.cast(naive), count, unit=unit).cast(kind)
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return lambda values: pc.floor_temporal(values, count, unit=unit).cast(kind)
    return _in_zone(kind, count, unit)


def _in_zone(kind: pa.DataType, count: int, unit: str) -> Kernel:
    """Return the kernel for a zone whose clocks may show an hour twice or never."""

    def truncate(values: pa.Array) -> pa.Array:
        local = pc.local_timestamp(values)
        floored = pc.floor_temporal(local, count, unit=unit)
        if unit in _SHORT[1:] or (unit == "hour" and count == 1):
            return pc.subtract_checked(values, pc.subtract_checked(local, floored))
        return pc.assume_timezone(floored, kind.tz, ambiguous="earliest", nonexistent="latest").cast(kind)

    return truncate


def _strftime(kind: pa.DataType, form: str) -> Kernel:
    """Return the kernel of a format. Arrow's %S prints fractions of a second, so times of seconds are formatted; %f is not Arrow's."""
    if "%f" in form.replace("%%", ""):
        raise BindingError("dt.strftime: %f is not supported; dt.microsecond() gives the microseconds")
    if pa.types.is_date(kind):
        return lambda values: pc.strftime(values, form)
    zone = None if _without_utc(kind) is not None else kind.tz
    to = pa.timestamp("s", zone)
    if kind.tz is not None and zone is None and ("%z" in form or "%Z" in form):
        to = pa.timestamp("s", kind.tz)
    unit = _finest(form) if zone is None else "second"
    text = over_distinct(lambda values: pc.strftime(values, form))

    def formatted(values: pa.Array) -> pa.Array:
        floored = pc.floor_temporal(values.cast(pa.timestamp(kind.unit)), unit=unit)
        return text(encoded_if_repeated(floored.cast(pa.timestamp(kind.unit, to.tz)).cast(to)))

    return formatted


def _finest(form: str) -> str:
    """Return the unit below which times have the same text."""
    found = set(re.findall("%(.)", form.replace("%%", "")))
    return (
        "day" if found <= _DAYS else "hour" if found <= _DAYS | {"H", "I", "p"} else "minute" if found <= _DAYS | set("HIpMR") else "second"
    )


def _epoch(kind: pa.DataType, unit: str) -> Kernel:
    if unit not in _PER_SECOND:
        raise BindingError(f'dt.epoch(unit={unit!r}): expected "s", "ms", "us" or "ns"')
    if pa.types.is_date(kind):
        return lambda values: values.cast(pa.timestamp("s")).cast(pa.timestamp(unit)).cast(pa.int64())
    have, want = _PER_SECOND[kind.unit], _PER_SECOND[unit]
    if want >= have:
        return lambda values: pc.multiply_checked(values.cast(pa.int64()), want // have)
    arrow_unit = {"s": "second", "ms": "millisecond", "us": "microsecond"}[unit]

    def rounded(values: pa.Array) -> pa.Array:
        naive = values.cast(pa.timestamp(kind.unit))
        return pc.floor_temporal(naive, unit=arrow_unit).cast(pa.timestamp(unit)).cast(pa.int64())

    return rounded


def _total_seconds(kind: pa.DataType) -> Kernel:
    return lambda values: pc.divide(values.cast(pa.int64()).cast(pa.float64(), safe=False), float(_PER_SECOND[kind.unit]))


def _of_points(name: str, result: pa.DataType, make: Callable[..., Kernel]) -> Binder:
    return unary(name, _is_point, "dates and timestamps", result, make)


def _of_clocks(name: str, make: Callable[..., Kernel]) -> Binder:
    return unary(name, _has_clock, "timestamps and times", pa.int64(), make)


def _microsecond(values: Any) -> Any:
    return pc.add(pc.multiply(pc.millisecond(values), 1_000), pc.microsecond(values))


_POINTS = {
    "year": pc.year, "quarter": pc.quarter, "month": pc.month, "week": pc.iso_week, "day": pc.day, "ordinal_day": pc.day_of_year,
    "weekday": lambda values: pc.day_of_week(values, count_from_zero=False),
}  # fmt: skip
_CLOCKS = {"hour": pc.hour, "minute": pc.minute, "second": pc.second, "microsecond": _microsecond}

FUNCTIONS: dict[str, Binder] = {
    **{f"dt.{name}": _of_points(f"dt.{name}", pa.int64(), _part(kernel)) for name, kernel in _POINTS.items()},
    **{f"dt.{name}": _of_clocks(f"dt.{name}", _part(kernel)) for name, kernel in _CLOCKS.items()},
    "dt.date": _of_points("dt.date", pa.date32(), _date),
    "dt.truncate": _of_points("dt.truncate", pa.null(), _truncate),
    "dt.strftime": _of_points("dt.strftime", pa.string(), _strftime),
    "dt.epoch": _of_points("dt.epoch", pa.int64(), _epoch),
    "dt.total_seconds": unary("dt.total_seconds", pa.types.is_duration, "durations", pa.float64(), _total_seconds),
}
