"""Types by name, as users write them in `schema=` and `cast`: Arrow's names, and Python's own types.

>>> type_named("decimal128(10, 2)"), type_named("list<struct<a: int64, b: timestamp[us, tz=UTC]>>")
(Decimal128Type(decimal128(10, 2)), ListType(list<item: struct<a: int64, b: timestamp[us, tz=UTC]>>))
>>> type_named(float), type_named("map<string, int64>")
(DataType(double), MapType(map<string, int64>))
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

_PYTHON = {
    int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_(), bytes: pa.binary(), date: pa.date32(),
    datetime: pa.timestamp("us"), time: pa.time64("us"), timedelta: pa.duration("us"), Decimal: pa.decimal128(38, 18),
}  # fmt: skip

_NAMES = (
    "int8 to int64, uint8 to uint64, float32, float64, bool, string, large_string, binary, date32, time64[us], timestamp[us], "
    "timestamp[us, UTC], duration[us] (units s, ms, us, ns), decimal128(10, 2), list<int64>, struct<a: int64, b: string>, "
    "map<string, int64>"
)

_TOKEN = re.compile(r"\s*([A-Za-z_][\w./+-]*|[0-9]+|[+-][0-9:]+|[<>(),:\[\]=])")
_DECIMALS = {
    "decimal": pa.decimal128, "decimal32": pa.decimal32, "decimal64": pa.decimal64, "decimal128": pa.decimal128,
    "decimal256": pa.decimal256,
}  # fmt: skip
_TIMES = {"timestamp": pa.timestamp, "duration": pa.duration, "time32": pa.time32, "time64": pa.time64}
_LISTS = {"list": pa.list_, "large_list": pa.large_list}
_ALIASES = {"bytes": pa.binary(), "str": pa.string(), "decimal": pa.decimal128(38, 18)}


def type_named(kind: Any) -> pa.DataType:
    """Return the Arrow type for a type, a name or a Python type. Raises ValueError, which lists the names, for anything else.

    An `int` is int64, a `float` float64, a `datetime` a timestamp in microseconds without a zone, a `Decimal` decimal128(38, 18).
    """
    if isinstance(kind, pa.DataType):
        return kind
    if isinstance(kind, str):
        return _Parser(kind).parsed()
    if isinstance(kind, type) and kind in _PYTHON:
        return _PYTHON[kind]
    shown = kind.__name__ if isinstance(kind, type) else f"{kind!r:.200}"
    raise ValueError(f"{shown} is no type of a column; use one of {', '.join(each.__name__ for each in _PYTHON)}, or a name: {_NAMES}")


class _Parser:
    """A parser of one type name."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens = text, list[str]()
        place = 0
        while text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None:
                raise self._unknown()
            self._tokens.append(found[1])
            place = found.end()

    def parsed(self) -> pa.DataType:
        kind = self._type()
        if self._tokens:
            raise self._unknown()
        return kind

    def _type(self) -> pa.DataType:
        name = self._next()
        if name in _DECIMALS and self._peek() == "(":
            return self._decimal(name)
        if name in _TIMES and self._peek() == "[":
            return self._time(name)
        if name in ("date32", "date64") and self._peek() == "[":  # Arrow shows date32[day]
            self._tokens[:3] = []
        if name == "fixed_size_binary" and self._peek() == "[":
            self._take("[")
            size = self._number()
            self._take("]")
            return pa.binary(size)
        if name in _LISTS and self._peek() == "<":
            return self._list(name)
        if name == "struct" and self._peek() == "<":
            return self._struct()
        if name == "map" and self._peek() == "<":
            self._take("<")
            key = self._type()
            self._take(",")
            item = self._type()
            self._take(">")
            return pa.map_(key, item)
        try:
            return _ALIASES[name] if name in _ALIASES else pa.type_for_alias(name)
        except ValueError as error:
            raise self._unknown() from error

    def _decimal(self, name: str) -> pa.DataType:
        self._take("(")
        precision, scale = self._number(), 0
        if self._peek() == ",":
            self._take(",")
            scale = self._number()
        self._take(")")
        try:
            return _DECIMALS[name](precision, scale)
        except ValueError as error:
            raise ValueError(f"type {self._text!r}: {error}") from error

    def _time(self, name: str) -> pa.DataType:
        self._take("[")
        unit, zone = self._next(), None
        if self._peek() == "," and name == "timestamp":
            self._take(",")
            if self._peek() == "tz":
                self._take("tz")
                self._take("=")
            zone = self._next()
        self._take("]")
        try:
            return pa.timestamp(unit, zone) if name == "timestamp" else _TIMES[name](unit)
        except ValueError as error:
            raise self._unknown() from error

    def _list(self, name: str) -> pa.DataType:
        self._take("<")
        if self._tokens[1:2] == [":"]:  # Arrow names the values of a list: list<item: int64>
            self._next()
            self._take(":")
        kind = self._type()
        self._take(">")
        return _LISTS[name](kind)

    def _struct(self) -> pa.DataType:
        self._take("<")
        fields = list[tuple[str, pa.DataType]]()
        while self._peek() != ">":
            if fields:
                self._take(",")
            name = self._next()
            self._take(":")
            fields.append((name, self._type()))
        self._take(">")
        return pa.struct(fields)

    def _peek(self) -> str | None:
        return self._tokens[0] if self._tokens else None

    def _next(self) -> str:
        if not self._tokens:
            raise self._unknown()
        return self._tokens.pop(0)

    def _take(self, expected: str) -> None:
        if self._next() != expected:
            raise self._unknown()

    def _number(self) -> int:
        text = self._next()
        if not text.isdecimal():
            raise self._unknown()
        return int(text)

    def _unknown(self) -> ValueError:
        return ValueError(f"type {self._text!r} is unknown; there are: {_NAMES}")
