"""The fields of Avro records as columns of tables, with the types that Kafka Connect's names give them.

>>> micros = {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}
>>> columns_of({"id": {"name": "id", "type": "int"}, "seen": {"name": "seen", "type": ["null", micros]}})
id: int32
seen: timestamp[us]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from ...avro.types import MOST_DIGITS, AvroTypeError, arrow_type, without_null
from .change_events import converted
from .decoding import UndecodableError
from .envelope_schema import NAMED, PLAIN, ZONED

Fields: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The expanded fields of a record, by name."""


def fields_of(kind: Any) -> Fields | None:
    """Return the fields of an expanded Avro type, which may be null, too; None if it is no record."""
    kind = without_null(kind)
    if not isinstance(kind, dict) or kind["type"] not in ("record", "error"):
        return None
    return {field["name"]: field for field in kind["fields"]}


def columns_of(fields: Fields) -> pa.Schema:
    """Return a column for each field. Raises UndecodableError for a type that columns of tables can't have."""
    return pa.schema([(name, _column_type(field["type"], read_type(field))) for name, field in fields.items()])


def read_type(field: Mapping[str, Any]) -> pa.DataType:
    """Return the type that Arrow gives the values of a field: numbers that are times become times, texts remain texts.

    Raises UndecodableError for a type that columns of tables can't have.
    """
    kind, name = without_null(field["type"]), field["name"]
    if (found := NAMED.get(_attribute(kind, "connect.name"))) is not None:
        return found
    try:
        found = arrow_type(kind, name)
    except AvroTypeError as error:
        raise UndecodableError(f"column `{name}` has no type: {error}") from error
    if pa.types.is_nested(found):
        decimal = " (decimal.handling.mode=string makes texts of decimals)" if "Decimal" in _attribute(kind, "connect.name") else ""
        raise UndecodableError(f"column `{name}` is {found}, and columns of a table can't be nested{decimal}")
    return found


def default_of(field: Mapping[str, Any]) -> pa.Array:
    """Return the default of a field as its column, with one value. Raises UndecodableError if the field's type doesn't hold it."""
    kind, value = without_null(field["type"]), field["default"]
    read = read_type(field)
    if isinstance(value, str) and (pa.types.is_decimal(read) or pa.types.is_binary(read) or pa.types.is_fixed_size_binary(read)):
        value = value.encode("latin-1")  # as Avro's specification writes defaults of bytes
        if pa.types.is_decimal(read):
            value = Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-read.scale, Context(MOST_DIGITS))
    return column_of([value], read, pa.field(field["name"], _column_type(kind, read)))


def column_of(values: Sequence[Any], read: pa.DataType, field: pa.Field) -> pa.Array:
    """Return decoded values of the type `read` as a column. Raises UndecodableError for a value that doesn't fit."""
    try:
        column = pa.array(values, read)
    except (TypeError, ValueError, OverflowError) as error:
        raise UndecodableError(f"column `{field.name}`: {error}") from error
    return converted(column, field)


def _column_type(kind: Any, read: pa.DataType) -> pa.DataType:
    kind = without_null(kind)
    if _attribute(kind, "connect.name") == ZONED:
        return pa.timestamp("us", "UTC")
    return PLAIN.get(_attribute(kind, "connect.type"), read)


def _attribute(kind: Any, name: str) -> str:
    return str(kind.get(name, "")) if isinstance(kind, dict) else ""
