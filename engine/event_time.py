"""Event time: from a column of a source to microseconds per row, and the watermark of bounded disorder.

>>> import pyarrow as pa
>>> spec = EventTime("ts", unit="ms", max_delay=50_000)
>>> spec.extract(pa.record_batch({"ts": [1, 2]}), "read").tolist()
[1000, 2000]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .batch import Times
from .errors import ConnectorError, FlowError

_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class EventTime:
    """Which column holds the event time, and how far out of order it may be.

    `unit` ("s", "ms", "us", "ns") counts for integer columns since the Unix epoch; timestamps and dates carry their own (a timestamp
    without a zone is read as UTC). `max_delay` is in microseconds: a record may come that much later than the newest one before it.
    """

    column: str
    unit: str = "ms"
    max_delay: int = 0

    def __post_init__(self) -> None:
        if self.unit not in (*_PER_UNIT, "ns"):
            raise FlowError(f'event time unit {self.unit!r} is unknown: use "s", "ms", "us" or "ns"')

    def check(self, schema: pa.Schema, operator: str) -> None:
        """Raises ConnectorError unless `schema` has the column in a usable type."""
        index = schema.get_field_index(self.column)
        if index < 0:
            raise ConnectorError(f"operator `{operator}`: no event time column `{self.column}`; there are: {', '.join(schema.names)}")
        kind = schema.field(index).type
        if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            expected = "expected a timestamp, a date or an integer"
            raise ConnectorError(f"operator `{operator}`: event time column `{self.column}` is {kind}; {expected}")

    def extract(self, rows: pa.RecordBatch, operator: str) -> Times:
        """Event times of `rows` in microseconds, shape (rows,). Raises ConnectorError for a missing column, a wrong type, a null."""
        self.check(rows.schema, operator)
        column = rows.column(self.column)
        if column.null_count:
            row = int(np.flatnonzero(pc.is_null(column).to_numpy(zero_copy_only=False))[0])
            raise ConnectorError(
                f"operator `{operator}`: event time column `{self.column}` is null in row {rows.slice(row, 1).to_pylist()[0]}; "
                "filter such rows out before they are read, or choose another column"
            )
        return self.to_microseconds(column)

    def to_microseconds(self, column: pa.Array) -> Times:
        """The column (no nulls, a type that `check` allows) in microseconds since the epoch."""
        if pa.types.is_integer(column.type):
            values = column.to_numpy().astype(np.int64, copy=False)
            times: Times = values // 1_000 if self.unit == "ns" else values * _PER_UNIT[self.unit]
            return times
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("s"))
        stamps: Times = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None)), safe=False).view(pa.int64()).to_numpy()
        return stamps
