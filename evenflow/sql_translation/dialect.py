"""The dialect: Flink's SQL, read by sqlglot's parser for Hive, which is closest to it.

Flink's window functions become columns `WSTART(...)` and `WEND(...)` of a subquery, before names are resolved.

>>> (query,) = parsed("SELECT n FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))")
>>> text_of(query)
"SELECT n FROM (SELECT *, WSTART('TUMBLE', ts, 10000000) AS window_start, WEND('TUMBLE', ts, 10000000) AS window_end FROM bid)"
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.dialects.dialect import NormalizationStrategy
from sqlglot.dialects.hive import Hive
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from ..engine.errors import FlowError


class Flink(Hive):
    """Hive's dialect with names that differ by case, and a CAST that fails for a value that doesn't fit."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE

    class Parser(Hive.Parser):  # type: ignore[misc, valid-type]
        """Hive's parser, to which CAST is TRY_CAST, made strict."""

        STRICT_CAST = True


DIALECT = Flink()

WINDOWS = ("TUMBLE", "HOP", "SESSION", "CUMULATE")
"""Flink's window functions."""

MICROSECONDS = {"MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000, "DAY": 86_400_000_000}


def parsed(sql: str) -> list[exp.Expr]:
    """Return the statements of a text. Raises FlowError for a text that is no SQL."""
    if not isinstance(sql, str) or not sql.strip():
        example = 'sql("SELECT k, COUNT(*) AS n FROM clicks GROUP BY k", clicks=clicks)'
        raise FlowError(f"sql({sql!r:.200}): expected a text, for example {example}")
    return trees_of(tokens_of(sql), sql)


def tokens_of(sql: str) -> list[Token]:
    """Return the tokens of a text. Raises FlowError for one that has none."""
    try:
        return list(DIALECT.tokenize(sql))
    except SqlglotError as error:
        raise _unreadable(error) from error


def trees_of(tokens: list[Token], sql: str) -> list[exp.Expr]:
    """Return the statements of the tokens of a text. Raises FlowError for what is no SQL."""
    try:
        trees = DIALECT.parser().parse(_plain_tokens(tokens), sql)
    except SqlglotError as error:
        raise _unreadable(error) from error
    return [tree.transform(_window_function).transform(_group_window) for tree in trees if tree is not None]


def _unreadable(error: SqlglotError) -> FlowError:
    return FlowError(f"SQL: {re.sub(chr(27) + '.{1,3}m', '', str(error))}")


def text_of(node: exp.Expr) -> str:
    """Return the SQL of a part of a statement."""
    return node.sql(DIALECT, unsupported_level=ErrorLevel.IGNORE)


def microseconds(interval: exp.Expr) -> int:
    """Return the length of `INTERVAL '10' SECOND`. Raises FlowError for anything else, and for months and years."""
    unit = interval.unit.name.upper().removesuffix("S") if isinstance(interval, exp.Interval) and interval.unit is not None else ""
    try:
        return round(float(interval.this.name) * MICROSECONDS[unit])
    except (KeyError, ValueError, AttributeError):
        raise FlowError(f"SQL: {text_of(interval)}: expected an interval of fixed length, such as INTERVAL '10' SECOND") from None


def _plain_tokens(tokens: list[Token]) -> list[Token]:
    """Rewrite what Hive doesn't have: `TABLE(TUMBLE(TABLE bid, ...))`, SESSION as a function, ROW<...>."""
    gone = _table_words(tokens)
    kinds = {TokenType.SESSION: TokenType.VAR, TokenType.ROW: TokenType.STRUCT}
    plain: list[Token] = []
    partitioned = False
    for at, token in enumerate(tokens):
        if at in gone:
            continue
        if token.token_type == TokenType.PARTITION_BY and at >= 2 and at - 2 in gone:
            plain += [_like(token, TokenType.COMMA, ","), _like(token, TokenType.VAR, "PARTITIONS"), _like(token, TokenType.L_PAREN, "(")]
            partitioned = True
        elif partitioned and token.token_type == TokenType.COMMA and tokens[at + 1].text.upper() == "DESCRIPTOR":
            plain += [_like(token, TokenType.R_PAREN, ")"), token]
            partitioned = False
        else:
            plain.append(_like(token, kinds.get(token.token_type, token.token_type), token.text))
    return plain


def _table_words(tokens: list[Token]) -> set[int]:
    """Return the places of the word TABLE around and in window functions, with its parentheses."""
    gone: set[int] = set()
    texts = [token.text.upper() for token in tokens] + ["", ""]
    for at, token in enumerate(tokens):
        if token.token_type != TokenType.TABLE:
            continue
        if at >= 2 and texts[at - 1] == "(" and texts[at - 2] in WINDOWS:
            gone.add(at)
        elif texts[at + 1] == "(" and texts[at + 2] in WINDOWS:
            depth, end = 1, at + 2
            while depth and end < len(tokens):
                depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[end].token_type, 0)
                end += 1
            gone |= {at, at + 1, end - 1}
    return gone


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


def _bounds(kind: str, time: exp.Expr, sizes: list[int], by: list[exp.Expr] | None = None) -> list[exp.Expr]:
    """Return a window's start and end as calls. `by`: the partition of a table function's sessions, None for those of GROUP BY."""
    whose = [] if by is None else [exp.Tuple(expressions=[part.copy() for part in by])]
    return [
        exp.Anonymous(this=name, expressions=[exp.Literal.string(kind), time.copy(), *map(exp.Literal.number, sizes), *whose])
        for name in ("WSTART", "WEND")
    ]


def _window_function(node: exp.Expr) -> exp.Expr:
    """Turn a window function in FROM into a subquery with the columns window_start and window_end."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Anonymous) or node.this.name.upper() not in WINDOWS:
        return node
    kind, (source, *arguments) = node.this.name.upper(), node.this.expressions
    if kind == "CUMULATE":
        raise FlowError('SQL: CUMULATE isn\'t supported: use TUMBLE, or .window(...).aggregate(emit="update") for early results')
    named = {part.name.upper(): part.expressions for part in arguments if isinstance(part, exp.Anonymous)}
    lengths = [microseconds(part) for part in arguments if not isinstance(part, exp.Anonymous)]
    if len(named.get("DESCRIPTOR", ())) != 1 or named.keys() - {"DESCRIPTOR", "PARTITIONS"}:
        raise FlowError(f"SQL: {text_of(node.this)}: expected {kind}(TABLE t, DESCRIPTOR(event_time), INTERVAL ...)")
    _check_lengths(kind, lengths, node.this)
    by = named.get("PARTITIONS", []) if kind == "SESSION" else None
    if kind != "SESSION" and "PARTITIONS" in named:
        raise FlowError(f"SQL: {text_of(node.this)}: PARTITION BY belongs to SESSION; name the columns in GROUP BY")
    start, end = _bounds(kind, named["DESCRIPTOR"][0], lengths, by)
    source = exp.Table(this=source.this) if isinstance(source, exp.Column) else source
    windows = exp.select("*", exp.alias_(start, "window_start"), exp.alias_(end, "window_end")).from_(source)
    return exp.Subquery(this=windows, alias=node.args.get("alias"))


def _check_lengths(kind: str, lengths: list[int], node: exp.Expr) -> None:
    wanted = {"TUMBLE": 1, "HOP": 2, "SESSION": 1}[kind]
    if len(lengths) != wanted or min(lengths) <= 0:
        counts = {"TUMBLE": "one interval", "HOP": "two intervals, the slide and the size", "SESSION": "one interval, the gap"}
        raise FlowError(f"SQL: {text_of(node)}: expected {counts[kind]}, longer than zero")


def _group_window(node: exp.Expr) -> exp.Expr:
    """Turn `GROUP BY SESSION(ts, ...)`, and `SESSION_START(ts, ...)` in the same query, into the bounds of the window."""
    if isinstance(node, exp.Group):
        items: list[exp.Expr] = []
        for item in node.expressions:
            items += _of_group(item.name.upper(), item) if isinstance(item, exp.Anonymous) and item.name.upper() in WINDOWS else [item]
        node.set("expressions", items)
    if isinstance(node, exp.Anonymous) and (found := re.fullmatch("(TUMBLE|HOP|SESSION)_(START|END)", node.name.upper())):
        return _of_group(found[1], node)[found[2] == "END"]
    return node


def _of_group(kind: str, node: exp.Expr) -> list[exp.Expr]:
    if kind == "CUMULATE":
        raise FlowError("SQL: CUMULATE isn't supported: use TUMBLE")
    time, *intervals = node.expressions
    lengths = [microseconds(each) for each in intervals]
    _check_lengths(kind, lengths, node)
    return _bounds(kind, time, lengths)
