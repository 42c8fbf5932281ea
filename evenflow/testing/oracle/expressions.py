"""Expressions in plain Python, a row at a time, for the oracle: int64, float64, decimals, texts, booleans and times in microseconds.

>>> from ...engine.expressions.expression import col, when
>>> value_of((col("a") // 2 + 1).tree, {"a": -3})
-1
>>> value_of(when(col("b") != 0).then(col("a") // col("b")).otherwise(None).tree, {"a": 7, "b": 0}) is None
True
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

from ...engine.expressions.trees.tree import Call, Column, Literal, Tree

_EXACT: Final = Context(prec=200)
_WHOLE: Final = range(-(2**63), 2**63)
_DIGITS: Final = 38


class NoValueError(ArithmeticError):
    """The error of an expression that has no value for a row."""


def value_of(tree: Tree, row: Mapping[str, Any]) -> Any:
    """Return the value of the expression for a row. Raises NoValueError where a job must end."""
    if isinstance(tree, Column):
        return row[tree.name]
    if isinstance(tree, Literal):
        return tree.value.as_py()
    if tree.name == "case":
        return _chosen(tree, row)
    values = [value_of(argument, row) for argument in tree.arguments]
    if tree.name in _OF_NULLS:
        return _OF_NULLS[tree.name](*values)
    if tree.name == "cast":
        return _cast(values[0], str(tree.arguments[1].value.type) if isinstance(tree.arguments[1], Literal) else "")
    return None if values[0] is None or (tree.name in _BINARY and values[1] is None) else _FUNCTIONS[tree.name](*values)


def is_true(tree: Tree, row: Mapping[str, Any]) -> bool:
    """Return True if the condition is true for a row: null is not."""
    return value_of(tree, row) is True


def _chosen(tree: Call, row: Mapping[str, Any]) -> Any:
    *pairs, other = tree.arguments
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        if is_true(condition, row):
            return value_of(value, row)
    return value_of(other, row)


def _arithmetic(whole: Callable[[Any, Any], Any], exact: Callable[[Decimal, Decimal], Decimal]) -> Callable[[Any, Any], Any]:
    def calculate(a: Any, b: Any) -> Any:
        if isinstance(a, float) or isinstance(b, float):
            return whole(float(a), float(b))
        if isinstance(a, Decimal) or isinstance(b, Decimal):
            return _checked_decimal(exact(Decimal(a), Decimal(b)))
        try:
            return _checked(whole(a, b))
        except OverflowError as error:
            raise NoValueError("overflow") from error

    return calculate


def _checked(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and value not in _WHOLE:
        raise NoValueError("overflow")
    return value


def _checked_decimal(value: Decimal) -> Decimal:
    if len(value.as_tuple().digits) > _DIGITS:
        raise NoValueError("overflow")
    return value


def _divided(a: Any, b: Any) -> float:
    if b == 0 and not (isinstance(a, float) or isinstance(b, float)):
        raise NoValueError("division by zero")
    left, right = float(a), float(b)
    if right:
        return left / right
    return math.nan if math.isnan(left) or left == 0 else math.copysign(math.inf, left) * math.copysign(1, right)


def _rounding_down(function: Callable[[Any, Any], Any], of_zero: Callable[[float, float], float]) -> Callable[[Any, Any], Any]:
    def calculate(a: Any, b: Any) -> Any:
        if isinstance(a, float) or isinstance(b, float):
            return function(float(a), float(b)) if b else of_zero(float(a), float(b))
        if b == 0:
            raise NoValueError("division by zero")
        return _checked(function(a, b))

    return calculate


def _order(a: Any, b: Any) -> int:
    """Compare: -1, 0 or 1. NaN equals itself and is greater than all other numbers."""
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        if math.isnan(a) or math.isnan(b):
            return int(math.isnan(a)) - int(math.isnan(b))
    return int(a > b) - int(a < b)


def _both(a: Any, b: Any) -> Any:
    return False if a is False or b is False else None if a is None or b is None else True


def _either(a: Any, b: Any) -> Any:
    return True if a is True or b is True else None if a is None or b is None else False


def _is_in(value: Any, options: list[Any]) -> Any:
    if any(option is not None and _order(value, option) == 0 for option in options):
        return True
    return None if None in options else False


def _rounded(value: Any, decimals: int) -> Any:
    return value if isinstance(value, float) and not math.isfinite(value) else type(value)(round(value, decimals))


def _cast(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "int64":
        if value != value or value != math.floor(value):  # noqa: PLR0124 -- NaN
            raise NoValueError("no whole number")
        return _checked(int(value))
    return {"double": float, "string": str}[kind](value)


def _truncated(value: datetime, count: int, unit: str) -> datetime:
    if unit in ("month", "year"):
        months = (value.year - 1970) * 12 + value.month - 1
        size = count * (12 if unit == "year" else 1)
        years, month = divmod(months // size * size, 12)
        return datetime(1970 + years, month + 1, 1, tzinfo=value.tzinfo)
    epoch = datetime(1970, 1, 1, tzinfo=value.tzinfo)
    step = timedelta(**{f"{unit}s": count})
    return epoch + (value - epoch) // step * step


def _sliced(text: str, offset: int, length: int | None) -> str:
    begin = max(len(text) + offset, 0) if offset < 0 else offset
    end = len(text) if length is None else offset + length if offset >= 0 else len(text) + offset + length
    return text[begin : max(end, 0)]


def _found(text: str, what: str, literal: bool) -> int | None:
    assert literal
    place = text.find(what)
    return None if place < 0 else place


_OF_NULLS: Final[dict[str, Callable[..., Any]]] = {
    "and": _both,
    "or": _either,
    "is_null": lambda value: value is None,
    "is_not_null": lambda value: value is not None,
    "fill_null": lambda value, other: other if value is None else value,
}

_BINARY: Final = frozenset({"add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne"})

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda a, b: a + b if isinstance(a, (str, datetime)) else _arithmetic(operator.add, _EXACT.add)(a, b),
    "sub": lambda a, b: a - b if isinstance(a, datetime) else _arithmetic(operator.sub, _EXACT.subtract)(a, b),
    "mul": _arithmetic(operator.mul, _EXACT.multiply),
    "truediv": _divided,
    "floordiv": _rounding_down(operator.floordiv, _divided),
    "mod": _rounding_down(operator.mod, lambda _a, _b: math.nan),
    "neg": lambda a: _checked(a.copy_negate() if isinstance(a, Decimal) else -a),
    "abs": lambda a: _checked(a.copy_abs() if isinstance(a, Decimal) else abs(a)),
    "round": _rounded,
    "lt": lambda a, b: _order(a, b) < 0,
    "le": lambda a, b: _order(a, b) <= 0,
    "gt": lambda a, b: _order(a, b) > 0,
    "ge": lambda a, b: _order(a, b) >= 0,
    "eq": lambda a, b: _order(a, b) == 0,
    "ne": lambda a, b: _order(a, b) != 0,
    "not": lambda a: not a,
    "is_nan": lambda a: isinstance(a, float) and math.isnan(a),
    "is_in": _is_in,
    "str.upper": str.upper,
    "str.lower": str.lower,
    "str.len_chars": len,
    "str.len_bytes": lambda text: len(text.encode()),
    "str.contains": lambda text, what, _literal: what in text,
    "str.starts_with": str.startswith,
    "str.ends_with": str.endswith,
    "str.find": _found,
    "str.slice": _sliced,
    "str.replace_all": lambda text, what, value, _literal: text.replace(what, value),
    "dt.year": lambda time: time.year,
    "dt.month": lambda time: time.month,
    "dt.day": lambda time: time.day,
    "dt.hour": lambda time: time.hour,
    "dt.minute": lambda time: time.minute,
    "dt.second": lambda time: time.second,
    "dt.weekday": lambda time: time.isoweekday(),
    "dt.truncate": _truncated,
    "dt.epoch": lambda time, _unit: (time - datetime(1970, 1, 1, tzinfo=UTC if time.tzinfo else None)) // timedelta(microseconds=1),
    "list.len": len,
    "list.get": lambda values, index: values[index] if -len(values) <= index < len(values) else None,
    "list.contains": lambda values, value: value in values,
    "struct.field": lambda value, name: value[name],
}
"""The functions of values that aren't null."""
