"""The operator `map_batches`: a user's function on Arrow batches, for vectorised work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...batch import Batch, Times
from ...context import Context, Emit
from ...errors import FlowError, RecordError
from ...functions.batch_formats import Format, in_format, rows_of_result
from ...functions.error_policy import ErrorPolicy, OnError, Refused, function_name
from ...time.event_time import EventTime
from ..function import FunctionInstance, FunctionOperator


@dataclass(frozen=True, eq=False)
class MapBatches(FunctionOperator):
    """An operator that applies `function(batch) -> batch`; `format`: that of its argument.

    `time`: the column of the result with the event times of its rows. Without it, a stream with event time keeps the number of rows.
    A refused batch is tried again in halves, until the refused row is alone.
    """

    function: Callable[[pa.RecordBatch], Any]
    on_error: OnError = "stop"
    format: Format = "arrow"
    time: str | None = None

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
        self._time = operator.time

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
            raise self._refusal(str(error)) from error
        try:
            result = self.function(given)
        except BaseException as error:
            raise Refused(0, error, self.function) from error
        try:
            rows = rows_of_result(result)
        except (FlowError, pa.ArrowException, TypeError, ValueError) as error:
            problem = f"{function_name(self.function)} returned no batch of rows: {error}"
            raise self._refusal(problem) from error
        if self._time is not None:
            return Batch(rows, self._times(self._time, rows, batch))
        if batch.times is not None and rows.num_rows != batch.num_rows:
            problem = (
                f"got {batch.num_rows} rows and returned {rows.num_rows}: to change the number with event time, return a column of the "
                'times and name it, as in map_batches(f, event_time="ts")'
            )
            raise self._refusal(problem)
        return Batch(rows, batch.times)

    def _times(self, name: str, rows: pa.RecordBatch, given: Batch) -> Times:
        """Return the event times of the function's rows, none of them before the first that it was given."""
        if given.times is None:
            raise self._refusal(f"the rows have no event time, which event_time={name!r} would keep: assign one by with_time")
        there = rows.schema.get_field_index(name)
        if there < 0:
            raise self._refusal(f"returned no column `{name}` with the event time; there are: {', '.join(rows.schema.names)}")
        column = rows.column(there)
        if not (pa.types.is_timestamp(column.type) or pa.types.is_null(column.type)):
            raise self._refusal(f"returned `{name}`, the event time, as {column.type}; expected a timestamp")
        times, wrong = EventTime(name).times(column)
        if wrong.any():
            raise self._refusal(f"returned no time of the years 1 to 9999 in `{name}`, the event time: {column[int(wrong.argmax())]}")
        if len(times) and times.min() < given.times.min():
            place = int(times.argmin())
            raise self._refusal(f"returned the event time {column[place]}, which is before that of every row that it got: it would be late")
        return times

    def _refusal(self, problem: str) -> Refused:
        return Refused(0, RecordError(self.context.name, problem))
