"""Event time: conversion of a source's time column to microseconds per row, and the bound of its disorder for watermarks.

>>> import pyarrow as pa
>>> spec = EventTime("ts", unit="ms", max_delay=50_000)
>>> spec.extract(pa.record_batch({"ts": [1, 2]}), "read").tolist()
[1000, 2000]
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..batch import Times
from ..errors import ConnectorError, FlowError

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}

EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last event time in microseconds: the years 1 to 9999, the range of Python's datetime and Spark's timestamps.

Windows and delays from any of them stay far from the bounds of 64 bits.
"""


@dataclass(frozen=True, slots=True)
class EventTime:
    """The column that holds a source's event time, and how far out of order it may be.

    `unit` ("s", "ms", "us", "ns") applies to integer columns, which count from the Unix epoch. Timestamps and dates carry
    their own unit; a timestamp without a zone is read as UTC. `max_delay` is in microseconds: a record's time may be that
    much earlier than the newest time before it. `idle_after`: the microseconds without rows after which an input counts with the
    clock's time, None if it never does.
    """

    column: str
    unit: str = "ms"
    max_delay: int = 0
    idle_after: int | None = None

    def __post_init__(self) -> None:
        if self.unit not in (*_PER_UNIT, "ns"):
            raise FlowError(f'event time unit {self.unit!r} is unknown: use "s", "ms", "us" or "ns"')

    def check(self, schema: pa.Schema, operator: str) -> None:
        """Raise ConnectorError unless `schema` has the column with a usable type."""
        index = schema.get_field_index(self.column)
        if index < 0:
            raise ConnectorError(f"operator `{operator}`: no event time column `{self.column}`; there are: {', '.join(schema.names)}")
        kind = schema.field(index).type
        if not _holds_times(kind):
            expected = "expected a timestamp, a date or an integer"
            raise ConnectorError(f"operator `{operator}`: event time column `{self.column}` is {kind}; {expected}")

    def extract(self, rows: pa.RecordBatch, operator: str) -> Times:
        """Return the event times of `rows` in microseconds, shape (rows,).

        Raises ConnectorError for a missing column, a wrong type, a null, or a time outside the years 1 to 9999.
        """
        self.check(rows.schema, operator)
        column = rows.column(self.column)
        if column.null_count:
            row = int(np.flatnonzero(pc.is_null(column).to_numpy(zero_copy_only=False))[0])
            raise ConnectorError(
                f"operator `{operator}`: event time column `{self.column}` is null in row {rows.slice(row, 1).to_pylist()[0]}; "
                "filter such rows out before they are read, or choose another column"
            )
        place = self._first_outside(column)
        if place is not None:
            row, value, unit = rows.slice(place, 1), _counted(column)[0][place], self._unit_of(column.type)
            others = row.select([name for name in row.schema.names if name != self.column]).to_pylist()[0]
            raise ConnectorError(
                f"operator `{operator}`: event time column `{self.column}` is {value} {unit} since 1970 in the row with {others}, which is "
                f"outside of the years 1 to 9999; {self._remedy(column.type)}"
            )
        return self.to_microseconds(column)

    def times(self, column: pa.Array) -> tuple[Times, npt.NDArray[np.bool_]]:
        """Return the column in microseconds since the epoch, and a mask of rows that are null, NaN or outside the years 1 to
        9999.

        Numbers with a fraction count `unit`, as integers do. All are rounded down to microseconds. Raises TypeError for any other
        type.
        """
        wrong = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        kind = column.type
        if pa.types.is_floating(kind):
            counts = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False).astype(np.float64)
            micros = np.where(wrong, 0.0, counts) * (1_000_000 / _PER_SECOND[self.unit])
            wrong |= ~((micros >= EARLIEST) & (micros <= LATEST))
            return np.where(wrong, 0.0, _floor(micros)).astype(np.int64), wrong
        if not _holds_times(kind):
            if pa.types.is_null(kind):
                return np.zeros(len(column), np.int64), np.ones(len(column), np.bool_)
            raise TypeError("expected a timestamp, a date or a number")
        if not wrong.any() and self.fits(column):
            return self.to_microseconds(column), wrong
        fine = [place for place in np.flatnonzero(~wrong).tolist() if self.fits(column.slice(place, 1))]
        times, wrong = np.zeros(len(column), np.int64), np.ones(len(column), np.bool_)
        times[fine], wrong[fine] = self.to_microseconds(column.take(pa.array(fine, pa.int64()))), False
        return times, wrong

    def to_microseconds(self, column: pa.Array) -> Times:
        """Return the column in microseconds since the epoch.

        Its type must be one that `check` allows; it must have no nulls, and only times in the years 1 to 9999.
        """
        if pa.types.is_integer(column.type):
            values = column.to_numpy()
            times: Times = (values // 1_000 if self.unit == "ns" else values).astype(np.int64, copy=False)
            return times if self.unit == "ns" else times * _PER_UNIT[self.unit]
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("ms" if pa.types.is_date64(column.type) else "s"))
        if column.type.unit == "ns":
            nanoseconds: Times = column.view(pa.int64()).to_numpy()
            return nanoseconds // 1_000  # earlier times too are rounded down, which a cast would not do
        stamps: Times = column.cast(pa.timestamp("us", tz=column.type.tz)).view(pa.int64()).to_numpy()
        return stamps

    def fits(self, column: pa.Array) -> bool:
        """Return True if all times of the column are in the years 1 to 9999."""
        return self._first_outside(column) is None

    def _first_outside(self, column: pa.Array) -> int | None:
        """Return the row of the first time outside the years 1 to 9999."""
        if not len(column):
            return None
        values, per_second = _counted(column)
        if per_second is None:
            per_second = _PER_SECOND[self.unit]
        first, last = EARLIEST * per_second // 1_000_000, (LATEST + 1) * per_second // 1_000_000 - 1
        if first <= int(values.min()) and int(values.max()) <= last:
            return None
        return next(place for place, value in enumerate(values.tolist()) if not first <= value <= last)

    def _unit_of(self, kind: pa.DataType) -> str:
        if pa.types.is_integer(kind):
            return self.unit
        return "s" if pa.types.is_date(kind) else str(kind.unit)

    def _remedy(self, kind: pa.DataType) -> str:
        other = f'; unit={self.unit!r} says what its integers count: "s", "ms", "us" or "ns"' if pa.types.is_integer(kind) else ""
        return f"correct such rows, or filter them out before they are read{other}"


def _floor(micros: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Round down, but allow for the precision of floats: 1.001 s is 1,001,000 microseconds."""
    nearest = np.rint(micros)
    floor: npt.NDArray[np.float64] = np.where(np.abs(micros - nearest) <= 2 * np.spacing(np.abs(micros)), nearest, np.floor(micros))
    return floor


def shown_time(time: int) -> str:
    """Format an event time for a message."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)).isoformat()
    except OverflowError:
        return f"{time} microseconds since 1970"


def _counted(column: pa.Array) -> tuple[npt.NDArray[Any], int | None]:
    """Return the column's integers, and how many make a second; None if the user's `unit` says so."""
    if pa.types.is_integer(column.type):
        return column.to_numpy(), None
    if pa.types.is_date32(column.type):
        return column.view(pa.int32()).to_numpy().astype(np.int64) * 86_400, 1
    if pa.types.is_date64(column.type):
        return column.view(pa.int64()).to_numpy() // 1_000, 1
    return column.view(pa.int64()).to_numpy(), _PER_SECOND[column.type.unit]


def _holds_times(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind))
