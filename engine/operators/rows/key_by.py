"""The operator `key_by` with a function: a column with each row's key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...functions.error_policy import ErrorPolicy, function_name
from ...functions.rows_encoder import RowsEncoder
from ...functions.user_function import call_rows
from ...typed_rows.row_type import RowType
from ...updates import Updates
from ..base import Operator
from ..function import FunctionInstance, FunctionOperator
from ..weighed import weighed_function

_CONTAINERS = {list, dict, set, tuple}


@dataclass(frozen=True, eq=False)
class KeyBy(FunctionOperator):
    """An operator that adds the column `column` with `function(row)`, a value that Arrow has a type for.

    `rows`: the class of its argument, None for dicts.
    """

    function: Callable[[dict[str, Any]], Any]
    column: str
    rows: RowType | None = None

    checked_at_once = True

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        return column_taken(self.column) if self.column in inputs[0].types else None

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return inputs[0]

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return inputs[0].having({self.column: None})

    def open(self, context: Context) -> KeyByInstance:
        return KeyByInstance(self, context)

    def weighed(self) -> Operator | None:
        return weighed_function(self, self.function)

    def describe(self) -> str:
        return function_name(self.function)


class KeyByInstance(FunctionInstance):
    """An instance that learns the type of the keys from the first rows."""

    def __init__(self, operator: KeyBy, context: Context) -> None:
        super().__init__(context)
        self.function, self.column, self.rows = operator.function, operator.column, operator.rows
        self.errors = ErrorPolicy(context.name, operator.on_error)
        self.encoder = RowsEncoder(
            context.name, function=function_name(operator.function), advice="return keys of one type, such as numbers or strings"
        )

    def process(self, batch: Batch, emit: Emit) -> None:
        name = self.context.name
        if batch.rows.schema.get_field_index(self.column) >= 0:
            raise RecordError(name, column_taken(self.column))
        keys, _ = call_rows(self.function, batch, self.errors, emit, self.rows)
        if not _CONTAINERS.isdisjoint(map(type, keys)):
            place, key = next((i, key) for i, key in enumerate(keys) if type(key) in _CONTAINERS)
            problem = f"a {type(key).__name__} can't be a key: return one value, or add columns by map and key by several"
            raise RecordError(name, problem, key=key, record=batch.slice(place, 1).to_rows()[0])
        named = [{self.column: key} for key in keys]
        try:
            column = self.encoder.encode(named).column(0)
        except RecordError:
            place, error = self.encoder.first_misfit(named)
            raise RecordError(name, error.problem, key=keys[place], record=batch.slice(place, 1).to_rows()[0]) from error
        emit(batch.with_rows(batch.rows.append_column(self.column, column)))


def column_taken(column: str) -> str:
    """Describe the problem of rows that already have a column with the key's name."""
    return f"rows already have a column `{column}`: name the key's column with key_by(..., column='...')"
