"""A join of rows with the largest or smallest value of their window, of the same rows: `top` with ties, in one pass.

    SELECT b.* FROM bid b JOIN (
        SELECT MAX(price) AS most, window_start AS s, window_end AS e FROM TABLE(TUMBLE(TABLE bid, ...)) GROUP BY window_start, window_end
    ) m ON b.price = m.most WHERE b.ts >= m.s AND b.ts < m.e

A join would read the rows twice, and keep all of them. Other queries are left to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from ..engine.aggregates.named.functions import top
from ..engine.aggregates.row_order import has_order
from ..engine.expressions.expression import col
from ..engine.expressions.trees.tree import Column
from .columns import sql_name
from .grouping import aggregated, groups_of
from .relation import Relation
from .same_rows import bounds_of, merged, parts_of, window_over
from .translation import Translation

_BEST = "_best"

_Form: TypeAlias = tuple[str, str, str]
"""A comparison of two columns: "=", "<" or "<=", and their names."""


@dataclass(frozen=True, slots=True)
class ExtremeJoin:
    """Such a join: `rows` with the extreme of their column `value`, which `query` computes; `name`: the alias of the query.

    `keys`: the rows' columns that it groups by; `window`: its window function, None if it is over windows that are over;
    `used`: the conditions of the join.
    """

    rows: exp.Subquery
    query: exp.Select
    name: str
    value: str
    keys: frozenset[str]
    window: exp.Select | None
    used: tuple[exp.Expr, ...]


def extreme_join(rows: exp.Expr, other: exp.Expr, conditions: list[exp.Expr]) -> ExtremeJoin | None:
    """Return an inner join of two parts of FROM as a join of rows with their extreme, None if it is any other."""
    query = other.this if isinstance(other, exp.Subquery) else None
    if not isinstance(query, exp.Select) or parts_of(query) != {"expressions", "from_", "group"}:
        return None
    items = {item.alias_or_name: item.unalias() for item in query.expressions}
    columns = [node for node in items.values() if isinstance(node, exp.Column)]
    extremes = [node for node in items.values() if isinstance(node, exp.Max | exp.Min) and isinstance(node.this, exp.Column)]
    by = [item.sql() for item in query.args["group"].expressions]
    if len(extremes) != 1 or len(items) != 1 + len(columns) or sorted(by) != sorted(node.sql() for node in columns):
        return None
    inner = query.args["from_"].this
    window = window_over(inner)
    bounds = {} if window is None else bounds_of(window)
    read = set() if window is None else {column.name for column in window.find_all(exp.Column)}
    source = merged(rows, inner if window is None else window.args["from_"].this, read)
    keys = frozenset(node.name for node in columns) - bounds.keys()
    if source is None or bounds.keys() - {node.name for node in columns} or extremes[0].this.name in keys:
        return None
    forms = [_forms(rows.alias_or_name, f"{other.alias_or_name}.{name}", node, bounds) for name, node in items.items()]
    used = [next((each for each in conditions if _form(each) in wanted), None) for wanted in forms]
    found = tuple(each for each in used if each is not None)
    if len(found) < len(used):
        return None
    return ExtremeJoin(source, query, other.alias_or_name, extremes[0].this.name, keys, window, found)


def joined_with_extreme(query: Translation, join: ExtremeJoin) -> tuple[Relation, bool]:
    """Return the rows with their extreme, and True; or the rows alone, and False, if `top` can't hold them."""
    rows = query.source(join.rows, joined=True)
    columns = {name.partition(".")[2]: column for name, column in rows.names.items()}
    if not _fit(rows, columns, join):
        return rows, False
    inner = join.query.args["from_"].this
    seen = replace(rows, names={f"{inner.alias_or_name}.{name}": column for name, column in columns.items()})
    if join.window is not None:
        table = join.window.args["from_"].this.alias_or_name
        calls = bounds_of(join.window)
        marks = {f"{inner.alias_or_name}.{name}": {"WSTART": "start", "WEND": "end"}[call.name] for name, call in calls.items()}
        of_table = replace(rows, names={f"{table}.{name}": column for name, column in columns.items()})
        seen = replace(seen, marks=marks, window=query.window(next(iter(calls.values())), of_table))
    groups = groups_of(query, seen, join.query)
    value = columns[join.value]
    (falling,) = (isinstance(item.unalias(), exp.Max) for item in join.query.expressions if isinstance(item.unalias(), exp.Max | exp.Min))
    taken = [column for column in columns.values() if column not in groups.keys]
    groups.functions = {_BEST: top(1, [(value, "descending" if falling else "ascending")], ties=True, columns=taken)}
    result = aggregated(query, seen, groups)
    stream = result.stream.explode(_BEST)
    for name in join.keys if join.window is not None else join.keys - _bounds(rows, columns):
        stream = stream.filter(col(columns[name]).is_not_null())  # a join has no partner for a null
    names = dict(rows.names)
    for item in join.query.expressions:
        node = item.unalias()
        tree = (col(value) if isinstance(node, exp.Max | exp.Min) else query.expression(node, result, groups.known)).tree
        assert isinstance(tree, Column)
        names[f"{join.name}.{item.alias_or_name}"] = tree.name
    return replace(result, stream=stream, names=names), True


def _fit(rows: Relation, columns: Mapping[str, str], join: ExtremeJoin) -> bool:
    """Return True if `top` can hold the rows: append-only ones in windows, whose columns decide between equal rows."""
    if rows.updates is not None or not {*join.keys, join.value} <= columns.keys():
        return False
    if join.window is None and not (rows.bounds is not None and _bounds(rows, columns) <= join.keys):
        return False
    kinds = [rows.columns.type_of(column) for column in columns.values()]
    return all(kind is not None and has_order(kind) for kind in kinds)


def _bounds(rows: Relation, columns: Mapping[str, str]) -> set[str]:
    """Return the names of the bounds of windows that are over."""
    return {name for name, column in columns.items() if rows.bounds is not None and column in (rows.bounds.start, rows.bounds.end)}


def _forms(rows: str, theirs: str, node: exp.Expr, bounds: Mapping[str, exp.Anonymous]) -> set[_Form]:
    """Return the comparisons for a column of the query, `node`: the join needs one of them."""
    call = bounds.get(node.name)
    if call is not None:
        time = f"{rows}.{call.expressions[1].name}"
        return {("<=", theirs, time)} if call.name == "WSTART" else {("<", time, theirs)}
    ours = f"{rows}.{node.this.name if isinstance(node, exp.Max | exp.Min) else node.name}"
    equal = {("=", ours, theirs), ("=", theirs, ours)}
    if isinstance(node, exp.Max):
        return {*equal, ("<=", theirs, ours)}
    return {*equal, ("<=", ours, theirs)} if isinstance(node, exp.Min) else equal


_SIGNS: Mapping[type[exp.Expr], tuple[str, bool]] = {
    exp.EQ: ("=", False), exp.LT: ("<", False), exp.LTE: ("<=", False), exp.GT: ("<", True), exp.GTE: ("<=", True),
}  # fmt: skip
"""The sign of a comparison, and True if its sides change places."""


def _form(condition: exp.Expr) -> _Form | None:
    sign, swapped = _SIGNS.get(type(condition), (None, False))
    if sign is None or not isinstance(condition.this, exp.Column) or not isinstance(condition.expression, exp.Column):
        return None
    one, two = sql_name(condition.this), sql_name(condition.expression)
    return (sign, two, one) if swapped else (sign, one, two)
