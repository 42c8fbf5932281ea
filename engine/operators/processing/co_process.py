"""The operator `co_process`: a user's `CoKeyedFunction` of two streams, with states and timers per key that both share.

The inputs arrive in their common form, one side per batch; except for the method that is called for a row it is `process`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...functions.state_types import described
from ...joins.key_types import KeyKinds
from ...joins.sides import LEFT, side_of
from ...state_description import StateDescription, columns_text
from ..two_inputs import keys_problem
from .process import Process, ProcessInstance
from .saved_objects import RecordsReader


@dataclass(frozen=True, eq=False, kw_only=True)
class CoProcess(Process):
    """An operator over two inputs.

    `left_keys`, `right_keys`: their key columns, in pairs; `keys`: the names in the common form.
    """

    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]

    needs_columns = True

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        return keys_problem(self.left_keys, self.right_keys, inputs)

    def state_description(self) -> StateDescription:
        traits = {"keys of left": columns_text(self.left_keys), "keys of right": columns_text(self.right_keys)}
        return described("a co_process", traits, type(self.function))

    def open(self, context: Context) -> CoProcessInstance:
        return CoProcessInstance(self, context)

    def reader(self) -> RecordsReader:
        return replace(super().reader(), shown=self.left_keys)

    def describe(self) -> str:
        return f"{type(self.function).__name__} by {', '.join(self.left_keys)}, and {', '.join(self.right_keys)} of right"


class CoProcessInstance(ProcessInstance):
    """An instance whose state is a record per key, like that of `process`."""

    def __init__(self, operator: CoProcess, context: Context) -> None:
        super().__init__(operator, context)
        self._kinds = KeyKinds(context.name, operator.left_keys, operator.right_keys)

    def process(self, batch: Batch, emit: Emit) -> None:
        self._kinds.learn(side_of(batch.rows.schema), [column.type for column in self.key_columns(batch.rows)])
        if batch.num_rows:
            super().process(batch, emit)

    def given(self, batch: Batch) -> Batch:
        return batch.with_rows(side_of(batch.rows.schema).rows(batch.rows))

    def method_for(self, batch: Batch) -> str:
        return "on_left" if side_of(batch.rows.schema) is LEFT else "on_right"
