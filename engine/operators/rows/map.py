"""The operator `map`: a row for every row, by a user's function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...functions.error_policy import ErrorPolicy, OnError, function_name
from ...functions.rows_encoder import RowsEncoder
from ...functions.user_function import call_rows
from ...typed_rows.row_type import RowType
from ..base import Operator
from ..function import FunctionInstance, FunctionOperator, declared_columns
from ..weighed import weighed_function


@dataclass(frozen=True, eq=False)
class Map(FunctionOperator):
    """An operator that applies `function(row) -> row` (a dict, or a plain value that becomes the column `item`).

    `rows`, `results`: the classes of its argument and its result, None for dicts.
    """

    function: Callable[[dict[str, Any]], Any]
    schema: pa.Schema | None = None
    on_error: OnError = "stop"
    rows: RowType | None = None
    results: RowType | None = None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return declared_columns(self.schema, self.results)

    def open(self, context: Context) -> MapInstance:
        return MapInstance(self, context)

    def weighed(self) -> Operator | None:
        return weighed_function(self, self.function)

    def describe(self) -> str:
        return function_name(self.function)


class MapInstance(FunctionInstance):
    """An instance that learns the types of its columns from the first rows."""

    def __init__(self, operator: Map, context: Context) -> None:
        super().__init__(context)
        self.function = self.made(operator.function)
        self.rows = operator.rows
        self.errors = ErrorPolicy(context.name, operator.on_error)
        self.encoder = RowsEncoder(context.name, operator.schema, results=operator.results, function=function_name(operator.function))

    def process(self, batch: Batch, emit: Emit) -> None:
        results, batch = call_rows(self.function, batch, self.errors, emit, self.rows)
        offsets = np.arange(len(results) + 1)
        for first, stop, rows in self.errors.encoded(self.encoder, results, offsets, batch, emit):
            emit(batch.slice(first, stop - first).with_rows(rows))
