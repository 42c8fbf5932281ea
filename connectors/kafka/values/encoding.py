"""Encoding of rows as Kafka messages: a key, a value and headers, each as bytes.

>>> messages = Encoding("json", key="n", headers={"from": "who"}).messages(pa.record_batch({"n": [1, 2], "who": ["a", None]}))
>>> messages.to_pydict()
{'key': [b'1', b'2'], 'value': [b'{"n":1,"who":"a"}', b'{"n":2,"who":null}'], 'from': [b'a', None]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ....engine.columns import Columns
from ....engine.errors import ConnectorError, FlowError
from ...formats.json_rows import JsonRows, json_refuses, plain_values
from .avro_rows import AvroRows

Format = Literal["json", "raw", "text", "arrow", "avro"]

FORMATS = ("json", "raw", "text", "arrow", "avro")

VALUE = "value"
"""The column that holds the message's value in the formats `raw` and `text`."""

ARROW_ROWS = 65_536
"""The most rows of one message of the format `arrow`."""


@dataclass(frozen=True)
class Encoding:
    """An encoder of rows as messages. `key`: a column, several, or None. `headers`: the column of each header. `avro`: for the
    format "avro".

    Raises FlowError for invalid settings.
    """

    format: Format
    key: str | tuple[str, ...] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    operator: str = "write_kafka"
    avro: AvroRows | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise FlowError(f"operator `{self.operator}`: format={self.format!r}; expected one of {', '.join(FORMATS)}")
        names = [*self.keys, *self.headers, *self.headers.values()]
        if any(not isinstance(name, str) or not name for name in names):
            raise FlowError(
                f"operator `{self.operator}`: key= and headers= take names of columns: key='user', headers={{'trace': 'trace_id'}}"
            )
        if self.key is not None and not self.keys:
            raise FlowError(f"operator `{self.operator}`: key=[] names no column; omit it for messages without a key")
        if self.format == "arrow" and (self.key is not None or self.headers):
            raise FlowError(
                f'operator `{self.operator}`: format="arrow" puts many rows into one message, so a row can have no key= and no headers='
            )

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the key."""
        if self.key is None:
            return ()
        return tuple(self.key) if isinstance(self.key, tuple) else (self.key,)

    def problem(self, columns: Columns) -> str | None:
        """Return why a stream with these known columns can't be written, or None if it may be."""
        own = (VALUE,) if self.format in ("raw", "text") else ()
        for name in (*own, *self.keys, *self.headers.values()):
            if columns.lacks(name):
                hint = f'; format="{self.format}" writes the column `{VALUE}`' if name in own else ""
                return f"no column `{name}` among {columns.listed()}{hint}"
        known = {name: kind for name, kind in columns.types.items() if kind is not None}
        return (None if self.avro is None else self.avro.problem(columns)) or self._type_problem(known)

    def messages(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns `key` and `value`, and one for each header. Raises ConnectorError, and RecordError for an
        unencodable value.
        """
        problem = self.problem(Columns({column.name: column.type for column in rows.schema}, complete=True))
        if problem is not None:
            raise ConnectorError(f"operator `{self.operator}`: {problem}")
        values = self._values(rows)
        headers = [_bytes_of(rows.column(name)) for name in self.headers.values()]
        columns = [self._keys(rows, len(values)), values, *headers]
        names = ["key", "value", *self.headers]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema([(name, pa.binary()) for name in names]))

    def _type_problem(self, types: Mapping[str, pa.DataType]) -> str | None:
        if self.format == "json":
            for name, kind in types.items():
                if (problem := json_refuses(kind)) is not None:
                    return f"column `{name}` is {kind}: {problem}"
        elif self.format in ("raw", "text") and (kind := types.get(VALUE)) is not None and not _is_value(kind, self.format):
            wanted = "binary or a string" if self.format == "raw" else "a string"
            return f'column `{VALUE}` is {kind}; format="{self.format}" needs {wanted}'
        if len(self.keys) > 1:
            refusals = {name: json_refuses(types[name]) for name in self.keys if name in types}
        else:
            refusals = {name: _refuses(types[name]) for name in self.keys if name in types}
        refusals |= {name: _refuses(types[name]) for name in self.headers.values() if name in types and name not in refusals}
        return next((f"column `{name}` is {types[name]}: {problem}" for name, problem in refusals.items() if problem is not None), None)

    def _keys(self, rows: pa.RecordBatch, count: int) -> pa.Array:
        if not self.keys:
            return pa.nulls(count, pa.binary())
        if len(self.keys) == 1:
            return _bytes_of(rows.column(self.keys[0]))
        return _bytes_of(pa.array(JsonRows(self.keys, self.operator).texts(rows), pa.string()))

    def _values(self, rows: pa.RecordBatch) -> pa.Array:
        if self.format == "json":
            return _bytes_of(pa.array(JsonRows(rows.schema.names, self.operator).texts(rows), pa.string()))
        if self.avro is not None:
            return self.avro.values(rows)
        if self.format == "arrow":
            return pa.array([_stream(rows.slice(first, ARROW_ROWS)) for first in range(0, rows.num_rows, ARROW_ROWS)], pa.binary())
        return _bytes_of(rows.column(VALUE))


def _is_value(kind: pa.DataType, form: str) -> bool:
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return text or pa.types.is_null(kind) or (binary and form == "raw")


def _refuses(kind: pa.DataType) -> str | None:
    """Return why a column of this type can't be a key or a header, or None if it can."""
    if pa.types.is_dictionary(kind):
        return _refuses(kind.value_type)
    if pa.types.is_floating(kind) or pa.types.is_nested(kind) or pa.types.is_interval(kind):
        return "a key or a header is bytes, a string, an integer, a bool, a decimal or a time; map it to a string"
    return None


def _bytes_of(column: pa.Array) -> pa.Array:
    """Return bytes and strings unchanged, numbers and times as their text in JSON without quotes."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _bytes_of(column.dictionary_decode())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    if pa.types.is_temporal(kind):
        column = pa.array(plain_values(column), pa.string())
    return pc.cast(column, pa.string()).cast(pa.binary())


def _stream(rows: pa.RecordBatch) -> bytes:
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, rows.schema) as stream:
        stream.write_batch(rows)
    return bytes(buffer.getvalue())
