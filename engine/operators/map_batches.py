"""`map_batches`: a user's function on whole Arrow batches, for vectorised work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ..batch import Batch
from ..errors import RecordError
from .base import Emit, Operator
from .user_function import refuse


class MapBatches(Operator):
    """Applies `function(record batch) -> record batch, table, or dict of columns` with as many rows as it got.

    A stream without event time may change the number of rows; with event time, use filter or flat_map for that.
    """

    def __init__(self, function: Callable[[pa.RecordBatch], Any]) -> None:
        self.function = function

    def process(self, batch: Batch, emit: Emit) -> None:
        name = self.context.name
        try:
            rows = self._record_batch(self.function(batch.rows))
        except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
            refuse(name, self.function, error, record=f"a batch of {batch.num_rows} rows beginning with {batch.slice(0, 1).to_rows()[0]}")
        if batch.times is not None and rows.num_rows != batch.num_rows:
            raise RecordError(
                name, f"got {batch.num_rows} rows and returned {rows.num_rows}: with event time use filter or flat_map to change the number"
            )
        if rows.num_rows:
            emit(batch.with_rows(rows))

    def _record_batch(self, result: Any) -> pa.RecordBatch:
        if isinstance(result, pa.RecordBatch):
            return result
        if isinstance(result, dict):
            return pa.RecordBatch.from_pydict(result)
        if isinstance(result, pa.Table):
            batches = result.combine_chunks().to_batches()
            return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=result.schema)
        raise TypeError(f"expected a RecordBatch, a Table or a dict of columns, got {type(result).__name__}")

    def describe(self) -> str:
        return getattr(self.function, "__qualname__", "function")
