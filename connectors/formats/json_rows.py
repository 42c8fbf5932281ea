"""Encoding of rows as JSON objects, for the sinks that write JSON.

The standard library encodes each column at once; the objects are assembled from the values' texts.

>>> JsonRows(["n", "who"], "write").texts(pa.record_batch({"n": [1, None], "who": ["a", "b"]}))
['{"n":1,"who":"a"}', '{"n":null,"who":"b"}']
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...engine.batch import Batch, column_values
from ...engine.errors import RecordError


def _inner_value(value: Any) -> str:
    """Return the JSON form of values inside lists and structs, and of decimals."""
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise ValueError(f"{value!r} has no JSON form")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_inner_value).encode
_encode_lines = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=("\n", ":"), default=_inner_value).encode

_PER_SECOND = {"s": 0, "ms": 3, "us": 6, "ns": 9}


class JsonRows:
    """An encoder of rows as JSON objects.

    Times are ISO 8601 strings (a timestamp with a zone in UTC, with "Z"; a duration "PT1.5S"), decimals are strings.
    """

    def __init__(self, columns: Sequence[str], operator: str) -> None:
        self._columns, self._operator = columns, operator
        self._row = "{" + ",".join(_encode(name).replace("%", "%%") + ":%s" for name in columns) + "}"

    def texts(self, rows: pa.RecordBatch) -> list[str]:
        """Return an object for each row. Raises RecordError for NaN and infinity."""
        texts = [self._texts(rows, name) for name in self._columns]
        return list(map(self._row.__mod__, zip(*texts, strict=True)))

    def _texts(self, rows: pa.RecordBatch, name: str) -> list[str]:
        column = rows.column(name)
        values = plain_values(column)
        try:
            if pa.types.is_nested(column.type):
                return [_encode(value) for value in values]
            # The encoded form of a number, a string, a bool or a null contains no line end.
            return _encode_lines(values)[1:-1].split("\n")
        except ValueError as error:
            row = next(row for row, value in enumerate(values) if not _has_form(value))
            problem = f"column `{name}`: {error}; replace NaN and infinity, for example by None"
            raise RecordError(self._operator, problem, record=Batch(rows.slice(row, 1)).to_rows()[0]) from error


def json_refuses(kind: pa.DataType) -> str | None:
    """Return why JSON can't hold a column of this type, or None if it can."""
    if pa.types.is_dictionary(kind):
        return json_refuses(kind.value_type)
    if pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = (_inner_problem(kind.field(i).type) for i in range(kind.num_fields))
        return next((problem for problem in inner if problem is not None), None)
    if pa.types.is_nested(kind):
        return "JSON has no such values; write Parquet, or map it to a struct or a list"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "JSON has no bytes; write Parquet, or map it to a string (base64, hex)"
    if pa.types.is_interval(kind):
        return "JSON has no intervals; map it to a string"
    return None


def _inner_problem(kind: pa.DataType) -> str | None:
    if pa.types.is_duration(kind):
        return "durations inside lists and structs have no JSON form; map them to numbers"
    return json_refuses(kind)


def plain_values(column: pa.Array) -> list[Any]:
    """Return the values as Python objects that JSON can encode."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        utc = column if kind.tz is None else column.cast(pa.timestamp(kind.unit, "UTC"))
        return list(pc.replace_substring(utc.cast(pa.string()), " ", "T", max_replacements=1).to_pylist())
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return list(column.cast(pa.string()).to_pylist())
    if pa.types.is_duration(kind):
        return [None if value is None else _iso_duration(value, _PER_SECOND[kind.unit]) for value in column.cast(pa.int64()).to_pylist()]
    return column_values(column)


def _iso_duration(value: int, digits: int) -> str:
    seconds, fraction = divmod(abs(value), 10**digits)
    return f"{'-' if value < 0 else ''}PT{seconds}{f'.{fraction:0{digits}}' if fraction else ''}S"


def _has_form(value: Any) -> bool:
    try:
        _encode(value)
    except ValueError:
        return False
    return True
