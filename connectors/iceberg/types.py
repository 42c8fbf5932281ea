"""Column types between Arrow's batches and Iceberg tables: each is held exactly, or refused with what to do.

>>> stored_type(pa.int16()), stored_type(pa.timestamp("ms", "Europe/Paris"))
(DataType(int32), TimestampType(timestamp[us, tz=UTC]))
>>> stored_type(pa.duration("us"))
Traceback (most recent call last):
    ...
evenflow.connectors.iceberg.types.UnsupportedTypeError: Iceberg has no durations; cast it to int64
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

_INTEGERS = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.int32(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.int64(): pa.int64(),
}

_PLAIN = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}

_MOST_DIGITS = 38


class UnsupportedTypeError(Exception):
    """A type that a table, or the engine, can't hold exactly. The text says what to do."""


def stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type in which an Iceberg table holds a column of this type. Raises UnsupportedTypeError.

    Times have microseconds, those with a time zone are in UTC. Integers have 32 or 64 bits.
    """
    types = pa.types
    if kind in _INTEGERS:
        return _INTEGERS[kind]
    if types.is_dictionary(kind):
        return stored_type(kind.value_type)
    if types.is_nested(kind):
        return _stored_nested(kind)
    if types.is_decimal(kind):
        if kind.precision > _MOST_DIGITS or not 0 <= kind.scale <= kind.precision:
            raise UnsupportedTypeError("Iceberg's decimals have at most 38 digits, and none beyond these; cast it to another decimal")
        return pa.decimal128(kind.precision, kind.scale)
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    return _stored_scalar(kind)


def _stored_scalar(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    pairs = (
        (types.is_boolean, pa.bool_()),
        (types.is_float16, pa.float32()),
        (types.is_float32, pa.float32()),
        (types.is_float64, pa.float64()),
        (types.is_date, pa.date32()),
        (types.is_time, pa.time64("us")),
        (types.is_fixed_size_binary, kind),
        *((check, pa.string()) for check in (types.is_string, types.is_large_string, types.is_string_view)),
        *((check, pa.binary()) for check in (types.is_binary, types.is_large_binary, types.is_binary_view)),
    )
    found = next((held for check, held in pairs if check(kind)), None)
    if found is not None:
        return found
    if types.is_uint64(kind):
        raise UnsupportedTypeError("Iceberg has no such integers; cast it to int64, or to decimal128(20, 0)")
    if types.is_duration(kind):
        raise UnsupportedTypeError("Iceberg has no durations; cast it to int64")
    if types.is_null(kind):
        raise UnsupportedTypeError("it has no values that show its type; give it one with schema= where its values are made")
    raise UnsupportedTypeError("Iceberg has no such type; map it to a string, a struct or a number")


def _stored_nested(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_map(kind):
        return pa.map_(stored_type(kind.key_type), stored_type(kind.item_type))
    if types.is_struct(kind):
        if not kind.num_fields:
            raise UnsupportedTypeError("a struct without fields can't be written")
        return pa.struct([(field.name, stored_type(field.type)) for field in kind])
    if types.is_union(kind):
        raise UnsupportedTypeError("Iceberg has no unions; make a struct of it")
    return pa.list_(stored_type(kind.value_type))


def engine_type(kind: IcebergType) -> pa.DataType:
    """Return the Arrow type of a column of a table; a UUID is its 16 bytes. Raises UnsupportedTypeError."""
    from pyiceberg.types import DecimalType, FixedType, ListType, MapType, StructType, UUIDType

    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, FixedType):
        return pa.binary(len(kind))
    if isinstance(kind, UUIDType):
        return pa.binary(16)
    if isinstance(kind, ListType):
        return pa.list_(_inner(kind.element_type))
    if isinstance(kind, MapType):
        return pa.map_(_inner(kind.key_type), _inner(kind.value_type))
    if isinstance(kind, StructType):
        return pa.struct([(field.name, _inner(field.field_type)) for field in kind.fields])
    if str(kind) not in _PLAIN:
        raise UnsupportedTypeError(f"it is {kind}, which isn't supported; select other columns with columns=")
    return _PLAIN[str(kind)]


def _inner(kind: IcebergType) -> pa.DataType:
    from pyiceberg.types import UUIDType

    if isinstance(kind, UUIDType):
        raise UnsupportedTypeError("it has UUIDs inside of another type, which isn't supported; select other columns with columns=")
    return engine_type(kind)


def fits(kind: pa.DataType, held: pa.DataType) -> bool:
    """Return True if a column of the type `held` holds all values that are `kind`, a result of `stored_type`.

    These are Iceberg's type promotions.

    >>> fits(pa.int32(), pa.int64()), fits(pa.int64(), pa.int32()), fits(pa.decimal128(5, 2), pa.decimal128(9, 2))
    (True, False, True)
    """
    if kind == held or (kind, held) in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64())):
        return True
    both: Any = (kind, held)
    return all(map(pa.types.is_decimal, both)) and kind.scale == held.scale and kind.precision <= held.precision
