"""The functions of SQL, by the node that sqlglot's parser makes of a call, or by name where it knows none.

>>> from ..engine.expressions.expression import col
>>> FUNCTIONS[exp.Upper].make(col("name"))
name.str.upper()
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from sqlglot import exp

from ..engine.errors import FlowError
from ..engine.expressions.expression import Expression, lit, when
from ..engine.expressions.trees.tree import Literal
from .formats import python_format


@dataclass(frozen=True, slots=True)
class Function:
    """A function: `make` gets the expressions of the node's `parts`, None for absent ones. Parts that are `ignored` say nothing new."""

    make: Callable[..., Any]
    parts: tuple[str, ...] = ("this",)
    ignored: frozenset[str] = frozenset()


def constant(value: Any, what: str) -> Any:
    """Return the Python value of a literal. Raises FlowError for a value that differs by row."""
    if isinstance(value, Expression) and isinstance(value.tree, Literal):
        return value.tree.value.as_py()
    raise FlowError(f"SQL: {value!r}: {what} must be a constant")


def divided(left: Expression, right: Expression) -> Expression:
    """Divide as SQL does."""
    return left.call("truncdiv", right)


def _remainder(left: Expression, right: Expression) -> Expression:
    return left.call("rem", right)


def _not_in_order(*values: Expression) -> Expression:
    return reduce(lambda a, b: a.fill_null(b), values)


def _length(text: Expression) -> Expression:
    return text.str.len_chars()


def _replaced(text: Expression, old: Expression, new: Expression | None) -> Expression:
    found, value = constant(old, "the text to replace"), "" if new is None else constant(new, "the replacement")
    return text.str.replace_all(found, value, literal=True)


def _extracted(text: Expression, pattern: Expression, group: Expression | None) -> Expression:
    return text.str.extract(constant(pattern, "the pattern"), 1 if group is None else constant(group, "the group"))


def _like(text: Expression, pattern: Expression, negated: bool | None) -> Expression:
    parts = {"%": ".*", "_": "."}
    form = "".join(parts.get(letter, re.escape(letter)) for letter in constant(pattern, "the pattern of LIKE"))
    found = text.str.contains(f"(?s)^{form}$")
    return ~found if negated else found


def _substring(text: Expression, start: Expression, length: Expression | None) -> Expression:
    first = constant(start, "the start of SUBSTRING")
    count = None if length is None else constant(length, "the length of SUBSTRING")
    return text.str.slice(first - 1 if first > 0 else first, count)


def _concatenated(texts: list[Expression], *_: Any) -> Expression:
    return reduce(lambda a, b: a + b, texts)


def _rounded(number: Expression, decimals: Expression | None) -> Expression:
    return number.round(0 if decimals is None else constant(decimals, "the number of decimals"))


def _formatted(time: Expression, form: Expression) -> Expression:
    return time.dt.strftime(python_format(constant(form, "the format")))


def _split_index(text: Expression, separator: Expression, index: Expression) -> Expression:
    return text.call("str.split_part", constant(separator, "the separator"), constant(index, "the index"))


def _truncated(time: Expression, unit: Expression) -> Expression:
    steps = {"YEAR": "1y", "QUARTER": "1q", "MONTH": "1mo", "WEEK": "1w", "DAY": "1d", "HOUR": "1h", "MINUTE": "1m", "SECOND": "1s"}
    name = str(constant(unit, "the unit")).upper()
    if name not in steps:
        raise FlowError(f"SQL: the unit {name} is unknown; there are: {', '.join(steps)}")
    return time.dt.truncate(steps[name])


def _extract(unit: Any, time: Expression) -> Expression:
    parts = {
        "YEAR": "year", "QUARTER": "quarter", "MONTH": "month", "WEEK": "week", "DAY": "day", "DOY": "ordinal_day", "HOUR": "hour",
        "MINUTE": "minute", "SECOND": "second",
    }  # fmt: skip
    name = str(constant(unit, "the unit")).upper()
    if name not in parts:
        raise FlowError(f"SQL: EXTRACT({name} ...): the unit is unknown; there are: {', '.join(parts)}")
    return time.call(f"dt.{parts[name]}")


def _both(name: str) -> Function:
    return Function(lambda left, right: left.call(name, right), ("this", "expression"))


def _part(name: str) -> Function:
    return Function(lambda time: time.call(f"dt.{name}"))


FUNCTIONS: Mapping[type, Function] = {
    exp.Add: _both("add"),
    exp.Sub: _both("sub"),
    exp.Mul: _both("mul"),
    exp.Div: Function(divided, ("this", "expression"), frozenset({"typed", "safe"})),
    exp.Mod: Function(_remainder, ("this", "expression")),
    exp.Neg: Function(lambda value: -value),
    exp.EQ: _both("eq"),
    exp.NEQ: _both("ne"),
    exp.LT: _both("lt"),
    exp.LTE: _both("le"),
    exp.GT: _both("gt"),
    exp.GTE: _both("ge"),
    exp.And: _both("and"),
    exp.Or: _both("or"),
    exp.Not: Function(lambda value: ~value),
    exp.Abs: Function(lambda value: value.abs()),
    exp.Round: Function(_rounded, ("this", "decimals")),
    exp.Floor: Function(lambda value: value.floor()),
    exp.Ceil: Function(lambda value: value.ceil()),
    exp.Sqrt: Function(lambda value: value.sqrt()),
    exp.Exp: Function(lambda value: value.exp()),
    exp.Ln: Function(lambda value: value.log()),
    exp.Pow: _both("pow"),
    exp.Lower: Function(lambda text: text.str.lower()),
    exp.Upper: Function(lambda text: text.str.upper()),
    exp.Length: Function(_length),
    exp.Trim: Function(lambda text: text.str.strip_chars(" ")),
    exp.Replace: Function(_replaced, ("this", "expression", "replacement")),
    exp.RegexpExtract: Function(_extracted, ("this", "expression", "group"), frozenset({"null_if_pos_overflow"})),
    exp.RegexpLike: Function(lambda text, pattern: text.str.contains(constant(pattern, "the pattern")), ("this", "expression")),
    exp.Like: Function(_like, ("this", "expression", "negate")),
    exp.StartsWith: Function(lambda text, prefix: text.str.starts_with(constant(prefix, "the prefix")), ("this", "expression")),
    exp.Substring: Function(_substring, ("this", "start", "length")),
    exp.Concat: Function(_concatenated, ("expressions",), frozenset({"safe", "coalesce"})),
    exp.DPipe: Function(lambda left, right: left + right, ("this", "expression"), frozenset({"safe"})),
    exp.Coalesce: Function(lambda first, others: _not_in_order(first, *others), ("this", "expressions"), frozenset({"is_nvl", "is_null"})),
    exp.Nullif: Function(lambda value, other: when(value == other).then(lit(None)).otherwise(value), ("this", "expression")),
    exp.Extract: Function(_extract, ("this", "expression")),
    exp.Year: _part("year"),
    exp.Quarter: _part("quarter"),
    exp.Month: _part("month"),
    exp.Week: _part("week"),
    exp.Day: _part("day"),
    exp.DayOfMonth: _part("day"),
    exp.DayOfYear: _part("ordinal_day"),
    exp.Hour: _part("hour"),
    exp.Minute: _part("minute"),
    exp.Second: _part("second"),
    exp.TimeToStr: Function(_formatted, ("this", "format")),
    exp.TsOrDsToTimestamp: Function(lambda time: time),
    exp.TimeStrToTime: Function(lambda time: time),
    exp.TsOrDsToDate: Function(lambda time: time.dt.date()),
    exp.Date: Function(lambda time: time.dt.date()),
    exp.TimestampTrunc: Function(_truncated, ("this", "unit")),
    exp.DateTrunc: Function(_truncated, ("this", "unit")),
}
"""The functions that sqlglot's parser knows."""

CALLED: Mapping[str, Callable[..., Expression]] = {
    "CHAR_LENGTH": _length,
    "SPLIT_INDEX": _split_index,
}
"""The functions that it parses as calls by name."""
