r"""Decoders of records' values to columns, whole batches at a time, and the search for the values that can't be decoded.

>>> refused = []
>>> rows, counts = decoded(JsonValues(pa.schema({"n": pa.int64()})), [b'{"n": 1}', b"{", b'{"n": 3}'], lambda *it: refused.append(it))
>>> rows.to_pydict(), counts.tolist(), refused[0][0]
({'n': [1, 3]}, [1, 0, 1], 1)
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as arrow_json

from ....engine.errors import ConnectorError
from ...files.one_schema import fitted, settled
from ...formats.floats import ChangedValue
from ...formats.json_types import JsonTypes, with_zones

if TYPE_CHECKING:
    from confluent_kafka import Message

VALUE = "value"
"""The only column of records whose value isn't decoded."""

Values = Sequence[bytes | None]
"""Values of records; None for a tombstone."""

Counts = npt.NDArray[np.int64]
"""The number of rows of each value, shape (values,)."""

LONGEST = 1 << 30
"""The most bytes of JSON passed to Arrow at once: it accepts blocks below 2 GiB."""


class UndecodableError(Exception):
    """A value can't be decoded; the text says why."""


class Decoder(ABC):
    """A stateless converter of values to rows. Picklable."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema | None:
        """The columns; None until they are known."""

    def contents(self, records: Sequence[Message]) -> Sequence[Any]:
        """Return what `decode` takes of each record: its value."""
        return [record.value() for record in records]

    @abstractmethod
    def decode(self, values: Sequence[Any]) -> tuple[pa.RecordBatch, Counts | None]:
        """Return the rows of all `values` (at least one), in order, and the number of rows of each value; None means one each.

        Raises UndecodableError or an Arrow error if one of them can't be decoded.
        """

    def inferred(self, sample: Callable[[], Values]) -> Decoder:
        """Return a decoder with a known schema, inferred from a sample if necessary. Raises UndecodableError if the sample can't
        show it.
        """
        return self

    def reading(self, names: Sequence[str]) -> Decoder:
        """Return a decoder that decodes only these columns of `schema` if that saves work, or one of more columns."""
        return self


class NoValues(Decoder):
    """A decoder that ignores values: a row without columns for each."""

    schema = pa.schema([])

    def decode(self, values: Values) -> tuple[pa.RecordBatch, None]:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(values), pa.struct([]))), None


class RawValues(Decoder):
    """A decoder that keeps the bytes in the column `value`; a tombstone is a null."""

    schema = pa.schema({VALUE: pa.binary()})

    def decode(self, values: Values) -> tuple[pa.RecordBatch, None]:
        return pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], schema=self.schema), None

    def reading(self, names: Sequence[str]) -> Decoder:
        return self if names else NoValues()


class TextValues(Decoder):
    """A decoder of UTF-8 text into the column `value`; a tombstone is a null."""

    schema = pa.schema({VALUE: pa.string()})

    def decode(self, values: Values) -> tuple[pa.RecordBatch, None]:
        return pa.RecordBatch.from_arrays([pa.array(values, pa.binary()).cast(pa.string())], schema=self.schema), None

    def reading(self, names: Sequence[str]) -> Decoder:
        return self if names else NoValues()


class JsonValues(Decoder):
    """A decoder of one JSON object per value; a tombstone is a row of nulls. `schema`: None until it is inferred, including any
    `given` types.

    A schema from the user ignores other fields; an inferred one rejects them, because they would be lost silently.
    """

    def __init__(self, schema: pa.Schema | None, *, other_fields: Literal["ignore", "error", "infer"] = "ignore") -> None:
        self._schema, self._other_fields = schema, other_fields
        self._types = None if schema is None else JsonTypes(schema, schema if other_fields == "ignore" else pa.schema([]))

    @property
    def schema(self) -> pa.Schema | None:
        return self._schema

    def decode(self, values: Values) -> tuple[pa.RecordBatch, None]:
        objects = [b"{}" if value is None else value for value in values] if None in values else values
        lines = b"\n".join(objects)  # type: ignore[arg-type]  # there is no None left
        if not _is_object_per_line(lines, len(objects)):
            # A line feed between tokens may be a tab as well; within a string JSON allows neither.
            lines = b"\n".join([value.strip().replace(b"\n", b"\t") for value in objects if value is not None])
            if not _is_object_per_line(lines, len(objects)):
                raise UndecodableError("it is no JSON object")
        if len(lines) > LONGEST:
            raise UndecodableError(f"it is longer than {LONGEST} bytes")
        rows = self._read(lines)
        if rows.num_rows != len(objects):
            raise UndecodableError("it holds several JSON objects")
        rows.validate(full=True)  # Arrow takes any bytes for text
        if self._types is None:
            return rows, None
        try:
            self._types.check(lines, rows)
            return self._types.converted(rows), None
        except ChangedValue as error:
            raise UndecodableError(error.problem) from error

    def inferred(self, sample: Callable[[], Values]) -> Decoder:
        if self._schema is not None:
            return self
        filled = [value for value in sample() if value is not None]
        rows, _ = decoded(JsonValues(None, other_fields="infer"), filled, lambda place, problem: None)
        if not rows.num_columns:
            raise UndecodableError("no record shows the columns")

        def texts(types: pa.Schema) -> pa.RecordBatch:
            return decoded(JsonValues(types, other_fields="error"), filled, lambda place, problem: None)[0]

        return JsonValues(with_zones(rows.schema, pa.schema([]), texts), other_fields="error")

    def reading(self, names: Sequence[str]) -> Decoder:
        if self._schema is None or self._other_fields != "ignore" or not names:
            return self
        return JsonValues(pa.schema([self._schema.field(name) for name in names]))

    def _read(self, lines: bytes) -> pa.RecordBatch:
        types = None if self._types is None else self._types.read
        options = arrow_json.ParseOptions(explicit_schema=types, unexpected_field_behavior=self._other_fields)
        table = arrow_json.read_json(io.BytesIO(lines), arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1), options)
        return table.combine_chunks().to_batches()[0]


def _is_object_per_line(lines: bytes, count: int) -> bool:
    """Return True if each of the `count` values is on its own line, from brace to brace, so that no object spans two values."""
    ends = count - 1
    return lines[:1] == b"{" and lines[-1:] == b"}" and lines.count(b"\n") == ends and lines.count(b"}\n{") == ends


class ArrowValues(Decoder):
    """A decoder of an Arrow IPC stream or file per value, with any number of rows; a tombstone has none. All have the same
    columns.
    """

    def __init__(self, schema: pa.Schema | None, operator: str) -> None:
        self._schema, self._operator = schema, operator

    @property
    def schema(self) -> pa.Schema | None:
        return self._schema

    def decode(self, values: Values) -> tuple[pa.RecordBatch, Counts]:
        tables = [_ipc(value) for value in values if value is not None]
        schema = self._schema
        try:
            for table in tables:
                schema = table.schema if schema is None else settled(schema, table.schema, self._operator)
        except ConnectorError as error:
            raise UndecodableError(str(error).partition(": ")[2]) from error
        batches = [fitted(batch, schema, self._operator) for table in tables for batch in table.to_batches()]
        rows = pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema=schema or pa.schema([]))
        lengths = iter([table.num_rows for table in tables])
        return rows, np.array([0 if value is None else next(lengths) for value in values], np.int64)

    def inferred(self, sample: Callable[[], Values]) -> Decoder:
        if self._schema is not None:
            return self
        first = next((value for value in sample() if value is not None), None)
        if first is None:
            raise UndecodableError("no record shows the columns")
        return ArrowValues(_ipc(first).schema, self._operator)


def _ipc(value: bytes) -> pa.Table:
    source = pa.py_buffer(value)
    table = (pa.ipc.open_file if value[:6] == b"ARROW1" else pa.ipc.open_stream)(source).read_all()
    table.validate(full=True)
    return table


def decoded(decoder: Decoder, values: Sequence[Any], refuse: Callable[[int, str], None]) -> tuple[pa.RecordBatch, Counts | None]:
    """Decode `values` to rows and the number of rows of each; None means one each. Calls `refuse` with place and reason of each
    undecodable one.

    Values that fail together are retried in halves until the undecodable ones are found.
    """
    pieces: list[pa.RecordBatch] = []
    counts: list[Counts] = []

    def attempt(first: int, stop: int) -> None:
        try:
            rows, lengths = decoder.decode(values[first:stop])
        except (UndecodableError, pa.ArrowException, UnicodeError, OSError) as error:
            if stop - first > 1:
                half = (first + stop) // 2
                attempt(first, half)
                attempt(half, stop)
            else:
                refuse(first, str(error).strip())
                counts.append(np.zeros(1, np.int64))
            return
        pieces.append(rows)
        counts.append(np.ones(stop - first, np.int64) if lengths is None else lengths)

    try:
        return decoder.decode(values)
    except (UndecodableError, pa.ArrowException, UnicodeError, OSError):
        attempt(0, len(values))
    return _joined(pieces, decoder.schema), np.concatenate(counts)


def _joined(pieces: Sequence[pa.RecordBatch], schema: pa.Schema | None) -> pa.RecordBatch:
    if not pieces:
        return pa.RecordBatch.from_pylist([], schema=schema or pa.schema([]))
    if schema is not None:
        return pa.concat_batches(pieces)
    table = pa.concat_tables([pa.Table.from_batches([piece]) for piece in pieces], promote_options="permissive")
    return table.combine_chunks().to_batches()[0]
