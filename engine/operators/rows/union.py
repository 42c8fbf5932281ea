"""The operator `union`: the records of several streams as one."""

from __future__ import annotations

from collections.abc import Sequence

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ..base import Operator, OperatorInstance


class Union(Operator):
    """An operator that passes all records on, with the columns in the order of the first batch.

    The task takes the minimum of the inputs' watermarks.
    """

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        names = dict.fromkeys(name for known in inputs for name in known.types)
        kinds = {name: [known.type_of(name) for known in inputs] for name in names}
        agreed = {name: types[0] if all(kind == types[0] for kind in types) else None for name, types in kinds.items()}
        return Columns(agreed, any(known.complete for known in inputs))

    def open(self, context: Context) -> UnionInstance:
        return UnionInstance(context)


class UnionInstance(OperatorInstance):
    """An instance that remembers the columns of the first batch, and whether it had event times."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._columns: list[str] = []
        self._timed = False

    def process(self, batch: Batch, emit: Emit) -> None:
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
