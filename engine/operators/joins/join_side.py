"""The last step of an input of a join before the exchange: it converts rows to the common form of both inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...joins.sides import Side
from ...updates import Updates
from ..base import Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class JoinSide(Operator):
    """The conversion of one input. `keys`: its key columns; `side`: the input."""

    side: Side
    keys: tuple[str, ...]

    stays_with_input = True

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return inputs[0]

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return inputs[0]

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        missing = next((key for key in self.keys if inputs[0].lacks(key)), None)
        return missing and f"no key column `{missing}`; there are: {inputs[0].listed()}"

    def open(self, context: Context) -> JoinSideInstance:
        return JoinSideInstance(self, context)

    def describe(self) -> str:
        return f"by {', '.join(self.keys)}"


class JoinSideInstance(OperatorInstance):
    """An instance that converts batches without copying rows."""

    def __init__(self, operator: JoinSide, context: Context) -> None:
        super().__init__(context)
        self._side, self._keys = operator.side, operator.keys

    def process(self, batch: Batch, emit: Emit) -> None:
        emit(self._side.tag(batch, self._keys, self.context.name))
