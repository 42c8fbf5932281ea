"""ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) with a bound on it: the first rows of each partition."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import replace

from sqlglot import exp

from ..engine.aggregates.base import AggregateFunction
from ..engine.aggregates.lists.first_rows import Order
from ..engine.aggregates.lists.top import Top
from ..engine.aggregates.named.functions import top
from ..engine.expressions.expression import Expression, lit
from .columns import sql_name
from .refusals import check_parts, refusal
from .relation import Ranked, Relation
from .translation import Translation


def ranked_by(query: Translation, relation: Relation, node: exp.Window, columns: MutableMapping[str, Expression], name: str) -> Ranked:
    """Return the ranking of a window function, and add the columns that it needs to `columns`."""
    if not isinstance(node.this, exp.RowNumber):
        raise refusal(node, "of functions OVER rows only ROW_NUMBER() with a bound on it in the query around it is supported")
    check_parts(node.this, frozenset())
    check_parts(node, frozenset({"this", "partition_by", "order", "over"}))
    if node.args.get("order") is None:
        raise refusal(node, "ROW_NUMBER() needs ORDER BY")

    def place(part: exp.Expr) -> str:
        expression = query.expression(part, relation)
        found = next((each for each, other in columns.items() if other.tree == expression.tree), None)
        if found is None:
            found = f"_rank{len(columns)}"
            columns[found] = expression
        return found

    partition = tuple(place(part) for part in node.args.get("partition_by") or ())
    if not partition:
        columns["_all"] = lit(0)
        partition = ("_all",)
    order = []
    for part in node.args["order"].expressions:
        check_parts(part, frozenset({"this", "desc", "nulls_first"}))
        order.append((place(part.this), "descending" if part.args.get("desc") else "ascending"))
    return Ranked(partition, tuple(order), name)


def first_rows(query: Translation, relation: Relation, condition: exp.Expr) -> Relation | None:
    """Return the rows whose rank a condition bounds, `rank <= n`; None for a condition about anything else."""
    ranked = relation.ranked
    assert ranked is not None
    if not isinstance(condition, exp.LTE | exp.LT | exp.EQ) or not isinstance(condition.this, exp.Column):
        return None
    if sql_name(condition.this) != ranked.rank or not isinstance(condition.expression, exp.Literal):
        return None
    count = int(condition.expression.name) - isinstance(condition, exp.LT)
    if isinstance(condition, exp.EQ) and count != 1:
        raise refusal(condition, "a rank can only be bounded: WHERE rank <= n")
    if count < 1:
        raise refusal(condition, "no row has such a rank")
    if relation.updates is not None:
        raise refusal(condition, "rows that are updated can't be ranked")
    columns = [name for name in relation.columns.types if name not in ranked.partition]
    best = _first(count, relation, ranked, columns)
    query.notes.append(f"the first {count} rows of each {', '.join(ranked.partition)} are kept for ever, and updated")
    position = "_rank" if ranked.rank not in relation.names else ranked.rank
    stream = relation.stream.key_by(*ranked.partition).aggregate(_rows=best).explode("_rows", position=position)
    names = {**relation.names, ranked.rank: position}
    return replace(relation, stream=stream, names=names, times={}, bounds=None, ranked=None)


def _first(count: int, relation: Relation, ranked: Ranked, columns: list[str]) -> AggregateFunction:
    """Return the aggregate of the first rows. Of equal event times the row that arrived last, or first, as Flink's deduplication."""
    (column, direction), *others = ranked.order
    if count > 1 or others or relation.times.get(column) != 0:
        return top(count, list(ranked.order), columns=columns)
    falls = direction == "descending"
    return Top(Order(((column, falls),), 1, of_equal="last" if falls else "first"), tuple(columns))
