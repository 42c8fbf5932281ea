"""The base of operators that call a user's function: their error policy."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..columns import UNKNOWN, Columns
from ..dropped_records import DroppedRecord
from ..functions.error_policy import ErrorPolicy, OnError
from ..functions.function_class import class_of, let_go, made, open_object
from ..functions.measures import FunctionContext, Measured
from ..typed_rows.row_type import RowType
from .base import Operator, OperatorInstance


def declared_columns(schema: pa.Schema | None, results: RowType | None) -> Columns:
    """Return the known columns of a function's results: those of a declared schema, or of the class that it returns."""
    if results is not None:
        return results.known_columns()
    return UNKNOWN if schema is None else Columns.of(schema)


class FunctionOperator(Operator):
    """An operator that calls a user's function.

    `on_error`: the policy for records that the function refuses. `results`: the class of the rows that it emits, None for dicts.
    """

    on_error: OnError = "stop"
    results: RowType | None = None


class FunctionInstance(OperatorInstance):
    """An instance of an operator that calls a user's function."""

    errors: ErrorPolicy
    _given: Any = None
    _made: Any = None
    _function_context: FunctionContext | None = None

    def made(self, function: Any) -> Any:
        """Return the callable for records: `function`, or an object of it if it is a class, opened now and closed with this
        instance.
        """
        called = made(function, self.context.name)
        if class_of(function) is not None:
            open_object(called, self.function_context())
        self._given, self._made = function, called
        return called

    def function_context(self) -> FunctionContext:
        """Create the context of the function's object."""
        self._function_context = FunctionContext(self.context.name, self.context.index, self.context.parallelism)
        return self._function_context

    def measured(self) -> tuple[Measured, ...]:
        return () if self._function_context is None else self._function_context.measured()

    def close(self) -> None:
        let_go(self._given, self._made, self.context.name)
        super().close()

    @property
    def skipped_records(self) -> int:
        return self.errors.skipped

    def take_refused(self) -> tuple[DroppedRecord, ...]:
        return self.errors.sample.take()
