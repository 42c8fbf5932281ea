"""Columns from records' metadata: key, topic, partition, offset, timestamp, headers, and the value as bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....engine.batch import Times
from ....engine.errors import FlowError

if TYPE_CHECKING:
    from confluent_kafka import Message

TIMESTAMP = "timestamp"

HEADERS = pa.list_(pa.struct({"name": pa.string(), "value": pa.binary()}))

_TIME = pa.timestamp("ms", tz="UTC")


def timestamps(records: Sequence[Message]) -> pa.Array:
    """Return the records' timestamps, from the producer or the broker; null where a record has none."""
    stamps = np.array([record.timestamp()[1] for record in records], np.int64)
    return pa.array(stamps, mask=stamps < 0).cast(_TIME)


def _headers(records: Sequence[Message]) -> pa.Array:
    headers: list[Any] = [record.headers() or () for record in records]
    return pa.array([[{"name": name, "value": value} for name, value in pairs] for pairs in headers], HEADERS)


_COLUMNS: dict[str, tuple[pa.DataType, Callable[[Sequence[Message]], pa.Array]]] = {
    "key": (pa.binary(), lambda records: pa.array([record.key() for record in records], pa.binary())),
    "value": (pa.binary(), lambda records: pa.array([record.value() for record in records], pa.binary())),
    "topic": (pa.string(), lambda records: pa.array([record.topic() for record in records], pa.string())),
    "partition": (pa.int32(), lambda records: pa.array([record.partition() for record in records], pa.int32())),
    "offset": (pa.int64(), lambda records: pa.array([record.offset() for record in records], pa.int64())),
    TIMESTAMP: (_TIME, timestamps),
    "headers": (HEADERS, _headers),
}


class RecordColumns:
    """The metadata columns that the user asked for, added to those of the values. Raises FlowError for an unknown one.

    `prefix`: before the names of the columns that are added.
    """

    def __init__(self, names: Sequence[str], operator: str, prefix: str = "") -> None:
        wrong = next((name for name in names if name not in _COLUMNS), None)
        if isinstance(names, str) or wrong is not None or len(set(names)) < len(names):
            raise FlowError(f"operator `{operator}`: columns={names!r}; expected a list of these, each once: {', '.join(_COLUMNS)}")
        self.names, self._prefix = tuple(names), prefix

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(f"{self._prefix}{name}", _COLUMNS[name][0]) for name in self.names])

    def check(self, values: pa.Schema, operator: str) -> None:
        """Raise FlowError if the values have a column of the same name."""
        clash = next((name for name in self.names if name in values.names), None)
        if clash is not None:
            raise FlowError(
                f"operator `{operator}`: columns={list(self.names)} and the values both have `{clash}`; remove it from columns, or "
                "name the fields that you need in schema={...} without it"
            )

    def appended_to(self, rows: pa.RecordBatch, records: Sequence[Message]) -> pa.RecordBatch:
        """Append these columns to `rows`; each row has one record."""
        arrays = [_COLUMNS[name][1](records) for name in self.names]
        schema = pa.schema([*rows.schema, *self.schema])
        return pa.RecordBatch.from_arrays([*rows.columns, *arrays], schema=schema) if arrays else rows


def record_times(records: Sequence[Message]) -> tuple[Times, npt.NDArray[np.bool_]]:
    """Return the records' timestamps in microseconds, and which records have none."""
    stamps = np.array([record.timestamp()[1] for record in records], np.int64)
    missing = stamps < 0
    return np.where(missing, 0, stamps * 1_000), missing
