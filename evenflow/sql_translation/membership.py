"""IN and EXISTS with a query: joins that keep the rows of one side that have a partner, or those that have none."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from .columns import free_name
from .conditions import conjuncts, tables_of
from .joins import StreamJoin, equal_columns
from .refusals import check_parts, refusal
from .relation import Relation
from .translation import Translation

_INNER = "_in"
"""The alias of the query in IN."""


def is_membership(condition: exp.Expr) -> bool:
    """Return True for IN and EXISTS with a query, and their negation."""
    tested = _without_not(condition)
    return isinstance(tested, exp.Exists) or (isinstance(tested, exp.In) and tested.args.get("query") is not None)


def members(query: Translation, left: Relation, condition: exp.Expr) -> Relation:
    """Return the rows of left for which the condition is true."""
    tested = _without_not(condition)
    if isinstance(tested, exp.In):
        if tested is not condition:
            raise refusal(condition, "it is never true if the query has a null; write NOT EXISTS (SELECT 1 FROM ... WHERE ... = ...)")
        return _in(query, left, tested)
    return _existing(query, left, tested, condition, "semi" if tested is condition else "anti")


def _without_not(condition: exp.Expr) -> exp.Expr:
    return condition.this.unnest() if isinstance(condition, exp.Not) else condition


def _in(query: Translation, left: Relation, condition: exp.In) -> Relation:
    check_parts(condition, frozenset({"this", "query"}))
    inner = condition.args["query"].unnest()
    if len(inner.selects) != 1:
        raise refusal(condition, "the query has more than one column")
    right = query.source(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(_INNER))), joined=True)
    (theirs,) = right.names.values()
    ours = free_name("_tested", left.columns.types)
    tested = left.of_stream(left.stream.with_columns({ours: query.expression(condition.this, left)}))
    found = StreamJoin(query, condition, _INNER, "semi").of(tested, right, [(ours, theirs)], [])
    return found.of_stream(found.stream.drop(ours))


def _existing(query: Translation, left: Relation, exists: exp.Expr, condition: exp.Expr, how: Any) -> Relation:
    inner = exists.this.unnest()
    if not isinstance(inner, exp.Select) or any(inner.args.get(part) for part in ("joins", "group", "having", "distinct")):
        raise refusal(condition, "EXISTS takes SELECT ... FROM table WHERE ...; write the rest as a query in its FROM")
    check_parts(inner, frozenset({"expressions", "from_", "where", "kind"}))
    if inner.args.get("from_") is None:
        raise refusal(condition, "a query needs FROM")
    source = inner.args["from_"].this
    right = query.source(source, joined=True)
    conditions = conjuncts(inner.args.get("where"))
    for each in [each for each in conditions if tables_of(each) <= {source.alias_or_name}]:
        conditions.remove(each)
        right = query.filtered(right, each)
    pairs = [(each, found) for each in conditions if (found := equal_columns(each, left, right)) is not None]
    rest = [each for each in conditions if not any(each is one for one, _ in pairs)]
    return StreamJoin(query, condition, source.alias_or_name, how).of(left, right, [found for _, found in pairs], rest)
