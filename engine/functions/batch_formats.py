"""Formats in which a function of batches gets its rows: Arrow, pandas, Polars or numpy. Its result may be in any of them.

Values arrive as they are in the columns. So pandas' columns have Arrow's types, because its own would make floats of whole
numbers in a column with nulls, and a column of numbers with nulls can't be a numpy array.

>>> batch = pa.record_batch({"n": [1, 2]})
>>> in_format(batch, "numpy")
{'n': array([1, 2])}
>>> rows_of_result({"n": [3]}).to_pylist()
[{'n': 3}]
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Literal

import pyarrow as pa

from ..errors import FlowError
from ..types.frames import frame_as_arrow
from ..types.value_column import column_of

Format = Literal["arrow", "pandas", "polars", "numpy"]
"""A format of batches."""

FORMATS = ("arrow", "pandas", "polars", "numpy")


def check_format(chosen: Any, method: str) -> Format:
    """Return the format. Raises FlowError for an unknown one, and for one whose package isn't installed."""
    if chosen not in FORMATS:
        raise FlowError(f'{method}(format={chosen!r}): expected "arrow", "pandas", "polars" or "numpy"')
    if chosen in ("pandas", "polars") and find_spec(chosen) is None:
        raise FlowError(f"{method}(format={chosen!r}) needs the package {chosen}: pip install {chosen}, also on the cluster's nodes")
    return chosen  # type: ignore[no-any-return]  # it is one of them


def in_format(rows: pa.RecordBatch, chosen: Format) -> Any:
    """Return the rows as a record batch, a frame, or a dict of arrays, shape (rows,) each.

    Raises ValueError for numpy and a column with nulls whose array would change the other values.
    """
    if chosen == "arrow":
        return rows
    if chosen == "numpy":
        return {field.name: _array(field, column) for field, column in zip(rows.schema, rows.columns, strict=True)}
    if chosen == "polars":
        import polars as pl

        return pl.from_arrow(rows)
    import pandas as pd

    return rows.to_pandas(types_mapper=pd.ArrowDtype)


def rows_of_result(result: Any) -> pa.RecordBatch:
    """Return a function's result as a record batch. Raises FlowError, TypeError or ValueError that describes any other result."""
    if isinstance(result, dict):
        for name, column in result.items():
            if not isinstance(name, str) or isinstance(column, (str, bytes)) or not hasattr(column, "__len__"):
                raise TypeError(f"expected a dict from column names to columns, got {name!r}: {column!r:.200}")
        lengths = {name: len(column) for name, column in result.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"its columns have different lengths: {lengths}")
        rows = pa.record_batch([column_of(name, column) for name, column in result.items()], names=list(result))
    elif isinstance(result, pa.RecordBatch):
        rows = result
    else:
        table = frame_as_arrow(result, "its result") if not isinstance(result, pa.Table) else result
        if table is None:
            raise TypeError(f"expected a RecordBatch, a Table, a frame or a dict of columns, got {type(result).__name__}")
        batches = table.combine_chunks().to_batches()
        rows = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
    names = rows.schema.names
    if len(set(names)) < len(names):
        raise ValueError(f"two of its columns have one name: {', '.join(names)}")
    if not names:
        raise ValueError("it has no columns; to drop all rows, return batch.slice(0, 0)")
    return rows


def _array(field: pa.Field, column: pa.Array) -> Any:
    """Convert a column to an array. Numbers and times have no value for null in numpy; NaN and NaT would be values."""
    array = column.to_numpy(zero_copy_only=False)
    if column.null_count and array.dtype != object:
        raise ValueError(f'column `{field.name}` has nulls, and numpy no value for them: fill them before, or use format="arrow"')
    return array
