"""Refusals of SQL: every part of a statement is either translated or named in an error. No clause is dropped."""

from __future__ import annotations

from sqlglot import exp

from ..engine.errors import FlowError
from .dialect import text_of


def refusal(node: exp.Expr, advice: str) -> FlowError:
    """Return the error that shows the part of the statement and says what to write instead."""
    return FlowError(f"SQL: {text_of(node):.300}: {advice}")


def check_parts(node: exp.Expr, read: frozenset[str]) -> None:
    """Raise FlowError for a part of the node that isn't among those that the caller reads."""
    for name, value in node.args.items():
        if name not in read and value not in (None, False, []):
            shown = name.strip("_").replace("_", " ").upper()
            raise refusal(node, f"{shown} isn't supported here; remove it, or do it with the methods of the stream")
