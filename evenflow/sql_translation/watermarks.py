"""WATERMARK FOR in CREATE TABLE, which sqlglot doesn't parse: taken out of the tokens before the rest is parsed.

>>> from .dialect import DIALECT
>>> tokens = DIALECT.tokenize("CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)")
>>> rest, found = without_watermarks(tokens)
>>> found, [token.text for token in rest][-5:]
({'t': Watermark(column='ts', delay=5000000)}, ['TIMESTAMP', '(', '3', ')', ')'])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from ..engine.errors import FlowError
from .dialect import MICROSECONDS


@dataclass(frozen=True, slots=True)
class Watermark:
    """The event time of a table: its column, and how many microseconds a row may be late."""

    column: str
    delay: int


def without_watermarks(tokens: Sequence[Token]) -> tuple[list[Token], dict[str, Watermark]]:
    """Return the other tokens, and the watermark of each table by its name. Raises FlowError for an expression that isn't a delay."""
    rest: list[Token] = []
    found: dict[str, Watermark] = {}
    table, at = "", 0
    while at < len(tokens):
        token = tokens[at]
        if token.token_type == TokenType.TABLE:
            table = next((each.text for each in tokens[at + 1 :] if each.text.upper() not in ("IF", "NOT", "EXISTS")), "")
        if token.text.upper() != "WATERMARK" or at + 1 >= len(tokens) or tokens[at + 1].text.upper() != "FOR":
            rest.append(token)
            at += 1
            continue
        end = _end(tokens, at)
        found[table] = _watermark(tokens[at + 2 : end])
        if rest and rest[-1].token_type == TokenType.COMMA:
            rest.pop()
        at = end
    return rest, found


def _end(tokens: Sequence[Token], at: int) -> int:
    """Return the place of the comma or parenthesis behind the clause."""
    depth = 0
    while at < len(tokens):
        kind = tokens[at].token_type
        if depth == 0 and kind in (TokenType.COMMA, TokenType.R_PAREN):
            return at
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
        at += 1
    return at


def _watermark(tokens: Sequence[Token]) -> Watermark:
    words = [token.text for token in tokens]
    match [word.upper() if place else word for place, word in enumerate(words)]:
        case [column, "AS", again] if again == column.upper():
            return Watermark(column, 0)
        case [column, "AS", again, "-", "INTERVAL", length, unit] if again == column.upper() and unit.rstrip("S") in MICROSECONDS:
            return Watermark(column, round(float(length) * MICROSECONDS[unit.rstrip("S")]))
    raise FlowError(f"SQL: WATERMARK FOR {' '.join(words)}: expected WATERMARK FOR ts AS ts, or AS ts - INTERVAL '5' SECOND")
