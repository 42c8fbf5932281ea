"""The base of operators that call a user's function: their error policy."""

from __future__ import annotations

from typing import Any

from ..dropped_records import DroppedRecord
from ..functions.error_policy import ErrorPolicy, OnError
from ..functions.function_class import let_go, made
from .base import Operator, OperatorInstance


class FunctionOperator(Operator):
    """An operator that calls a user's function; `on_error` is the policy for records that the function refuses."""

    on_error: OnError = "stop"


class FunctionInstance(OperatorInstance):
    """An instance of an operator that calls a user's function."""

    errors: ErrorPolicy
    _given: Any = None
    _made: Any = None

    def made(self, function: Any) -> Any:
        """Return the callable for records: `function`, or an object of it if it is a class, closed with this instance."""
        self._given, self._made = function, made(function, self.context.name)
        return self._made

    def close(self) -> None:
        let_go(self._given, self._made, self.context.name)
        super().close()

    @property
    def skipped_records(self) -> int:
        return self.errors.skipped

    def take_refused(self) -> tuple[DroppedRecord, ...]:
        return self.errors.sample.take()
