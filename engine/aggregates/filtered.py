"""`where=`: an aggregate of the rows for which a condition is true.

It filters each batch before the aggregate sees it, and leaves everything else to the aggregate, so it works with all of them.
Conditions are evaluated where rows arrive, which is in the combiner if there is one; state is independent of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..batch import Batch
from ..columns import Columns
from ..errors import FlowError, RecordError
from ..expressions.evaluation import Condition as TrueRows
from ..expressions.evaluation import condition_problem
from ..expressions.expression import Expression, instead_of_arrow
from ..expressions.trees.text import text_of
from ..expressions.trees.tree import Tree, columns_of
from .base import Accumulator, AggregateFunction, Codes, Parts

Mask = npt.NDArray[np.bool_]

Where: TypeAlias = Expression | str
"""An expression such as `ef.col("price") < 10_000`, or the name of a column of booleans.

Null counts as false, as in SQL.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Filtered(AggregateFunction):
    """The aggregate `function` of the rows for which `condition` is true."""

    function: AggregateFunction
    condition: Tree | str

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        return self.function.reads(schema)

    def needs(self) -> frozenset[str] | None:
        read = self.function.needs()
        condition = frozenset({self.condition}) if isinstance(self.condition, str) else columns_of(self.condition)
        return None if read is None or condition is None else read | condition

    def beside(self, keys: tuple[str, ...]) -> AggregateFunction:
        return Filtered(self.function.beside(keys), self.condition)

    def fields(self, known: Columns) -> tuple[str, ...] | None:
        return self.function.fields(known)

    def weighed(self) -> AggregateFunction | None:
        function = self.function.weighed()
        return None if function is None else Filtered(function, self.condition)

    def describe(self) -> str:
        condition = repr(self.condition) if isinstance(self.condition, str) else f"({text_of(self.condition)})"
        return f"{self.function.describe()} where {condition}"

    def problem(self, known: Columns) -> str | None:
        problem = None if isinstance(self.condition, str) else condition_problem(self.condition, known)
        return self.function.problem(known) if problem is None else f"where= {problem}"

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        columns = None if self.function.whole_rows else self.function.reads(schema)
        return FilteredAccumulator(self.function.bind(schema, operator), RowsWhere(self.condition, operator), columns)


class RowsWhere:
    """The rows for which a condition is true, found once per batch, for all aggregates with this condition."""

    def __init__(self, condition: Tree | str, operator: str) -> None:
        self.condition, self.operator = condition, operator
        self._true_rows = None if isinstance(condition, str) else TrueRows(condition, operator, "where= ").true_rows
        self._filtered: Callable[[], pa.RecordBatch | None] = lambda: None
        self._found: tuple[Mask, npt.NDArray[np.intp]] = np.zeros(0, np.bool_), np.zeros(0, np.intp)
        self._rows: dict[tuple[str, ...] | None, Batch] = {}

    def same(self, other: RowsWhere) -> bool:
        """Return True if the conditions are equal."""
        return self.condition == other.condition

    def of(self, batch: Batch) -> tuple[Mask, npt.NDArray[np.intp]]:
        """Return the mask of these rows, and their indices."""
        if self._filtered() is not batch.rows:
            kept = self._kept(batch)
            self._filtered, self._found = weakref.ref(batch.rows), (kept, np.flatnonzero(kept))
            self._rows.clear()
        return self._found

    def rows_of(self, batch: Batch, columns: tuple[str, ...] | None) -> Batch:
        """Return these rows with `columns`, None for all; for equal columns the same batch."""
        kept, _ = self.of(batch)
        if columns not in self._rows:
            read = batch if columns is None else batch.with_rows(batch.rows.select(columns))
            self._rows[columns] = read.filter(kept)
        return self._rows[columns]

    def _kept(self, batch: Batch) -> Mask:
        if self._true_rows is not None:
            return self._true_rows(batch)
        condition, schema = str(self.condition), batch.rows.schema
        if schema.names.count(condition) != 1:
            many = "more than one" if condition in schema.names else "no"
            raise RecordError(
                self.operator, f"where={condition!r}: there is {many} column `{condition}`; there are: {', '.join(schema.names)}"
            )
        column = batch.rows.column(condition)
        if pa.types.is_null(column.type):
            return np.zeros(len(column), np.bool_)
        if not pa.types.is_boolean(column.type):
            problem = f"where={condition!r}: the column is of type {column.type}, expected booleans; or give an expression"
            raise RecordError(self.operator, f'{problem}, as in ef.col("{condition}") > 0')
        kept: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
        return kept


class FilteredAccumulator(Accumulator):
    """The accumulator of the aggregate, given the filtered rows. Parts: those of the aggregate."""

    def __init__(self, of: Accumulator, where: RowsWhere, columns: tuple[str, ...] | None) -> None:
        self.of, self.where, self.columns, self.operator = of, where, columns, where.operator
        self.part_types, self.output_type, self.typed, self.distinct = of.part_types, of.output_type, of.typed, of.distinct
        self.fixed_width = of.fixed_width

    def empty(self, n: int) -> Parts:
        return self.of.empty(n)

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        kept, places = self.where.of(batch)
        if len(places) == len(kept):
            return self.of.partial(batch, codes, groups)
        return self.of.partial(self.where.rows_of(batch, self.columns), codes.take(places), groups)

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


def share_conditions(accumulators: Iterable[Accumulator]) -> None:
    """Make accumulators with equal conditions share their `RowsWhere`, so that a batch is filtered once."""
    known: list[RowsWhere] = []
    for accumulator in accumulators:
        if isinstance(accumulator, FilteredAccumulator):
            where = accumulator.where
            accumulator.where = next((other for other in known if other.same(where)), where)
            if accumulator.where is where:
                known.append(where)


def filtered(function: AggregateFunction, where: Where | None) -> AggregateFunction:
    """Return `function` of the rows where the condition is true; None for all. Raises FlowError for anything else."""
    if where is None:
        return function
    if isinstance(where, str):
        return Filtered(function, where)
    if not isinstance(where, Expression):
        raise FlowError(
            f'where={where!r:.200}: expected an expression, for example ef.col("price") < 10_000, or the name of a column of booleans'
            f"{instead_of_arrow(where)}"
        )
    return Filtered(function, where.tree)
