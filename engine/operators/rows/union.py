"""The operator `union`: the records of several streams as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...weights import WEIGHT, with_weight
from ..base import Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class Union(Operator):
    """An operator that passes all records on, with the columns in the order of the first batch.

    The task takes the minimum of the inputs' watermarks. `weights`: rows of an append-only input get the weight 1.
    """

    weights: bool = False

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        names = dict.fromkeys(name for known in inputs for name in known.types)
        kinds = {name: [known.type_of(name) for known in inputs] for name in names}
        agreed = {name: types[0] if all(kind == types[0] for kind in types) else None for name, types in kinds.items()}
        return Columns(agreed, any(known.complete for known in inputs))

    def weighed(self) -> Operator:
        return Union(weights=True)

    def open(self, context: Context) -> UnionInstance:
        return UnionInstance(context, weights=self.weights)


class UnionInstance(OperatorInstance):
    """An instance that remembers the columns of the first batch, and whether it had event times."""

    def __init__(self, context: Context, *, weights: bool) -> None:
        super().__init__(context)
        self._weights = weights
        self._columns: list[str] = []
        self._timed = False

    def process(self, batch: Batch, emit: Emit) -> None:
        if self._weights and batch.rows.schema.get_field_index(WEIGHT) < 0:
            batch = batch.with_rows(with_weight(batch.rows, 1))
        names = batch.rows.schema.names
        if not self._columns:
            self._columns, self._timed = names, batch.times is not None
        if (batch.times is not None) != self._timed:
            problem = "one stream has event time and another has none: read both with event_time=, or both without"
            raise RecordError(self.context.name, problem)
        if names != self._columns:
            if sorted(names) != sorted(self._columns):
                before, now = ", ".join(self._columns), ", ".join(names)
                problem = f"one stream has the columns {before}, another has {now}: bring them to the same by select, rename or map"
                raise RecordError(self.context.name, problem)
            batch = batch.with_rows(batch.rows.select(self._columns))
        emit(batch)
