"""What operators that call a user's function share: what becomes of the records that the function refuses."""

from __future__ import annotations

from ..functions.error_policy import ErrorPolicy, OnError
from .base import Operator, OperatorInstance


class FunctionOperator(Operator):
    """An operator that calls a user's function; `on_error` says what becomes of the records that the function refuses."""

    on_error: OnError = "stop"


class FunctionInstance(OperatorInstance):
    """An instance of such an operator."""

    errors: ErrorPolicy

    @property
    def skipped_records(self) -> int:
        return self.errors.skipped
