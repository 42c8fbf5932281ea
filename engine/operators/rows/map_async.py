"""The operator `map_async`: a row for every row, by a user's coroutine; many of them wait at the same time.

A batch is processed when all of its coroutines have ended, so none is running at a barrier.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...functions.error_policy import ErrorPolicy, OnError, Refused, function_name
from ...functions.retries import ONCE, Retries
from ...functions.rows_encoder import RowsEncoder
from ...functions.running_call import RunningCall
from ...typed_rows.objects import objects_of
from ...typed_rows.row_type import RowType
from ..function import FunctionInstance, FunctionOperator, declared_columns


@dataclass(frozen=True, eq=False)
class MapAsync(FunctionOperator):
    """An operator that awaits `function(row)`, for up to `concurrency` rows at a time. `timeout` in seconds.

    Unless `ordered`, rows are emitted as their calls end. `rows`, `results`: the classes of its argument and its result.
    """

    function: Callable[[dict[str, Any]], Awaitable[Any]]
    concurrency: int = 100
    ordered: bool = True
    timeout: float | None = 30.0
    schema: pa.Schema | None = None
    on_error: OnError = "stop"
    retries: Retries = ONCE
    rows: RowType | None = None
    results: RowType | None = None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return declared_columns(self.schema, self.results)

    def open(self, context: Context) -> MapAsyncInstance:
        return MapAsyncInstance(self, context)

    def describe(self) -> str:
        return f"{function_name(self.function)}, {self.concurrency} at a time{'' if self.ordered else ', in any order'}"


class MapAsyncInstance(FunctionInstance):
    """An instance with an event loop of its own, which runs while a batch is processed."""

    def __init__(self, operator: MapAsync, context: Context) -> None:
        from ...functions.event_loop import EventLoop  # asyncio takes as long to load as all operators together

        super().__init__(context)
        self._rows = operator.rows
        self._ordered = operator.ordered
        self.errors = ErrorPolicy(context.name, operator.on_error)
        self.encoder = RowsEncoder(context.name, operator.schema, results=operator.results, function=function_name(operator.function))
        self._function = operator.function
        self._loop = EventLoop(
            operator.function,
            context.name,
            concurrency=operator.concurrency,
            timeout=operator.timeout,
            retries=operator.retries,
            seed=f"{context.name} {context.index}",
            context=self.function_context(),
        )

    def process(self, batch: Batch, emit: Emit) -> None:
        outcomes = self._loop.outcomes(objects_of(batch, self._rows, self.context.name), stop=self.errors.stops)
        if self._ordered:
            outcomes.sort(key=lambda outcome: outcome.place)
        for outcome in outcomes:
            if outcome.error is not None:
                self.errors.take(Refused(outcome.place, outcome.error, self._function, note=outcome.tried), batch, emit)
        results = [outcome.value for outcome in outcomes if outcome.error is None]
        places = np.array([outcome.place for outcome in outcomes if outcome.error is None], np.intp)
        if len(places) < batch.num_rows or not self._ordered:
            batch = batch.take(places)
        for first, stop, rows in self.errors.encoded(self.encoder, results, np.arange(len(results) + 1), batch, emit):
            emit(batch.slice(first, stop - first).with_rows(rows))

    def present_call(self) -> RunningCall | None:
        return self._loop.present_call()

    def close(self) -> None:
        self._loop.close()
        super().close()
