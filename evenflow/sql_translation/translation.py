"""The base of a query's translation: its inputs, and what grouping, joins and ranks need of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from ..engine.errors import FlowError
from ..engine.expressions.expression import Expression, col, lit
from ..engine.expressions.trees.tree import Column
from ..engine.time.duration import microseconds as duration
from .columns import free_name, select_columns, sql_name
from .refusals import refusal
from .relation import Relation, Window
from .user_functions import UserFunction
from .values import to_expression

FOR_EVER = "never"
"""The time to live of state that is kept for ever."""


@dataclass
class Translation(ABC):
    """The inputs of a statement. `streams` and `tables` by name; `ttl`: the life of unbounded state, None unless the user gave it.

    `notes`: state that grows for ever and results that are updated, for `explain()`.
    """

    streams: Mapping[str, Any]
    tables: Mapping[str, Any]
    ttl: Any = None
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @abstractmethod
    def source(self, node: exp.Expr, *, joined: bool) -> Relation:
        """Return the rows of a table or a subquery in FROM; its columns are `alias.name` if it is joined."""

    @abstractmethod
    def filtered(self, relation: Relation, condition: exp.Expr) -> Relation:
        """Return the rows for which a condition is true."""

    def lives(self, what: str) -> int | None:
        """Return the time to live of unbounded state in microseconds, None for ever. Raises FlowError if the user gave none."""
        if self.ttl is None:
            raise FlowError(f'SQL: {what} keeps its rows for ever: bound it, or say sql(..., ttl="1d"), or ttl="never" to keep them')
        if self.ttl == FOR_EVER:
            self.notes.append(f"{what} keeps its rows for ever")
            return None
        return duration(self.ttl, "sql(ttl=...)")

    def expression(self, node: exp.Expr, relation: Relation, known: Mapping[str, Expression] | None = None) -> Expression:
        """Return the expression of a part of the query over the columns of a relation."""

        def resolve(column: exp.Column) -> Expression:
            name = sql_name(column)
            if name in relation.names:
                return col(relation.names[name])
            if name in relation.marks:
                raise refusal(column, "the bound of a window, or the time of arrival, can only be selected and grouped by")
            if relation.ranked is not None and name == relation.ranked.rank:
                raise refusal(column, "a rank can only be bounded: WHERE rank <= n")
            if not relation.names:
                raise refusal(column, "it is neither in GROUP BY nor in an aggregate")
            raise refusal(column, f"there is no such column; there are: {', '.join(relation.names)}")

        return to_expression(node, resolve, known or {}, self.functions)

    def window(self, node: exp.Anonymous, relation: Relation) -> Window:
        """Return the window that WSTART or WEND names. Raises FlowError unless it is over the event time of the rows."""
        kind, time, *lengths = node.expressions
        by = frozenset(part.name for part in lengths.pop().expressions) if isinstance(lengths[-1], exp.Tuple) else None
        micros = tuple(int(length.name) for length in lengths)
        name = sql_name(time) if isinstance(time, exp.Column) else ""
        if relation.marks.get(name) == "now" or (isinstance(time, exp.Anonymous) and time.name.upper() == "PROCTIME"):
            return Window(kind.name, None, micros, by)
        column = relation.names.get(name)
        if column is None or relation.times.get(column) != 0:
            known = [each for each, place in relation.names.items() if relation.times.get(place) == 0]
            advice = f", which is {known[0]}" if known else "; say event_time= where they are read"
            raise refusal(time, f"it is not the event time of these rows{advice}")
        return Window(kind.name, column, micros, by)

    def computed(self, relation: Relation, expressions: Mapping[str, Expression], names: Mapping[str, str]) -> Relation:
        """Return the relation with these columns, and hidden ones for times, keys and bounds that the names don't have."""
        kept = {each.tree.name: name for name, each in expressions.items() if isinstance(each.tree, Column)}
        key = () if relation.updates is None else relation.updates.key or ()
        bounds = () if relation.bounds is None else (relation.bounds.start, relation.bounds.end)
        columns = dict(expressions)
        for column in dict.fromkeys((*key, *relation.times, *bounds)):
            if column in relation.columns.types and column not in kept:
                hidden = free_name(f"_{column}", columns)
                columns[hidden], kept[column] = col(column), hidden
        if not columns:
            columns["_none"] = lit(None)
        stream = select_columns(relation, columns)
        times = {kept[column]: offset for column, offset in relation.times.items() if column in kept}
        found = relation.bounds and replace(relation.bounds, start=kept[relation.bounds.start], end=kept[relation.bounds.end])
        window = relation.window and replace(relation.window, time=kept.get(relation.window.time or ""))
        return replace(relation, stream=stream, names=names, times=times, bounds=found, window=window)
