"""Conversion of key columns to Python values and back: equal keys have equal values of equal hashes, different keys different
ones.

NaN is one key: every NaN is the same object, because Python finds a NaN in a dict by identity alone. A time that Python's types
can't hold, with nanoseconds or beyond the year 9999, is a numpy scalar.

>>> column_key_values(pa.array([1_000, 1_001], pa.timestamp("ns")))
[datetime.datetime(1970, 1, 1, 0, 0, 0, 1), np.datetime64('1970-01-01T00:00:00.000001001')]
>>> key_value_column(_, pa.timestamp("ns")).cast("int64").to_pylist()
[1000, 1001]
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from typing import Any

import numpy as np
import pyarrow as pa

from ..batch import column_values
from ..types.python_values import array_of

NAN = nan
"""The NaN of all keys."""

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def column_key_values(column: pa.Array) -> list[Any]:
    """Return the values of a key column."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_floating(kind):
        return [NAN if value is not None and isnan(value) else value for value in column_values(column)]
    if not _has_unit(kind):
        return column_values(column)
    plain = column.cast(kind) if column.type != kind else column
    if kind.unit == "ns":
        return _of_nanoseconds(plain)
    try:
        return column_values(plain)
    except (OverflowError, ValueError):
        return [_scalar(plain, place) for place in range(len(plain))]


def key_value_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Convert values to a key column of type `kind`; the inverse of `column_key_values`.

    Raises one of `REFUSALS` for a value that the type can't hold.
    """
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not _has_unit(plain) or not any(isinstance(value, np.generic) for value in values):
        return array_of(values, kind)
    rest = pa.array([None if isinstance(value, np.generic) else value for value in values], plain).view(_storage(plain)).to_pylist()
    whole = [_count(value, plain.unit) if isinstance(value, np.generic) else count for value, count in zip(values, rest, strict=True)]
    return pa.array(whole, _storage(plain)).view(plain).cast(kind)


def _has_unit(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time(kind))


def _storage(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _of_nanoseconds(column: pa.Array) -> list[Any]:
    """Convert times without `to_pylist`, whose values depend on whether pandas is installed."""
    counts = column.view(pa.int64())
    micros = pa.array([None if count is None else count // 1_000 for count in counts.to_pylist()], pa.int64())
    values = micros.view(_in_microseconds(column.type)).to_pylist()
    return [
        value if count is None or count % 1_000 == 0 else _numpy_scalar(count, column.type)
        for value, count in zip(values, counts.to_pylist(), strict=True)
    ]


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us")


def _scalar(column: pa.Array, place: int) -> Any:
    try:
        return column[place].as_py()
    except (OverflowError, ValueError):
        return _numpy_scalar(column.view(_storage(column.type))[place].as_py(), column.type)


def _numpy_scalar(count: int, kind: pa.DataType) -> Any:
    """Return a scalar in the coarsest unit that holds the count, since numpy may hash equal times of different units differently."""
    units: list[Any] = list(PER_SECOND)
    place = units.index(kind.unit)
    while place and count % 1_000 == 0:
        place, count = place - 1, count // 1_000
    return np.datetime64(count, units[place]) if pa.types.is_timestamp(kind) else np.timedelta64(count, units[place])


def _count(value: Any, unit: str) -> int:
    """Return a numpy scalar as a count of `unit`. Raises ValueError if it isn't a whole number of them."""
    count, rest = divmod(int(value.astype(np.int64)) * PER_SECOND[unit], PER_SECOND[np.datetime_data(value.dtype)[0]])
    if rest:
        raise ValueError(f"{value} is no whole number of {unit}")
    return count
