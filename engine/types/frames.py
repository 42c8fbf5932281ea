"""Conversion of frames to Arrow tables: pandas, Polars, DuckDB and others that implement Arrow's protocol, with no dependency on
them.

Types are kept. The index of a pandas frame is dropped unless it has a name: a named index is a column of the result.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..errors import FlowError
from .python_values import REFUSALS, array_of

FRAMES = "a pyarrow Table or RecordBatch, a pandas or Polars DataFrame, or another object with __arrow_c_stream__"


def frame_as_arrow(frame: Any, method: str) -> pa.Table | None:
    """Convert a frame to a table; return None for any other object. Raises FlowError, naming `method`, if Arrow can't hold it."""
    try:
        table = _as_arrow(frame)
        if table is None:
            return None
        _check_names(table.column_names)
        return _decoded(table)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise FlowError(f"{method}: the {type(frame).__name__} can't become an Arrow table: {error}") from error


def _check_names(names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two of its columns have the name `{twice}`: rename one")


def _as_arrow(frame: Any) -> pa.Table | None:
    package = type(frame).__module__.partition(".")[0]
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if isinstance(frame, (pa.Array, pa.ChunkedArray)):
        return None
    if package == "pandas":
        return _of_pandas(frame) if hasattr(frame, "columns") else None
    if package == "pyspark" and hasattr(frame, "toArrow"):
        return frame.toArrow()
    if package == "polars" and type(frame).__name__ == "LazyFrame":
        raise TypeError("it is a query: call .collect() first")
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(frame).read_all()
    return pa.Table.from_batches([pa.record_batch(frame)]) if hasattr(frame, "__arrow_c_array__") else None


def _of_pandas(frame: Any) -> pa.Table:
    wrong = next((name for name in frame.columns if not isinstance(name, str)), None)
    if wrong is not None:
        raise TypeError(f"the name of its column {wrong!r} is no text: rename it, for example by frame.columns = [...]")
    named = [name for name in frame.index.names if name is not None]
    frame = frame.reset_index(level=named) if named else frame
    _check_names(list(frame.columns))
    objects = {name: _of_objects(frame[name]) for name, kind in frame.dtypes.items() if kind == "object"}
    typed = pa.Table.from_pandas(frame.drop(columns=[*objects]), preserve_index=False)
    return pa.table({name: objects[name] if name in objects else typed.column(name) for name in frame.columns})


def _of_objects(series: Any) -> pa.Array:
    """Convert Python's values; Arrow's own conversion cuts a datetime among dates, and nanoseconds."""
    values = series.where(series.notna(), None).tolist()
    try:
        return array_of(values)
    except REFUSALS as error:
        raise ValueError(f"its column `{series.name}` holds no values of one type: {error}") from error


def _decoded(table: pa.Table) -> pa.Table:
    """Convert views and categories of text to plain text; other columns keep their types."""
    for place, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        kind = pa.string() if kind == pa.string_view() else pa.binary() if kind == pa.binary_view() else kind
        if kind != field.type:
            table = table.set_column(place, field.name, table.column(place).cast(kind))
    return table.replace_schema_metadata(None)
