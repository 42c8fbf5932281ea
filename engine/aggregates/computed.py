"""Aggregates of expressions: `ef.sum(ef.col("price") * ef.col("qty"))`.

An expression is computed where its aggregate reads rows, for the rows that `where=` leaves. Its values are a column of the rows
that this aggregate sees, and of no others.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..batch import Batch
from ..columns import Columns
from ..errors import RecordError
from ..expressions.evaluation import Evaluator, checked_types
from ..expressions.expression import Expression
from ..expressions.trees.problems import BindingError
from ..expressions.trees.text import text_of
from ..expressions.trees.tree import Column, Tree, columns_of_all
from ..types.exact import Inexact, exactly
from .base import Accumulator, AggregateFunction, Codes, Parts
from .column import column_name


@dataclass(frozen=True, slots=True, eq=False)
class Computed(AggregateFunction):
    """The aggregate `function`, which reads the expressions `computed` as columns of these names."""

    function: AggregateFunction
    computed: Mapping[str, Tree]

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        whole = pa.schema([*schema, *((name, pa.null()) for name in self.computed)])
        plain = [name for name in self.function.reads(whole) if name not in self.computed]
        return tuple(dict.fromkeys([*plain, *sorted(columns_of_all(self.computed.values()))]))

    def needs(self) -> frozenset[str] | None:
        read = self.function.needs()
        return None if read is None else (read - self.computed.keys()) | columns_of_all(self.computed.values())

    def beside(self, keys: tuple[str, ...]) -> AggregateFunction:
        return Computed(self.function.beside((*keys, *self.computed)), self.computed)

    def fields(self, known: Columns) -> tuple[str, ...] | None:
        return self.function.fields(known)

    def weighed(self) -> AggregateFunction | None:
        function = self.function.weighed()
        return None if function is None else Computed(function, self.computed)

    def problem(self, known: Columns) -> str | None:
        try:
            checked_types(tuple(self.computed.values()), known)
        except BindingError as error:
            return str(error)
        return self.function.problem(known)

    def describe(self) -> str:
        text = self.function.describe()
        for name, tree in self.computed.items():
            for quoted in (json.dumps(name), repr(name)):
                text = text.replace(quoted, text_of(tree))
        return text

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        computed = {name: ComputedColumn(tree, schema, operator) for name, tree in self.computed.items()}
        plain = [field for field in schema if field.name not in self.computed]
        whole = pa.schema([*plain, *((name, column.type) for name, column in computed.items())])
        names = [name for name in self.function.reads(whole) if name not in computed]
        return ComputedAccumulator(self.function.bind(whole, operator), names, computed, operator)


class ComputedColumn:
    """An expression bound to columns of the types in `schema`, computed once per batch for all aggregates of it."""

    def __init__(self, tree: Tree, schema: pa.Schema, operator: str) -> None:
        self.tree, self.operator = tree, operator
        self._evaluator = Evaluator([tree], operator)
        read = columns_of_all([tree])
        self._schema = pa.schema([field for field in schema if field.name in read])
        (self.type,) = self._evaluator.bind(schema if len(self._schema) < len(read) else self._schema).types
        self._computed: Callable[[], pa.RecordBatch | None] = lambda: None
        self._values = pa.nulls(0)

    def same(self, other: ComputedColumn) -> bool:
        """Return True if the other has the same expression, bound to the same types."""
        return self.tree == other.tree and self._schema.equals(other._schema)

    def of(self, batch: Batch) -> pa.Array:
        """Return the values for the rows of a batch, whose types may be narrower than the bound ones. Raises RecordError."""
        if self._computed() is not batch.rows:
            (values,) = self._evaluator.values(batch.with_rows(self._read(batch.rows)))
            self._computed, self._values = weakref.ref(batch.rows), values
        return self._values

    def _read(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        try:
            columns = [exactly(rows.column(field.name), field.type) for field in self._schema]
        except Inexact as error:
            raise RecordError(self.operator, f"{text_of(self.tree):.500}: a column got a wider type: {error}") from error
        except KeyError:
            self._evaluator.bind(rows.schema)  # raises the error of a missing column
            raise
        if not columns:  # an expression without columns: the rows count
            return rows
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


class ComputedAccumulator(Accumulator):
    """The accumulator `of` an aggregate, given the columns `plain` of the rows and the computed ones. Parts: those of the aggregate."""

    def __init__(self, of: Accumulator, plain: list[str], computed: dict[str, ComputedColumn], operator: str) -> None:
        self.of, self.plain, self.computed, self.operator = of, plain, computed, operator
        self.part_types, self.output_type, self.typed, self.distinct = of.part_types, of.output_type, of.typed, of.distinct
        self.fixed_width = of.fixed_width

    def empty(self, n: int) -> Parts:
        return self.of.empty(n)

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        columns = {name: batch.rows.column(name) for name in self.plain}
        columns.update((name, column.of(batch)) for name, column in self.computed.items())
        rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        return self.of.partial(batch.with_rows(rows), codes, groups)

    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        return self.of.combine(parts, codes, groups)

    def merge(self, left: Parts, right: Parts) -> Parts:
        return self.of.merge(left, right)

    def negated(self, parts: Parts) -> Parts:
        return self.of.negated(parts)

    def finish(self, parts: Parts) -> pa.Array:
        return self.of.finish(parts)

    def carried(self, parts: Parts, narrower: Any) -> Parts:
        return self.of.carried(parts, narrower.of)

    def to_arrow(self, parts: Parts) -> list[pa.Array]:
        return self.of.to_arrow(parts)

    def from_arrow(self, arrays: Sequence[pa.Array]) -> Parts:
        return self.of.from_arrow(arrays)

    def nbytes(self, parts: Parts) -> int:
        return self.of.nbytes(parts)


def share_expressions(accumulators: Iterable[ComputedAccumulator]) -> None:
    """Make accumulators with equal expressions share them, so that they are computed once per batch."""
    known: list[ComputedColumn] = []
    for accumulator in accumulators:
        for name, column in accumulator.computed.items():
            accumulator.computed[name] = next((other for other in known if other.same(column)), column)
            if accumulator.computed[name] is column:
                known.append(column)


def over(function: str, column: object, make: Callable[[str], AggregateFunction]) -> AggregateFunction:
    """Return the aggregate that `make` makes of the name of a column, or of an expression. Raises FlowError for anything else."""
    return over_all(function, (column,), make)


def over_all(function: str, columns: Sequence[object], make: Callable[..., AggregateFunction]) -> AggregateFunction:
    """Return the aggregate that `make` makes of the names of `columns`, which may be expressions."""
    names, computed = list[str](), dict[str, Tree]()
    taken = {column for column in columns if isinstance(column, str)}
    for column in columns:
        if isinstance(column, Expression) and not isinstance(column.tree, Column):
            name = text_of(column.tree)
            while name in taken:  # a column that has this text as its name
                name += " "
            names.append(name)
            computed[name] = column.tree
        else:
            names.append(
                column.tree.name if isinstance(column, Expression) and isinstance(column.tree, Column) else column_name(function, column)
            )
    made = make(*names)
    return Computed(made, computed) if computed else made
