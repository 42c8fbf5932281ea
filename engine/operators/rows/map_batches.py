"""The operator `map_batches`: a user's function on Arrow batches, for vectorised work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...batch import Batch
from ...context import Context, Emit
from ...errors import RecordError
from ...functions.error_policy import ErrorPolicy, OnError, Refused, function_name
from ...types.value_column import column_of
from ..function import FunctionInstance, FunctionOperator


@dataclass(frozen=True, eq=False)
class MapBatches(FunctionOperator):
    """An operator that applies `function(record batch) -> record batch, table, or dict of columns` with as many rows as it got.

    A stream without event time may change the number of rows; with event time, use filter or flat_map for that. Users can't
    choose how the stream is cut into batches, so a refused batch is tried again in halves, until the refused row is alone.
    """

    function: Callable[[pa.RecordBatch], Any]
    on_error: OnError = "stop"

    def open(self, context: Context) -> MapBatchesInstance:
        return MapBatchesInstance(self, context)

    def describe(self) -> str:
        return function_name(self.function)


class MapBatchesInstance(FunctionInstance):
    """An instance without state."""

    def __init__(self, operator: MapBatches, context: Context) -> None:
        super().__init__(context)
        self.function = self.made(operator.function)
        self.errors = ErrorPolicy(context.name, operator.on_error)

    def process(self, batch: Batch, emit: Emit) -> None:
        results: list[Batch] = []
        self.errors.halved(batch, lambda part: results.append(self._call(part)), emit)
        for result in results:
            if result.num_rows:
                emit(result)

    def _call(self, batch: Batch) -> Batch:
        try:
            result = self.function(batch.rows)
        except BaseException as error:
            raise Refused(0, error, self.function) from error
        try:
            rows = _record_batch(result)
        except (pa.ArrowException, TypeError, ValueError) as error:
            problem = f"{function_name(self.function)} returned no batch of rows: {error}"
            raise Refused(0, RecordError(self.context.name, problem)) from error
        if batch.times is not None and rows.num_rows != batch.num_rows:
            problem = f"got {batch.num_rows} rows and returned {rows.num_rows}: with event time use filter or flat_map to change the number"
            raise Refused(0, RecordError(self.context.name, problem))
        return Batch(rows, batch.times)


def _record_batch(result: Any) -> pa.RecordBatch:
    """Return the result as a record batch. Raises TypeError or ValueError that describes any other result."""
    if isinstance(result, dict):
        for name, column in result.items():
            if not isinstance(name, str) or isinstance(column, (str, bytes)) or not hasattr(column, "__len__"):
                raise TypeError(f"expected a dict from column names to columns, got {name!r}: {column!r:.200}")
        lengths = {name: len(column) for name, column in result.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"its columns have different lengths: {lengths}")
        rows = pa.record_batch([column_of(name, column) for name, column in result.items()], names=list(result))
    elif isinstance(result, pa.Table):
        batches = result.combine_chunks().to_batches()
        rows = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=result.schema)
    elif isinstance(result, pa.RecordBatch):
        rows = result
    else:
        advice = "; pa.RecordBatch.from_pandas makes one of a data frame" if type(result).__name__ == "DataFrame" else ""
        raise TypeError(f"expected a RecordBatch, a Table or a dict of columns, got {type(result).__name__}{advice}")
    names = rows.schema.names
    if len(set(names)) < len(names):
        raise ValueError(f"two of its columns have one name: {', '.join(names)}")
    if not names:
        raise ValueError("it has no columns; to drop all rows, return batch.slice(0, 0)")
    return rows
