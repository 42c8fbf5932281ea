"""`map_batches`: a user's function on whole Arrow batches, for vectorised work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ..batch import Batch
from ..errors import RecordError
from .base import Emit
from .refusals import OnError, Refused, Refusing


class MapBatches(Refusing):
    """Applies `function(record batch) -> record batch, table, or dict of columns` with as many rows as it got.

    A stream without event time may change the number of rows; with event time, use filter or flat_map for that. How the stream is cut into
    batches is not the user's choice, so a batch that is refused is tried again in halves, until the row is alone that is to be skipped.
    """

    def __init__(self, function: Callable[[pa.RecordBatch], Any], on_error: OnError = "stop") -> None:
        self.function, self.on_error = function, on_error

    def process(self, batch: Batch, emit: Emit) -> None:
        results: list[Batch] = []
        self.refusals.halved(batch, lambda part: results.append(self._call(part)), emit)
        for result in results:
            if result.num_rows:
                emit(result)

    def _call(self, batch: Batch) -> Batch:
        try:
            rows = self._record_batch(self.function(batch.rows))
        except Exception as error:
            raise Refused(0, error, self.function) from error
        if batch.times is not None and rows.num_rows != batch.num_rows:
            problem = f"got {batch.num_rows} rows and returned {rows.num_rows}: with event time use filter or flat_map to change the number"
            raise Refused(0, RecordError(self.context.name, problem))
        return Batch(rows, batch.times)

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
