"""Conditions as lists of parts that all must be true, and what these say about two sides of a join."""

from __future__ import annotations

from sqlglot import exp


def conjuncts(clause: exp.Expr | None) -> list[exp.Expr]:
    """Return the parts of WHERE or ON that must all be true; BETWEEN is two of them."""
    if clause is None:
        return []
    tree = clause.this if isinstance(clause, exp.Where | exp.Having) else clause
    found: list[exp.Expr] = []
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        inner = part.unnest()
        if isinstance(inner, exp.And):
            found += conjuncts(inner)
        elif isinstance(inner, exp.Between) and not any(inner.args.get(name) for name in ("symmetric",)):
            found.append(exp.GTE(this=inner.this.copy(), expression=inner.args["low"].copy()))
            found.append(exp.LTE(this=inner.this.copy(), expression=inner.args["high"].copy()))
        else:
            found.append(inner)
    return found


def tables_of(condition: exp.Expr) -> set[str]:
    """Return the tables whose columns a condition reads."""
    return {column.table for column in condition.find_all(exp.Column)}
