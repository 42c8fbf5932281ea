"""Times of Parquet's old type INT96, which Spark and Hive write: nanoseconds of a day, and the day.

They have no unit. Arrow reads them as 64 bits of nanoseconds, where the year 3000 silently becomes another one, or as microseconds,
which silently drops nanoseconds. So a column is read as both. The two agree unless a value was changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...engine.errors import ConnectorError

_REMEDIES = {
    "ns": "write it as TIMESTAMP_MICROS, for Spark by spark.sql.parquet.outputTimestampType",
    "us": "round it where it is written",
}


def int96_columns(metadata: pq.FileMetaData, names: Sequence[str] | None) -> list[str]:
    """Return those of the columns `names`, None for all, that have times of the type INT96."""
    schema = metadata.schema
    leaves = [schema.column(place) for place in range(metadata.num_columns)]
    found = dict.fromkeys(leaf.path.split(".")[0] for leaf in leaves if leaf.physical_type == "INT96")
    return [name for name in found if names is None or name in names]


def checked_int96(rows: pa.RecordBatch, micros: pa.RecordBatch, unit: Literal["us", "ns"], path: str, operator: str) -> pa.RecordBatch:
    """Return rows, read with nanoseconds, with the INT96 columns in `unit`; `micros`: these columns, read with microseconds.

    Raises ConnectorError naming the column for a time that the unit can't hold.
    """
    for name in micros.schema.names:
        place = rows.schema.get_field_index(name)
        for fine, coarse in zip(_times(rows.column(place)), _times(micros.column(name)), strict=True):
            wrong = _wrong(fine, coarse, unit)
            if wrong is not None:
                shown = coarse.slice(wrong, 1).cast(pa.string())[0] if unit == "ns" else fine.slice(wrong, 1).cast(pa.string())[0]
                problem = f"column `{name}` has the INT96 time {shown}, which timestamp[{unit}] can't hold; {_REMEDIES[unit]}"
                raise ConnectorError(f"operator `{operator}`: {path} can't be read: {problem}")
        if unit == "us":
            rows = rows.set_column(place, name, micros.column(name))
    return rows


def _wrong(fine: pa.Array, coarse: pa.Array, unit: str) -> int | None:
    """Return the place of the first time that `unit` can't hold."""
    nanos, micros = (column.view(pa.int64()).fill_null(0).to_numpy() for column in (fine, coarse))
    fits = nanos // 1_000 == micros
    changed = ~fits if unit == "ns" else fits & (nanos % 1_000 != 0)
    return int(np.argmax(changed)) if changed.any() else None


def _times(column: pa.Array) -> Iterator[pa.Array]:
    """Yield the times of a column, and those in its structs, lists and maps."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        yield column
    elif pa.types.is_map(kind):
        yield from _times(column.keys)
        yield from _times(column.items)
    elif pa.types.is_struct(kind):
        for part in column.flatten():
            yield from _times(part)
    elif pa.types.is_list(kind):
        yield from _times(column.flatten())
