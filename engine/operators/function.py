"""The base of operators that call a user's function: their error policy."""

from __future__ import annotations

from ..functions.error_policy import ErrorPolicy, OnError
from .base import Operator, OperatorInstance


class FunctionOperator(Operator):
    """An operator that calls a user's function; `on_error` is the policy for records that the function refuses."""

    on_error: OnError = "stop"


class FunctionInstance(OperatorInstance):
    """An instance of such an operator."""

    errors: ErrorPolicy

    @property
    def skipped_records(self) -> int:
        return self.errors.skipped
