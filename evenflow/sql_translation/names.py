"""Resolution of names by sqlglot's optimizer: columns get their tables, `*` its columns, and unused columns of subqueries go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.qualify import qualify

from ..engine.errors import FlowError
from .dialect import DIALECT, text_of
from .refusals import check_parts


def resolved(tree: exp.Expr, columns: Mapping[str, Sequence[str]]) -> exp.Expr:
    """Return the query with resolved names. Raises FlowError for an unknown or ambiguous name."""
    tree = _without_ctes(tree)
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
