"""The operator of `.window(...).process(...)`: a user's function per key and complete window, with all its rows.

An aggregating operator of such windows keeps the rows. So late rows, moves and checkpoints work as with any other aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ....state.backends.settings import MEMORY
from ...aggregates.lists.whole_rows import WholeRows
from ...batch import Batch
from ...context import Context, Emit
from ...errors import RecordError
from ...functions.error_policy import OnError, function_name
from ...keys.unkeyed import described
from ...state_description import StateDescription
from ...time.windows import Window
from ..function import FunctionOperator
from ..keyed import KeyedInstance, KeyedOperator
from .aggregate_sessions import AggregateSessions
from .aggregate_windows import AggregateWindows
from .window_calls import WindowCalls

WindowFunction = Callable[[Any, Window, list[dict[str, Any]]], Iterable[Any]]
"""`function(key, window, rows) -> rows`; the key is None without `key_by`, and a tuple if it has several columns."""

ROWS: dict[str, WholeRows] = {"rows": WholeRows()}
"""The aggregates of the operator that keeps the rows."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class ProcessWindows(FunctionOperator, KeyedOperator):
    """An operator that calls a function for each window. `keeps`: the operator of the windows, with the aggregates `ROWS`.

    A result has the event time of its window's results.
    """

    keeps: AggregateWindows | AggregateSessions
    function: WindowFunction
    schema: pa.Schema | None = None
    on_error: OnError = "stop"

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.keeps.keys

    def state_description(self) -> StateDescription:
        return replace(self.keeps.state_description(), kind="rows in windows", parts={})

    def open(self, context: Context) -> ProcessWindowsInstance:
        return ProcessWindowsInstance(self, context)

    def describe(self) -> str:
        return f"{function_name(self.function)} {described(self.keys)}, {self.keeps.windows.describe()}"


class ProcessWindowsInstance(WindowCalls):
    """An instance whose state is that of the windows."""

    def __init__(self, operator: ProcessWindows, context: Context) -> None:
        self._keeps = operator.keeps.open(context)
        KeyedInstance.__init__(self, context, operator.keys, self._keeps.state)
        self.merges_state = self._keeps.merges_state
        self.open_calls(context, operator.function, operator.schema, operator.on_error)
        self._checked = context.state.backend == MEMORY

    def process(self, batch: Batch, emit: Emit) -> None:
        if not self._checked:
            self._check(batch.rows.schema)
        self._keeps.process(batch, self._taking(emit))
        self.late_records = self._keeps.late_records

    def advance(self, watermark: int, emit: Emit) -> None:
        self._keeps.advance(watermark, self._taking(emit))

    def _check(self, schema: pa.Schema) -> None:
        """Raise RecordError for columns that a backend outside memory can't keep."""
        nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        if nested:
            problem = f"whole rows with nested columns ({', '.join(nested)}) can be kept in memory only"
            raise RecordError(self.context.name, f'{problem}: drop them, flatten them, or use StateConfig("memory")')
        self._checked = True

    def _taking(self, emit: Emit) -> Emit:
        """Return an `emit` that calls the function for the windows' results."""

        def take(batch: Batch, port: str = "out") -> None:
            if port == "out":
                self.call(batch, emit)
            else:
                emit(batch, port)

        return take
