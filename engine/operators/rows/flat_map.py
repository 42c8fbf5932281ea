"""The operator `flat_map`: any number of rows for every row, by a user's function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...functions.error_policy import ErrorPolicy, OnError, function_name
from ...functions.rows_encoder import RowsEncoder
from ...functions.user_function import call_rows
from ...typed_rows.row_classes import is_row_class
from ...typed_rows.row_type import RowType
from ..base import Operator
from ..function import FunctionInstance, FunctionOperator, declared_columns
from ..weighed import weighed_function


@dataclass(frozen=True, eq=False)
class FlatMap(FunctionOperator):
    """An operator that applies `function(row) -> iterable of rows`; each result has the event time of the row that it came from.

    `rows`, `results`: the classes of its argument and its results, None for dicts.
    """

    function: Callable[[dict[str, Any]], Iterable[Any]]
    schema: pa.Schema | None = None
    on_error: OnError = "stop"
    rows: RowType | None = None
    results: RowType | None = None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return declared_columns(self.schema, self.results)

    def open(self, context: Context) -> FlatMapInstance:
        return FlatMapInstance(self, context)

    def weighed(self) -> Operator | None:
        return weighed_function(self, self.function)

    def describe(self) -> str:
        return function_name(self.function)


class FlatMapInstance(FunctionInstance):
    """An instance that learns the types of its columns from the first rows."""

    def __init__(self, operator: FlatMap, context: Context) -> None:
        super().__init__(context)
        self.function = self.made(operator.function)
        self.rows = operator.rows
        self.errors = ErrorPolicy(context.name, operator.on_error)
        self.encoder = RowsEncoder(context.name, operator.schema, results=operator.results, function=function_name(operator.function))

    def process(self, batch: Batch, emit: Emit) -> None:
        name = self.context.name

        def expand(row: Any) -> list[Any]:
            results = self.function(row)
            if isinstance(results, list):
                return results
            if isinstance(results, (str, bytes, dict)) or is_row_class(type(results)) or not isinstance(results, Iterable):
                problem = f"flat_map must return a list (or another iterable) of rows, got {results!r:.200}; [] drops the record"
                raise RecordError(name, problem, record=row)
            return list(results)

        expand.__qualname__ = function_name(self.function)
        expanded, batch = call_rows(expand, batch, self.errors, emit, self.rows)
        counts = np.fromiter(map(len, expanded), np.int64, len(expanded))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        results = [row for rows in expanded for row in rows]
        for first, stop, rows in self.errors.encoded(self.encoder, results, offsets, batch, emit):
            times = None if batch.times is None else np.repeat(batch.times[first:stop], counts[first:stop])
            emit(Batch(rows, times))
