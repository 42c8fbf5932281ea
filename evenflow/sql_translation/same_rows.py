"""Two parts of FROM that have the same rows, with different columns of them.

Each has one source, so its columns are told by their names alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

PARTS = frozenset({"expressions", "from_", "where", "group", "having"})
"""The parts of a query whose rows are compared."""


def parts_of(select: exp.Select) -> set[str]:
    """Return the names of the parts that a query has."""
    return {name for name, value in select.args.items() if value not in (None, False, [])}


def window_over(node: exp.Expr) -> exp.Select | None:
    """Return the query of a window function in FROM, TUMBLE or HOP, None for anything else."""
    select = node.this if isinstance(node, exp.Subquery) else None
    if not isinstance(select, exp.Select) or parts_of(select) != {"expressions", "from_"}:
        return None
    calls = [each for each in bounds_of(select).values() if each.expressions[0].name in ("TUMBLE", "HOP")]
    plain = [item for item in select.expressions if isinstance(item.unalias(), exp.Column) and item.unalias().name == item.alias_or_name]
    there = len(calls) == 2 and len(calls) + len(plain) == len(select.expressions)
    return select if there and all(isinstance(each.expressions[1], exp.Column) for each in calls) else None


def bounds_of(window: exp.Select) -> dict[str, exp.Anonymous]:
    """Return the bounds of windows among the columns of a query, as calls, by the names of the columns."""
    found = {item.alias_or_name: item.unalias() for item in window.expressions}
    return {name: node for name, node in found.items() if isinstance(node, exp.Anonymous) and node.name in ("WSTART", "WEND")}


def merged(one: exp.Expr, two: exp.Expr, more: Iterable[str] = ()) -> exp.Subquery | None:
    """Return a query with the columns of both and the alias of `one`, None unless their rows are certainly the same.

    `more`: the columns that are read of the table `two`.
    """
    alias = one.alias_or_name
    if isinstance(one, exp.Table) and _same_table(one, two):
        select = one.parent_select
        read = {column.name for column in select.find_all(exp.Column) if column.table == alias} if select is not None else set()
        columns: list[exp.Expr] = [exp.alias_(exp.column(name, table=alias), name) for name in sorted({*read, *more})]
        return _subquery(exp.Select(expressions=columns, from_=exp.From(this=one.copy())), alias)
    if isinstance(one, exp.Subquery) and isinstance(two, exp.Subquery):
        found = _merged_queries(one.this, two.this)
        return None if found is None else _subquery(found, alias)
    return None


def _subquery(select: exp.Select, alias: str) -> exp.Subquery:
    return exp.Subquery(this=select, alias=exp.TableAlias(this=exp.to_identifier(alias)))


def _same_table(one: exp.Table, two: exp.Expr) -> bool:
    return isinstance(two, exp.Table) and one.name == two.name and not any(each.args.get("version") for each in (one, two))


def _merged_queries(one: exp.Expr, two: exp.Expr) -> exp.Select | None:
    if not isinstance(one, exp.Select) or not isinstance(two, exp.Select) or not parts_of(one) == parts_of(two) <= PARTS:
        return None
    if any(_bare(one.args.get(part)) != _bare(two.args.get(part)) for part in ("where", "group", "having")):
        return None
    source, other = one.args["from_"].this, two.args["from_"].this
    inner = one.args["from_"].this.copy() if isinstance(source, exp.Table) and _same_table(source, other) else None
    if inner is None and isinstance(source, exp.Subquery):
        inner = merged(source, other)
    columns = {item.alias_or_name: item for item in one.expressions}
    for item in two.expressions:
        ours = columns.setdefault(item.alias_or_name, item)
        if _bare(ours) is None or _bare(ours) != _bare(item):
            return None
    if inner is None:
        return None
    found = one.copy()
    found.set("from_", exp.From(this=inner))
    found.set("expressions", [item.copy() for item in columns.values()])
    for column in (column for item in found.expressions for column in item.find_all(exp.Column)):
        column.set("table", exp.to_identifier(source.alias_or_name))
    return found


def _bare(node: exp.Expr | None) -> str | None:
    """Return the SQL without the tables of its columns; None if it has a query, whose columns may be of several."""
    if node is None:
        return ""
    if node.find(exp.Query) is not None:
        return None
    bare = node.copy()
    for column in bare.find_all(exp.Column):
        column.set("table", None)
    return bare.sql()
