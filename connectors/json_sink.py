r"""The sink of newline-delimited JSON files, which become visible with their checkpoint.

>>> import pathlib, tempfile
>>> import pyarrow as pa
>>> from datetime import datetime
>>> from evenflow.engine.batch import Batch
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> sink = write_json(folder)
>>> sink.start()
>>> writer = sink.writer(0, 1)
>>> writer.write(Batch(pa.record_batch({"n": [1], "at": [datetime(2026, 1, 31, 10)]})))
>>> _ = sink.commit(1, writer.prepare(1))
>>> [file.read_text() for file in folder.glob("part-*.json")]
['{"n":1,"at":"2026-01-31T10:00:00.000000"}\n']
"""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from ..engine.batch import Batch, column_values
from ..engine.errors import RecordError
from .file_sink import Encoder, FileSink


def _inner_value(value: Any) -> str:
    """The JSON form of values inside lists and structs, and of decimals."""
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise ValueError(f"{value!r} has no JSON form")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_inner_value).encode
_encode_lines = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=("\n", ":"), default=_inner_value).encode

_PER_SECOND = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def write_json(path: str | Path, *, overwrite: bool = False, append: bool = False, name: str = "write_json") -> JsonSink:
    """Rows as JSON objects, one per line, in the folder `path`, one file per worker and checkpoint, exactly once.

    Times are ISO 8601 strings (a timestamp with a zone in UTC, with "Z"; a duration "PT1.5S"), decimals are strings. Bytes, maps and unions
    are a ConnectorError, NaN and infinity a RecordError, since JSON has none. `overwrite`, `append` and a change of type are as in
    `write_parquet`.
    """
    return JsonSink(path, overwrite, append, name)


class JsonSink(FileSink):
    """See `write_json`."""

    extension = ".json"

    def check_type(self, kind: pa.DataType) -> str | None:
        if pa.types.is_dictionary(kind):
            return self.check_type(kind.value_type)
        if pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            inner = (self._inner_problem(kind.field(i).type) for i in range(kind.num_fields))
            return next((problem for problem in inner if problem is not None), None)
        if pa.types.is_nested(kind):
            return "JSON has no such values; write Parquet, or map it to a struct or a list"
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
            return "JSON has no bytes; write Parquet, or map it to a string (base64, hex)"
        if pa.types.is_interval(kind):
            return "JSON has no intervals; map it to a string"
        return None

    def encoder(self, file: BinaryIO, schema: pa.Schema) -> JsonEncoder:
        return JsonEncoder(file, schema, self.name)

    def _inner_problem(self, kind: pa.DataType) -> str | None:
        if pa.types.is_duration(kind):
            return "durations inside lists and structs have no JSON form; map them to numbers"
        return self.check_type(kind)


class JsonEncoder(Encoder):
    """The standard library encodes each column at once; the rows are assembled from the values' texts."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, operator: str) -> None:
        self._file, self._operator = file, operator
        self._row = "{" + ",".join(_encode(name).replace("%", "%%") + ":%s" for name in schema.names) + "}\n"

    def write(self, rows: pa.RecordBatch) -> None:
        texts = [self._texts(rows, name) for name in rows.schema.names]
        self._file.write("".join(map(self._row.__mod__, zip(*texts, strict=True))).encode())

    def finish(self) -> None:
        """Nothing is buffered here."""

    def _texts(self, rows: pa.RecordBatch, name: str) -> list[str]:
        column = rows.column(name)
        values = _plain_values(column)
        try:
            if pa.types.is_nested(column.type):
                return [_encode(value) for value in values]
            # No text of a number, a string, a bool or a null holds a line end.
            return _encode_lines(values)[1:-1].split("\n")
        except ValueError as error:
            row = next(row for row, value in enumerate(values) if not _has_form(value))
            problem = f"column `{name}`: {error}; replace NaN and infinity, for example by None"
            raise RecordError(self._operator, problem, record=Batch(rows.slice(row, 1)).to_rows()[0]) from error


def _plain_values(column: pa.Array) -> list[Any]:
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
