"""The operators `select`, `drop` and `rename`: they choose and name columns without touching values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...needed import Needed
from ...updates import Updates
from ...weights import WEIGHT
from ..base import Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class Project(Operator):
    """An operator that keeps `select` (in that order, None for all), without `drop`, under the names in `rename`."""

    select: tuple[str, ...] | None = None
    drop: frozenset[str] = frozenset()
    rename: Mapping[str, str] | None = None

    checked_at_once = True

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        known, names = inputs[0], self.rename or {}
        there = self.select if self.select is not None else tuple(dict.fromkeys((*known.types, *names)))
        types = {names.get(name, name): known.type_of(name) for name in there if name not in self.drop}
        fields = {names.get(name, name): found for name, found in known.fields.items() if names.get(name, name) in types}
        return Columns(types, self.select is not None or known.complete, fields)

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        known, renamed = inputs[0], self.rename or {}
        missing = next((name for name in (*(self.select or ()), *self.drop, *renamed) if known.lacks(name)), None)
        if missing is not None:
            return f"no column `{missing}`; there are: {known.listed()}"
        kept = self.select if self.select is not None else tuple(dict.fromkeys((*known.types, *renamed)))
        names = [renamed.get(name, name) for name in kept if name not in self.drop]
        if known.complete and not names:
            return f"no column is left of {known.listed()}: keep at least one"
        twice = next((name for name in names if names.count(name) > 1), None)
        return twice and f"two columns would have the name `{twice}`: choose another, or drop one first"

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        before = inputs[0]
        if before is None or before.key is None:
            return before
        kept = all(name not in self.drop and (self.select is None or name in self.select) for name in before.key)
        renamed = self.rename or {}
        return replace(before, key=tuple(renamed.get(name, name) for name in before.key) if kept else None)

    def open(self, context: Context) -> ProjectInstance:
        return ProjectInstance(self, context)

    def weighed(self) -> Operator:
        return self if self.select is None else replace(self, select=(*self.select, WEIGHT))

    def needs(self, wanted: Needed | None) -> Needed | None:
        renamed = self.rename or {}
        checked = self.drop.union(renamed)
        if self.select is not None:
            return Needed(checked.union(self.select))
        before = {new: old for old, new in renamed.items()}
        gone = checked.difference(before)
        if wanted is None or not gone.isdisjoint(wanted.names):
            return None
        taken = frozenset(before)  # an existing column with such a name is an error
        return Needed(checked.union(before.get(name, name) for name in wanted.names), wanted.if_there | taken)

    def describe(self) -> str:
        parts = [
            ", ".join(self.select or ()),
            *(f"-{n}" for n in sorted(self.drop)),
            *(f"{a}->{b}" for a, b in (self.rename or {}).items()),
        ]
        return " ".join(part for part in parts if part)


class ProjectInstance(OperatorInstance):
    """An instance without state."""

    def __init__(self, operator: Project, context: Context) -> None:
        super().__init__(context)
        self.select, self.drop, self.rename = operator.select, operator.drop, operator.rename or {}

    def process(self, batch: Batch, emit: Emit) -> None:
        schema = batch.rows.schema
        for name in (*(self.select or ()), *self.drop, *self.rename):
            if schema.get_field_index(name) < 0:
                raise RecordError(self.context.name, f"no column `{name}`; there are: {', '.join(schema.names)}")
        kept = [n for n in (self.select if self.select is not None else schema.names) if n not in self.drop]
        names = [self.rename.get(n, n) for n in kept]
        if not names:
            raise RecordError(self.context.name, f"no column is left of {', '.join(schema.names)}: keep at least one")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise RecordError(self.context.name, f"two columns would have the name `{twice}`: choose another, or drop one first")
        emit(batch.with_rows(pa.record_batch([batch.rows.column(n) for n in kept], names=names)))
