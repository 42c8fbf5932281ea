"""The operator `changelog`: each row that is added or taken back as a row with a column that says which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...updates import Updates
from ...weights import WEIGHT, weights_of, without_weights
from ..base import Operator, OperatorInstance

INSERT, DELETE = "insert", "delete"


@dataclass(frozen=True, eq=False)
class Changelog(Operator):
    """An operator that turns weights into the column `op`. Its rows are append-only."""

    op: str

    checked_at_once = True

    @property
    def reads_weights(self) -> bool:
        return True

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return None

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        if self.op in inputs[0].types:
            return f'the stream has a column `{self.op}` already; name another, as in .changelog("change")'
        return None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        known = inputs[0]
        types = {name: kind for name, kind in known.types.items() if name != WEIGHT}
        return Columns({**types, self.op: pa.string()}, known.complete)

    def open(self, context: Context) -> ChangelogInstance:
        return ChangelogInstance(self, context)

    def describe(self) -> str:
        return f"{INSERT} or {DELETE} in {self.op}"


class ChangelogInstance(OperatorInstance):
    """An instance without state."""

    def __init__(self, operator: Changelog, context: Context) -> None:
        super().__init__(context)
        self._op = operator.op

    def process(self, batch: Batch, emit: Emit) -> None:
        added = pa.array(weights_of(batch.rows, self.context.name) > 0)
        emit(batch.with_rows(without_weights(batch.rows).append_column(self._op, pc.if_else(added, INSERT, DELETE))))
