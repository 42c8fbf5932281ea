"""Resolution of names by sqlglot's optimizer: columns get their tables, `*` its columns, and unused columns of subqueries go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.qualify import qualify

from ..engine.errors import FlowError
from .dialect import DIALECT, text_of
from .refusals import check_parts


def resolved(tree: exp.Expr, columns: Mapping[str, Sequence[str]], partly: Collection[str] = ()) -> exp.Expr:
    """Return the query with resolved names. `partly`: the streams that may have other columns than these.

    Raises FlowError for an unknown or ambiguous name, and for all columns of a stream that may have others.
    """
    tree = _without_ctes(tree)
    for select in tree.find_all(exp.Select):
        unknown = next((name for name in _tables(select) if name in partly), None)
        if unknown is not None and (star := _star(select)) is not None and _shows_all(select):
            there = ", ".join(columns[unknown])
            raise FlowError(f"SQL: {text_of(star)}: `{unknown}` may have columns besides {there}: name those that the query reads")
    for table in tree.find_all(exp.Table):
        if table.name not in columns:
            raise FlowError(f"SQL: there is no stream or table `{table.name}`; there are: {', '.join(columns)}")
    known: dict[str, object] = {name: dict.fromkeys(names, "unknown") for name, names in columns.items()}
    try:
        tree = qualify(tree, schema=known, dialect=DIALECT, quote_identifiers=False, identify=False)
        return pushdown_projections(tree)
    except SqlglotError as error:
        listed = "; ".join(f"{name} has {', '.join(names)}" for name, names in columns.items())
        raise FlowError(f"SQL: {error}; {listed}") from error


def _star(select: exp.Select) -> exp.Expr | None:
    """Return the first `*` or `t.*` of a query."""
    columns = (each for each in select.expressions if isinstance(each, exp.Star | exp.Column))
    return next((each for each in columns if isinstance(each, exp.Star) or isinstance(each.this, exp.Star)), None)


def _shows_all(select: exp.Select) -> bool:
    """Return True if all columns of a query count. Those that no query around it names go."""
    around = select.parent
    inner = isinstance(around, exp.Subquery) and isinstance(around.parent, exp.From | exp.Join)
    outer = around.parent_select if inner and around is not None else None
    if select.args.get("distinct") or (outer is None and not isinstance(around, exp.Exists)):
        return True
    return outer is not None and _star(outer) is not None and _shows_all(outer)


def _tables(select: exp.Select) -> list[str]:
    """Return the names of the tables in FROM."""
    clause = select.args.get("from_")
    nodes = [*([clause.this] if clause is not None else []), *(join.this for join in select.args.get("joins") or ())]
    return [node.name for node in nodes if isinstance(node, exp.Table)]


def _without_ctes(tree: exp.Expr) -> exp.Expr:
    """Replace the names of WITH by their queries."""
    clause = tree.args.get("with_") or tree.args.get("with")
    if clause is None:
        return tree
    check_parts(clause, frozenset({"expressions"}))
    views: dict[str, exp.Expr] = {}
    for each in clause.expressions:
        check_parts(each, frozenset({"this", "alias"}))
        if each.args["alias"].columns:
            raise FlowError(f"SQL: {text_of(each.args['alias'])}: name the columns inside of the query")
        views[each.alias] = inlined(each.this, views)
    clause.pop()
    return inlined(tree, views)


def inlined(tree: exp.Expr, views: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return the query with the names of views replaced by their queries."""
    for table in list(tree.find_all(exp.Table)):
        if table.name in views:
            alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
            table.replace(exp.Subquery(this=views[table.name].copy(), alias=alias))
    return tree
