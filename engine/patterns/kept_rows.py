"""Rows as bytes in the state of a key, with the schema that they have in common."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..errors import RecordError
from ..joins.row_codec import RowCodec
from ..types.exact import Inexact, NoCommonType, common, widened


class RowBytes:
    """The codecs of an operator instance, by the bytes of their schema."""

    def __init__(self, operator: str) -> None:
        self._operator = operator
        self._codecs: dict[bytes, RowCodec] = {}
        self._names: dict[pa.Schema, bytes] = {}

    def schema_of(self, rows: pa.RecordBatch) -> bytes:
        """Return the bytes of the schema of `rows`."""
        found = self._names.get(rows.schema)
        if found is None:
            found = self._names[rows.schema] = rows.schema.serialize().to_pybytes()
        return found

    def pack(self, rows: pa.RecordBatch) -> list[bytes]:
        """Return each row as bytes."""
        return self._codec(self.schema_of(rows)).pack(rows)

    def unpack(self, schema: bytes, packed: Sequence[bytes]) -> pa.RecordBatch:
        """Return the rows of packed bytes; the inverse of `pack`."""
        return self._codec(schema).unpack(packed)

    def joined(self, first: bytes, second: bytes) -> bytes:
        """Return the schema that holds the rows of both. Raises RecordError if there is none."""
        one, other = self._codec(first).schema, self._codec(second).schema
        if one.names != other.names:
            raise self._refusal(f"rows of one key have the columns {', '.join(one.names)}, and the columns {', '.join(other.names)}")
        try:
            both = common([one, other])
        except NoCommonType as error:
            raise self._refusal(str(error)) from error
        return self.schema_of(pa.RecordBatch.from_pylist([], schema=both))

    def converted(self, packed: Sequence[bytes], schema: bytes, wanted: bytes) -> list[bytes]:
        """Return packed rows of one schema as those of another. Raises RecordError for a value that would change."""
        if schema == wanted or not packed:
            return list(packed)
        try:
            return self.pack(widened(self.unpack(schema, packed), self._codec(wanted).schema))
        except Inexact as error:
            raise self._refusal(str(error)) from error

    def _codec(self, schema: bytes) -> RowCodec:
        codec = self._codecs.get(schema)
        if codec is None:
            codec = self._codecs[schema] = RowCodec(pa.ipc.read_schema(pa.py_buffer(schema)))
        return codec

    def _refusal(self, problem: str) -> RecordError:
        return RecordError(self._operator, f"{problem}: give the columns one type before the pattern, for example with cast")


def without_dictionaries(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows as they are kept: dictionaries as plain values, and no metadata."""
    columns = [column.cast(plain_kind(column.type)) if pa.types.is_dictionary(column.type) else column for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def plain_kind(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a column."""
    return plain_kind(kind.value_type) if pa.types.is_dictionary(kind) else kind
