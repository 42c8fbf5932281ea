"""The operator `with_columns`, and `select` with expressions: columns computed from the others of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...expressions.evaluation import Evaluator, checked_types
from ...expressions.trees.problems import BindingError, missing_column
from ...expressions.trees.text import text_of
from ...expressions.trees.tree import Tree, columns_of_all
from ...needed import Needed
from ...updates import Updates
from ...weights import WEIGHT
from ..base import Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class Compute(Operator):
    """An operator that computes columns, all from the input's columns.

    `select`: the columns that it keeps before them, None for all. A computed column replaces the kept one of its name, in its
    place.
    """

    computed: Mapping[str, Tree]
    select: tuple[str, ...] | None = None

    checked_at_once = True

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        missing = next((name for name in self.select or () if inputs[0].lacks(name)), None)
        if missing is not None:
            return missing_column(missing, inputs[0].types)
        try:
            checked_types(tuple(self.computed.values()), inputs[0])
        except BindingError as error:
            return str(error)
        return None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        known = inputs[0]
        types = dict(zip(self.computed, checked_types(tuple(self.computed.values()), known), strict=True))
        if self.select is None:
            return known.having(types)
        fields = {name: found for name, found in known.fields.items() if name in self.select and name not in types}
        return Columns({**{name: known.type_of(name) for name in self.select}, **types}, complete=True, fields=fields)

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        before = inputs[0]
        if before is None or before.key is None:
            return before
        kept = all(name not in self.computed and (self.select is None or name in self.select) for name in before.key)
        return before if kept else replace(before, key=None)

    def weighed(self) -> Operator:
        return self if self.select is None else replace(self, select=(*self.select, WEIGHT))

    def needs(self, wanted: Needed | None) -> Needed | None:
        read = columns_of_all(self.computed.values())
        if self.select is not None:
            return Needed(read.union(self.select))
        if wanted is None:
            return None
        made = frozenset(self.computed)
        return Needed(wanted.names - made, wanted.if_there - made, wanted.coded - made).with_names(read)

    def open(self, context: Context) -> ComputeInstance:
        return ComputeInstance(self, context)

    def describe(self) -> str:
        return ", ".join([*(self.select or ()), *(f"{name}={text_of(tree)}" for name, tree in self.computed.items())])


class ComputeInstance(OperatorInstance):
    """An instance without state."""

    def __init__(self, operator: Compute, context: Context) -> None:
        super().__init__(context)
        self._select, self._names = operator.select, list(operator.computed)
        self._evaluator = Evaluator(tuple(operator.computed.values()), context.name)

    def process(self, batch: Batch, emit: Emit) -> None:
        rows = batch.rows
        computed = dict(zip(self._names, self._evaluator.values(batch), strict=True))
        kept = rows.schema.names if self._select is None else self._select
        columns: dict[str, pa.Array] = {}
        for name in kept:
            place = rows.schema.get_field_index(name)
            if place < 0:
                raise RecordError(self.context.name, missing_column(name, rows.schema.names))
            columns[name] = rows.column(place)
        columns.update(computed)
        emit(batch.with_rows(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))))
