"""GROUP BY: windows of event time or arrival, windows that are over already, or running groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from ..building.windows import AnyWindows
from ..engine.aggregates.base import AggregateFunction
from ..engine.aggregates.named import functions as aggregates
from ..engine.errors import FlowError
from ..engine.expressions.evaluation import checked_types
from ..engine.expressions.expression import Expression, col, lit
from ..engine.expressions.trees.tree import Column
from ..engine.time.sessions import SessionWindows
from ..engine.time.windows import Windows
from .columns import check_names, filtered, sql_name
from .conditions import conjuncts
from .dialect import text_of
from .functions import divided
from .refusals import check_parts, refusal
from .relation import Bounds, Relation, Window
from .translation import Translation

START, END = "window_start", "window_end"

_FUNCTIONS: dict[type[exp.AggFunc], Callable[..., AggregateFunction]] = {
    exp.Count: aggregates.count, exp.Sum: aggregates.sum, exp.Avg: aggregates.mean, exp.Min: aggregates.min, exp.Max: aggregates.max,
    exp.Stddev: aggregates.stddev, exp.StddevSamp: aggregates.stddev, exp.Variance: aggregates.variance, exp.Median: aggregates.median,
    exp.ApproxDistinct: aggregates.approx_distinct,
}  # fmt: skip


@dataclass
class Groups:
    """The parts of a GROUP BY. `known`: the expressions of its result for parts of SELECT, by their SQL."""

    keys: dict[str, Expression] = field(default_factory=dict)
    known: dict[str, Expression] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    window: Window | None = None
    ends: set[str] = field(default_factory=set)


def has_aggregates(select: exp.Select) -> bool:
    """Return True if SELECT has an aggregate that isn't OVER rows."""
    return any(not isinstance(found.parent, exp.Window) for item in select.expressions for found in item.find_all(exp.AggFunc))


def is_number(kind: pa.DataType) -> bool:
    """Return True for whole numbers, floats and decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def grouped(query: Translation, relation: Relation, select: exp.Select) -> Relation:
    """Return the rows of SELECT ... GROUP BY."""
    groups = groups_of(query, relation, select)
    if not groups.functions:
        groups.functions["_rows"] = aggregates.count()
    result = aggregated(query, relation, groups)
    for condition in conjuncts(select.args.get("having")):
        result = result.of_stream(filtered(result, query.expression(condition, result, groups.known)))
    check_names(select)
    columns = {item.alias_or_name: query.expression(item.unalias(), result, groups.known) for item in select.expressions}
    found = query.computed(replace(result, names={}), columns, {name: name for name in columns})
    if select.args.get("distinct"):
        raise refusal(select.args["distinct"], "SELECT DISTINCT of groups: groups are distinct already")
    return found


def groups_of(query: Translation, relation: Relation, select: exp.Select) -> Groups:
    """Return the keys, the window and the aggregates of SELECT ... GROUP BY."""
    groups = Groups(window=relation.window)
    clause = select.args.get("group")
    if clause is not None:
        check_parts(clause, frozenset({"expressions"}))
        for item in clause.expressions:
            _add_key(query, relation, groups, item)
    if groups.ends and groups.ends != {"start", "end"}:
        raise refusal(clause or select, "GROUP BY one bound of a window: name both, window_start and window_end")
    parts = [*select.expressions, *([select.args["having"]] if select.args.get("having") else [])]
    for node in [found for part in parts for found in part.find_all(exp.AggFunc)]:
        outer = node.parent if isinstance(node.parent, exp.Filter) else node
        if outer.sql() not in groups.known:
            groups.known[outer.sql()] = _aggregate(query, relation, groups, node, outer)
    return groups


def _add_key(query: Translation, relation: Relation, groups: Groups, item: exp.Expr) -> None:
    mark = relation.marks.get(sql_name(item)) if isinstance(item, exp.Column) else None
    if isinstance(item, exp.Anonymous) and item.name in ("WSTART", "WEND"):
        groups.window, mark = query.window(item, relation), {"WSTART": "start", "WEND": "end"}[item.name]
    if mark == "now":
        raise refusal(item, "rows can't be grouped by their time of arrival: use a window of it")
    if mark is not None:
        groups.ends.add(mark)
        groups.known[item.sql()] = col(START if mark == "start" else END)
        return
    expression = query.expression(item, relation)
    tree = expression.tree
    name = tree.name if isinstance(tree, Column) and tree.name not in (START, END) else f"_key{len(groups.keys)}"
    groups.keys[name] = expression
    groups.known[item.sql()] = col(name)


def _aggregate(query: Translation, relation: Relation, groups: Groups, node: exp.AggFunc, outer: exp.Expr) -> Expression:
    """Add the aggregates of a call to the groups; return the expression of its result."""
    options: dict[str, Any] = {}
    if isinstance(outer, exp.Filter):
        check_parts(outer, frozenset({"this", "expression"}))
        options["where"] = query.expression(outer.expression.this, relation)
    name, value = f"_agg{len(groups.functions)}", node.this
    distinct = isinstance(value, exp.Distinct)
    if distinct:
        check_parts(value, frozenset({"expressions"}))
        if len(value.expressions) != 1 or not isinstance(node, exp.Count):
            raise refusal(outer, "DISTINCT is supported in COUNT(DISTINCT column)")
        value = value.expressions[0]
    check_parts(node, frozenset({"this", "big_int"}))
    if isinstance(node, exp.Count) and not distinct and isinstance(value, exp.Star | exp.Literal):
        groups.functions[name] = aggregates.count(**options)
        return col(name)
    expression = query.expression(value, relation)
    (kind,) = checked_types([expression.tree], relation.columns)
    if isinstance(node, exp.Avg) and kind is not None and pa.types.is_integer(kind):
        groups.functions[name] = aggregates.sum(expression, **options)
        groups.functions[f"{name}n"] = aggregates.count(expression, **options)
        return divided(col(name), col(f"{name}n"))  # as in Flink, the mean of whole numbers is cut off
    function = aggregates.count_distinct if distinct else _FUNCTIONS.get(type(node))
    if function is None:
        raise refusal(outer, f"the aggregate isn't supported; there are: {', '.join(each.sql_name() for each in _FUNCTIONS)}")
    _check_numbers(node, outer, value, kind)
    groups.functions[name] = function(expression, **options)
    return col(name)


def _check_numbers(node: exp.AggFunc, outer: exp.Expr, value: exp.Expr, kind: pa.DataType | None) -> None:
    """Raise FlowError for an aggregate over numbers of values that certainly aren't numbers."""
    if kind is None or not isinstance(node, exp.Sum | exp.Avg | exp.Stddev | exp.StddevSamp | exp.Variance | exp.Median):
        return
    if not is_number(kind) and not (isinstance(node, exp.Sum) and pa.types.is_duration(kind)):
        raise refusal(outer, f"it is over numbers, and {text_of(value)} is {kind}")


def aggregated(query: Translation, relation: Relation, groups: Groups) -> Relation:
    """Return a row for each group, with its keys and the aggregates, which has no SQL names yet."""
    keys = dict(groups.keys)
    bounds = relation.bounds
    ours = {each.tree.name: name for name, each in keys.items() if isinstance(each.tree, Column)}
    over = bounds is not None and relation.updates is None and not groups.ends and {bounds.start, bounds.end} <= ours.keys()
    if over:
        assert bounds is not None
        bounds = replace(bounds, start=ours[bounds.start], end=ours[bounds.end])
        keys = {name: each for name, each in keys.items() if name not in (bounds.start, bounds.end)}
    elif not keys and not groups.ends:
        keys = {"_all": lit(0)}
    made = {name: each for name, each in keys.items() if not (isinstance(each.tree, Column) and each.tree.name == name)}
    stream = relation.stream.with_columns(made) if made else relation.stream
    if groups.ends:
        assert groups.window is not None
        return _in_windows(stream, groups, tuple(keys))
    if over:
        assert bounds is not None
        return _in_past_windows(stream, groups, tuple(keys), bounds)
    query.notes.append(f"groups by {', '.join(keys)} are updated, and kept for ever")
    return Relation(stream.key_by(*keys).aggregate(**groups.functions), {})


def _in_past_windows(stream: Any, groups: Groups, keys: tuple[str, ...], bounds: Bounds) -> Relation:
    """Group rows whose windows are over, in windows with one end each."""
    keyed = stream.key_by(*keys) if keys else stream
    windows = Windows(bounds.step, bounds.step, bounds.length % bounds.step)
    found = keyed.window(windows).aggregate(**groups.functions)
    if bounds.length != bounds.step:
        found = found.with_columns({START: col(END) - lit(pa.scalar(bounds.length, pa.duration("us")))})
    return Relation(found.rename({START: bounds.start, END: bounds.end}), {}, {bounds.end: 1}, bounds=bounds)


def _in_windows(stream: Any, groups: Groups, keys: tuple[str, ...]) -> Relation:
    window = groups.window
    assert window is not None
    if window.by is not None and window.by != set(keys):
        by, grouped_by = ", ".join(sorted(window.by)) or "nothing", ", ".join(keys) or "nothing"
        problem = f"SESSION with PARTITION BY {by}, grouped by {grouped_by}"
        raise FlowError(f"SQL: {problem}: sessions are those of each group; use the same columns")
    if window.time is None:
        stream = stream.with_arrival_time()
    windows, step = _windows(window)
    keyed = stream.key_by(*keys) if keys else stream
    found = keyed.window(windows).aggregate(**groups.functions)
    if not step:
        return Relation(found, {}, {END: 0})
    return Relation(found, {}, {END: 1}, bounds=Bounds(START, END, step, window.lengths[-1]))


def _windows(window: Window) -> tuple[AnyWindows, int]:
    """Return the windows, and the distance of their ends in microseconds, 0 for sessions."""
    first, *rest = window.lengths
    if window.kind == "TUMBLE":
        return Windows(first, first), first
    return (Windows(rest[0], first), first) if window.kind == "HOP" else (SessionWindows(first), 0)
