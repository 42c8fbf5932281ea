"""The aggregates `top` (the first rows of a group by a column), `max_by` and `min_by` (a column's value in the first row)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from ...columns import Columns
from ...errors import FlowError
from ...expressions.expression import Expression
from ..base import Accumulator, AggregateFunction, Parts, call
from ..column import InputColumn
from ..computed import over_all
from ..multiset import Multiset
from ..ragged import Ragged
from ..untyped import UntypedAccumulator
from .first_rows import FirstRowsAccumulator, Order

By: TypeAlias = str | Expression | Sequence[tuple[str | Expression, str]]
"""A column or an expression, the highest value first, or several with "ascending" or "descending" each."""


@dataclass(frozen=True, slots=True)
class Top(AggregateFunction):
    """The aggregate of the `order.n` first rows as a list of structs; `columns`: those of a struct, None for all but the
    operator's keys.
    """

    order: Order
    columns: tuple[str, ...] | None = None
    keys: tuple[str, ...] = ()

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        by = [name for name, _ in self.order.by]
        shown = [name for name in schema.names if name not in self.keys] if self.columns is None else self.columns
        return tuple(dict.fromkeys([*shown, *by]))

    def needs(self) -> frozenset[str] | None:
        return None if self.columns is None else frozenset((*self.columns, *(name for name, _ in self.order.by)))

    def beside(self, keys: tuple[str, ...]) -> AggregateFunction:
        return replace(self, keys=keys)

    def fields(self, known: Columns) -> tuple[str, ...] | None:
        if self.columns is not None:
            return self.columns
        return tuple(name for name in known.types if name not in self.keys) if known.complete else None

    def describe(self) -> str:
        by = [(name, "descending" if falls else "ascending") for name, falls in self.order.by]
        columns: dict[str, Any] = {} if self.columns is None else {"columns": list(self.columns)}
        if self.order.of_equal is not None:
            columns["of_equal"] = self.order.of_equal
        return call("top", self.order.n, by=by, ties=self.order.ties, **columns)

    def weighed(self) -> AggregateFunction:
        return Multiset(self)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        columns = [InputColumn.of(schema, "top", name, operator) for name in self.reads(schema)]
        shown = tuple(name for name in schema.names if name not in self.keys) if self.columns is None else self.columns
        return TopAccumulator(operator, columns, self.order, shown)


class TopAccumulator(FirstRowsAccumulator):
    """An accumulator whose result has the columns `shown` of the rows."""

    def __init__(self, operator: str, columns: list[InputColumn], order: Order, shown: tuple[str, ...]) -> None:
        self.row_type = pa.struct([(c.name, c.type) for c in columns if c.name in shown])
        by = [name for name, _ in order.by]
        super().__init__(operator, columns, order, by, pa.list_(self.row_type))

    def finish(self, parts: Parts) -> pa.Array:
        lists: Ragged = parts[0]
        fields = [lists.values.field(field.name).cast(field.type) for field in self.row_type]
        rows = pa.StructArray.from_arrays(fields, fields=list(self.row_type))
        return Ragged(rows, lists.offsets).to_arrow(lists.counts == 0).cast(self.output_type)


@dataclass(frozen=True, slots=True)
class ByExtreme(AggregateFunction):
    """The aggregate of the value of a column in the row with the largest or smallest value of `by`."""

    column: str
    by: str
    largest: bool

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        return (self.by,) if self.by == self.column else (self.by, self.column)

    def describe(self) -> str:
        return call("max_by" if self.largest else "min_by", self.column, self.by)

    def weighed(self) -> AggregateFunction:
        return Multiset(self, once=True)

    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        name = "max_by" if self.largest else "min_by"
        columns = [InputColumn.of(schema, name, column, operator) for column in self.reads(schema)]
        shown = columns[-1]
        if shown.untyped:
            return UntypedAccumulator(operator)
        order = Order(tuple((column.name, self.largest) for column in columns), 1)
        return ByExtremeAccumulator(operator, columns, order, [column.name for column in columns], shown.type)


class ByExtremeAccumulator(FirstRowsAccumulator):
    """An accumulator whose lists hold at most one row, whose last column is the result."""

    def finish(self, parts: Parts) -> pa.Array:
        lists: Ragged = parts[0]
        values = lists.values.field(len(self.columns) - 1)
        there = pa.array(lists.offsets[:-1], mask=lists.counts == 0)
        return values.take(there).cast(self.output_type)


def top_of(n: int, by: By, ties: bool, columns: Sequence[str] | None) -> AggregateFunction:
    """Return the aggregate for these arguments. Raises FlowError for invalid ones."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise FlowError(f"top({n!r:.200}, ...): the number of rows must be a whole number of at least 1")
    pairs = [(by, "descending")] if isinstance(by, (str, Expression)) else by
    try:
        order = tuple((name, _FALLING[direction]) for name, direction in pairs)
    except (TypeError, ValueError, KeyError, FlowError):
        order = ()
    names, falling = [name for name, _ in order], [falls for _, falls in order]
    if not names or not all(isinstance(name, (str, Expression)) for name in names) or len(set(map(repr, names))) < len(names):
        example = '"price" or [("price", "descending"), ("ts", "ascending")]'
        raise FlowError(f"top(by={by!r:.200}): expected a column, or columns with an order each, for example {example}")
    if not isinstance(ties, bool):
        raise FlowError(f"top(ties={ties!r:.200}): expected True or False")
    if columns is None:
        return over_all("top", names, lambda *by: Top(Order(tuple(zip(by, falling, strict=True)), n, ties)))
    listed = isinstance(columns, Iterable) and not isinstance(columns, (str, bytes))
    if not listed or not columns or not all(isinstance(name, str) for name in columns):
        raise FlowError(f"top(columns={columns!r:.200}): expected a list of the names of columns, at least one")
    shown = tuple(dict.fromkeys(columns))
    return over_all("top", names, lambda *by: Top(Order(tuple(zip(by, falling, strict=True)), n, ties), shown))


_FALLING = {"ascending": False, "descending": True}
