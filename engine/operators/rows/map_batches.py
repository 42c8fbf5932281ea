"""The operator `map_batches`: a user's function on Arrow batches, for vectorised work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...batch import Batch
from ...context import Context, Emit
from ...errors import FlowError, RecordError
from ...functions.batch_formats import Format, in_format, rows_of_result
from ...functions.error_policy import ErrorPolicy, OnError, Refused, function_name
from ..function import FunctionInstance, FunctionOperator


@dataclass(frozen=True, eq=False)
class MapBatches(FunctionOperator):
    """An operator that applies `function(batch) -> batch` with as many rows as it got; `format`: that of its argument.

    A stream without event time may change the number of rows; with event time, use filter or flat_map for that. Users can't
    choose how the stream is cut into batches, so a refused batch is tried again in halves, until the refused row is alone.
    """

    function: Callable[[pa.RecordBatch], Any]
    on_error: OnError = "stop"
    format: Format = "arrow"

    def open(self, context: Context) -> MapBatchesInstance:
        return MapBatchesInstance(self, context)

    def describe(self) -> str:
        return function_name(self.function) + ("" if self.format == "arrow" else f" of {self.format}")


class MapBatchesInstance(FunctionInstance):
    """An instance without state."""

    def __init__(self, operator: MapBatches, context: Context) -> None:
        super().__init__(context)
        self.function = self.made(operator.function)
        self.errors = ErrorPolicy(context.name, operator.on_error)
        self._format: Format = operator.format

    def process(self, batch: Batch, emit: Emit) -> None:
        results: list[Batch] = []
        self.errors.halved(batch, lambda part: results.append(self._call(part)), emit)
        for result in results:
            if result.num_rows:
                emit(result)

    def _call(self, batch: Batch) -> Batch:
        try:
            given = in_format(batch.rows, self._format)
        except ValueError as error:
            raise Refused(0, RecordError(self.context.name, str(error))) from error
        try:
            result = self.function(given)
        except BaseException as error:
            raise Refused(0, error, self.function) from error
        try:
            rows = rows_of_result(result)
        except (FlowError, pa.ArrowException, TypeError, ValueError) as error:
            problem = f"{function_name(self.function)} returned no batch of rows: {error}"
            raise Refused(0, RecordError(self.context.name, problem)) from error
        if batch.times is not None and rows.num_rows != batch.num_rows:
            problem = f"got {batch.num_rows} rows and returned {rows.num_rows}: with event time use filter or flat_map to change the number"
            raise Refused(0, RecordError(self.context.name, problem))
        return Batch(rows, batch.times)
