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
from ..expression import columns_of, true_where
from .base import Accumulator, AggregateFunction, Codes, Parts

Mask = npt.NDArray[np.bool_]

Condition: TypeAlias = pc.Expression | str
"""An Arrow expression such as `pc.field("price") < 10_000`, or the name of a column of booleans.

Null counts as false, as in SQL.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Filtered(AggregateFunction):
    """The aggregate `function` of the rows for which `condition` is true."""

    function: AggregateFunction
    condition: Condition

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
        condition = repr(self.condition) if isinstance(self.condition, str) else str(self.condition)
        return f"{self.function.describe()} where {condition}"

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        columns = None if self.function.whole_rows else list(self.function.reads(schema))
        return FilteredAccumulator(self.function.bind(schema, operator), RowsWhere(self.condition, operator), columns)


class RowsWhere:
    """The rows for which a condition is true, found once per batch, for all aggregates with this condition."""

    def __init__(self, condition: Condition, operator: str) -> None:
        self.condition, self.operator = condition, operator
        self._filtered: Callable[[], pa.RecordBatch | None] = lambda: None
        self._found: tuple[Mask, npt.NDArray[np.intp]] = np.zeros(0, np.bool_), np.zeros(0, np.intp)

    def same(self, other: RowsWhere) -> bool:
        """Return True if the conditions are equal."""
        if isinstance(self.condition, str) or isinstance(other.condition, str):
            return isinstance(self.condition, str) and self.condition == other.condition
        return bool(self.condition.equals(other.condition))

    def of(self, batch: Batch) -> tuple[Mask, npt.NDArray[np.intp]]:
        """Return the mask of these rows, and their indices."""
        if self._filtered() is not batch.rows:
            kept = self._kept(batch)
            self._filtered, self._found = weakref.ref(batch.rows), (kept, np.flatnonzero(kept))
        return self._found

    def _kept(self, batch: Batch) -> Mask:
        condition, schema = self.condition, batch.rows.schema
        if not isinstance(condition, str):
            return true_where(condition, batch, self.operator, "where=")
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
            raise RecordError(self.operator, f'{problem}, as in pc.field("{condition}") > 0')
        kept: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
        return kept


class FilteredAccumulator(Accumulator):
    """The accumulator of the aggregate, given the filtered rows. Parts: those of the aggregate."""

    def __init__(self, of: Accumulator, where: RowsWhere, columns: list[str] | None) -> None:
        self.of, self.where, self.columns, self.operator = of, where, columns, where.operator
        self.part_types, self.output_type, self.typed, self.distinct = of.part_types, of.output_type, of.typed, of.distinct
        self.fixed_width = of.fixed_width

    def empty(self, n: int) -> Parts:
        return self.of.empty(n)

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        kept, places = self.where.of(batch)
        if len(places) == len(kept):
            return self.of.partial(batch, codes, groups)
        read = batch if self.columns is None else batch.with_rows(batch.rows.select(self.columns))
        return self.of.partial(read.filter(kept), codes.take(places), groups)

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


def filtered(function: AggregateFunction, where: Condition | None) -> AggregateFunction:
    """Return `function` of the rows where the condition is true; None for all. Raises FlowError for anything else."""
    if where is None:
        return function
    if not isinstance(where, (str, pc.Expression)):
        example = 'pc.field("price") < 10_000'
        raise FlowError(f"where={where!r:.200}: expected an Arrow expression, for example {example}, or the name of a column of booleans")
    return Filtered(function, where)
