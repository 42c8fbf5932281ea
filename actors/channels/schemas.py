"""Column types on a channel: plain Arrow types without foreign metadata, so that reading one never runs code.

Arrow passes an extension type that it reads to the Python class registered under its name, and some of those unpickle. So
extension types are never sent, and a schema that names one is rejected before Arrow sees it. Dictionaries are sent as their
values: batches then depend only on their schema.

>>> plain_schema(pa.schema({"city": pa.dictionary(pa.int32(), pa.string())})).field("city").type
DataType(string)
"""

from __future__ import annotations

import pyarrow as pa

from ...engine.aggregates.partial_aggregates import INPUT
from ...engine.errors import ProtocolError

MAX_SCHEMA_BYTES = 1 << 20
_EXTENSION = b"ARROW:extension:"


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the names, plain types and nullability of `schema`, with only the metadata of partial aggregates about their input.

    Raises TypeError naming a column that can't be sent.
    """
    fields = []
    for field in schema:
        try:
            fields.append(pa.field(field.name, plain_type(field.type), field.nullable))
        except TypeError as error:
            raise TypeError(f"column `{field.name}` {error}") from error
    metadata = schema.metadata or {}
    return pa.schema(fields, metadata={INPUT: metadata[INPUT]} if INPUT in metadata else None)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return `kind` with every dictionary inside it replaced by its value type. Raises TypeError for a type that can't be sent."""
    if isinstance(kind, pa.BaseExtensionType):
        raise TypeError(f"has the extension type {kind}; cast it to its storage type {kind.storage_type} first")
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if kind.num_fields == 0:
        return kind
    inner = [pa.field(f.name, plain_type(f.type), f.nullable) for f in (kind.field(i) for i in range(kind.num_fields))]
    return _rebuilt(kind, inner)


def _rebuilt(kind: pa.DataType, inner: list[pa.Field]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(inner)
    if pa.types.is_map(kind):
        entries = inner[0].type
        return pa.map_(entries.field(0), entries.field(1), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(inner[0], kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(inner[0])
    if pa.types.is_list(kind):
        return pa.list_(inner[0])
    if [f.type for f in inner] != [kind.field(i).type for i in range(kind.num_fields)]:
        raise TypeError(f"has a dictionary inside {kind}; cast it to a plain type first")
    return kind


def write_schema(schema: pa.Schema) -> pa.Buffer:
    """Return a plain schema as an Arrow IPC message. Raises TypeError for one that the receiver would reject."""
    buffer = schema.serialize()
    if buffer.size > MAX_SCHEMA_BYTES:
        raise TypeError(f"a schema of {len(schema):,} columns takes {buffer.size:,} bytes, more than the allowed {MAX_SCHEMA_BYTES:,}")
    if _EXTENSION in memoryview(buffer).tobytes():
        raise TypeError("a nested column has an extension type; cast it to its storage type first")
    return buffer


def read_schema(frame: bytes) -> pa.Schema:
    """Read the result of `write_schema`. Raises ProtocolError for anything else."""
    if len(frame) > MAX_SCHEMA_BYTES:
        raise ProtocolError(f"a schema of {len(frame):,} bytes is longer than the allowed {MAX_SCHEMA_BYTES:,}")
    if _EXTENSION in frame:
        raise ProtocolError("a schema names an extension type; only plain types may be read from a channel")
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(frame))
        plain = plain_schema(schema)
    except Exception as error:  # Arrow raises EOFError, OSError, KeyError and more for bytes that it can't read
        raise ProtocolError(f"a schema of {len(frame)} bytes can't be read: {error}") from error
    if not plain.equals(schema):
        raise ProtocolError(f"a schema has dictionary types; only plain types may be read from a channel: {schema}")
    return plain


def loose_columns(schema: pa.Schema) -> tuple[int, ...]:
    """Return the indices of columns with values that Arrow follows as offsets: those must be checked value by value before use."""
    return tuple(i for i, kind in enumerate(schema.types) if not _fixed_width(kind))


def _fixed_width(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_primitive(kind) or types.is_null(kind) or types.is_fixed_size_binary(kind))
