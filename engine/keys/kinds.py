"""Kinds of key types: the values of two types can be equal, and then hash alike, if both types are of one kind.

>>> key_kind(pa.int32()) == key_kind(pa.uint64()), key_kind(pa.int32()) == key_kind(pa.string())
(True, False)
"""

from __future__ import annotations

import pyarrow as pa

_KINDS = (
    ("integers", pa.types.is_integer),
    ("floating-point numbers", pa.types.is_floating),
    ("booleans", pa.types.is_boolean),
    ("decimals", pa.types.is_decimal),
    ("text", lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind)),
    ("bytes", lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)),
    ("dates", pa.types.is_date),
    ("times", pa.types.is_time),
    ("timestamps with a zone", lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None),
    ("timestamps without a zone", pa.types.is_timestamp),
    ("durations", pa.types.is_duration),
)


def key_kind(kind: pa.DataType) -> str | None:
    """The kind of a type, None for one whose values can't be keys. That of a column of nulls is "nulls"."""
    if pa.types.is_dictionary(kind):
        return key_kind(kind.value_type)
    if pa.types.is_null(kind):
        return "nulls"
    return next((name for name, has in _KINDS if has(kind)), None)
