"""A batch: the unit in which records move, an Arrow record batch with an event time per row.

Batches are immutable. Operators pass them by reference inside a worker, so none may write into one.

>>> import pyarrow as pa
>>> batch = Batch(pa.record_batch({"item": [1, 2, 3]}))
>>> batch.num_rows, batch.to_rows()[0]
(3, {'item': 1})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .types.exact import common, widened

Times = npt.NDArray[np.int64]
"""Event times in microseconds since the Unix epoch (UTC), one per row."""

ITEM = "item"
"""The one column of a stream of plain values."""

PIECE = 1024
"""The rows that are converted to dicts at a time, few enough for the processor's cache; a loop over 65,536 takes 1.7 times as
long.
"""


class NoPythonValueError(ValueError):
    """The error for a column with a value that Python can't represent: a time after the year 9999, text that is not UTF-8."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows (Arrow columns) and their event times (int64 microseconds, one per row), or None without event time."""

    rows: pa.RecordBatch
    times: Times | None = None

    @property
    def num_rows(self) -> int:
        return int(self.rows.num_rows)

    @property
    def nbytes(self) -> int:
        """Return the bytes that the columns and the times refer to."""
        return int(self.rows.get_total_buffer_size()) + (0 if self.times is None else self.times.nbytes)

    def take(self, indices: npt.NDArray[np.intp]) -> Batch:
        times = None if self.times is None else self.times[indices]
        return Batch(self.rows.take(pa.array(indices)), times)

    def filter(self, mask: npt.NDArray[np.bool_]) -> Batch:
        times = None if self.times is None else self.times[mask]
        return Batch(self.rows.filter(pa.array(mask)), times)

    def slice(self, start: int, length: int) -> Batch:
        times = None if self.times is None else self.times[start : start + length]
        return Batch(self.rows.slice(start, length), times)

    def with_rows(self, rows: pa.RecordBatch) -> Batch:
        """Return the same event times over other columns; both have the same number of rows."""
        return Batch(rows, self.times)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return rows as dicts, as a user's function sees them.

        Raises NoPythonValueError for a value that Python can't represent.
        """
        try:
            return row_builder(tuple(self.rows.schema.names))(*(column_values(c) for c in self.rows.columns))
        except (OverflowError, ValueError) as error:
            raise _no_python_value(self.rows, error) from error

    def pieces(self) -> Iterator[Batch]:
        """Cut the batch into pieces of at most `PIECE` rows, none copied."""
        return (self.slice(start, PIECE) for start in range(0, self.num_rows, PIECE))

    def iterate_rows(self) -> Iterator[dict[str, Any]]:
        """Yield rows as dicts, for loops that need one row at a time."""
        return chain.from_iterable(piece.to_rows() for piece in self.pieces())

    @staticmethod
    def concat(batches: Sequence[Batch]) -> Batch:
        """Concatenate batches of the same columns, with types that hold those of all.

        Raises NoCommonType or Inexact for columns that no type holds together.
        """
        if len(batches) == 1:
            return batches[0]
        rows = pa.concat_batches([b.rows for b in batches]) if _same_schema(batches) else _widened(batches)
        times = None if batches[0].times is None else np.concatenate([_times(b) for b in batches])
        return Batch(rows, times)


def _same_schema(batches: Sequence[Batch]) -> bool:
    first = batches[0].rows.schema
    return all(b.rows.schema.equals(first) for b in batches)


def _widened(batches: Sequence[Batch]) -> pa.RecordBatch:
    schema = common([b.rows.schema for b in batches])
    return pa.concat_batches([widened(b.rows, schema) for b in batches])


def _times(batch: Batch) -> Times:
    if batch.times is None:
        raise ValueError("batches with and without event times can't be concatenated")
    return batch.times


def _no_python_value(rows: pa.RecordBatch, error: Exception) -> Exception:
    """Return the error that names the column and value."""
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        for place in range(len(column)):
            try:
                column[place].as_py()
            except (OverflowError, ValueError) as problem:
                problem_in = f"column `{name}` ({column.type}) has no Python value in row {place} of {len(column)}: {problem}"
                return NoPythonValueError(f"{problem_in}; filter it out by an expression, or convert it with map_batches")
    return error


def column_values(column: pa.Array) -> list[Any]:
    """Return a column's values as Python objects; several times faster than `to_pylist` for numbers without nulls."""
    if column.null_count == 0 and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return values
    return list(column.to_pylist())


@lru_cache(maxsize=256)
def row_builder(names: tuple[str, ...]) -> Callable[..., list[dict[str, Any]]]:
    """Return a function from columns (lists) to rows (dicts).

    The dict display is compiled once for the column names: it builds a row about three times faster than `dict(zip(names,
    values))`, and this loop runs once for every record that a user's function sees.
    """
    if not names:
        return lambda *_columns: []
    variables = [f"v{i}" for i in range(len(names))]
    display = ", ".join(f"{name!r}: {variable}" for name, variable in zip(names, variables, strict=True))
    arguments = ", ".join(f"c{i}" for i in range(len(names)))
    target = f"({', '.join(variables)},)" if len(names) == 1 else ", ".join(variables)
    source = f"lambda {arguments}: [{{{display}}} for {target} in zip({arguments})]"
    builder: Callable[..., list[dict[str, Any]]] = eval(source)  # noqa: S307 -- only quoted column names go in
    return builder
