"""Conversion of columns to Avro values: which types fit, and where nulls aren't allowed.

>>> refuses(pa.int64(), pa.int32()), refuses(pa.string(), pa.int32())
(None, 'give it that type with cast() or map()')
>>> stored_type(pa.list_(pa.date32()))
ListType(list<item: int32>)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from .types import is_null, without_null

_Test = Callable[[pa.DataType], bool]

_SAME: tuple[_Test, ...] = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_timestamp,
    pa.types.is_date,
    pa.types.is_time,
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind),
)
"""Groups of types that convert into each other, if the values fit."""

_ADVICE = "give it that type with cast() or map()"


def refuses(kind: pa.DataType, wanted: pa.DataType) -> str | None:
    """Return why columns of type `kind` can't become `wanted`, the type of a schema, or None if they can when the values fit."""
    if pa.types.is_dictionary(kind):
        return refuses(kind.value_type, wanted)
    if pa.types.is_null(kind) or any(same(kind) and same(wanted) for same in _SAME):
        return None
    if _is_list(kind) and _is_list(wanted):
        return refuses(kind.value_type, wanted.value_type)
    if pa.types.is_map(kind) and pa.types.is_map(wanted):
        return refuses(kind.key_type, wanted.key_type) or refuses(kind.item_type, wanted.item_type)
    if pa.types.is_struct(kind) and pa.types.is_struct(wanted):
        ours, theirs = ([field.name for field in each] for each in (kind, wanted))
        if sorted(ours) != sorted(theirs):
            return f"it has the fields {', '.join(ours)}"
        return next((problem for name in ours if (problem := refuses(kind.field(name).type, wanted.field(name).type)) is not None), None)
    return _ADVICE


def stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the encoded values: times are stored as numbers."""
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.int64()
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, stored_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, stored_type(field.type)) for field in kind])
    return pa.list_(stored_type(kind.value_type)) if pa.types.is_list(kind) else kind


def holes(column: pa.Array, kind: Any) -> int | None:
    """Return the row of the first null that the expanded Avro type doesn't allow, or None. fastavro accepts some of these."""
    bad = _holes(column, kind)
    return None if bad is None else int(np.flatnonzero(bad)[0])


def _holes(column: pa.Array, kind: Any) -> np.ndarray[Any, np.dtype[np.bool_]] | None:
    """Return a mask of the values that contain such a null, or None if no value does."""
    nullable = is_null(kind) or (isinstance(kind, list) and any(map(is_null, kind)))
    kind = without_null(kind)
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    bad = np.zeros(len(column), bool) if nullable else nulls
    if isinstance(kind, dict) and kind["type"] in ("record", "error"):
        for field in kind["fields"]:
            inner = _holes(column.field(field["name"]), field["type"])
            if inner is not None:
                bad = bad | (inner & ~nulls)
    elif isinstance(kind, dict) and kind["type"] in ("array", "map"):
        bad = bad | _holes_inside(column, kind)
    return bad if bad.any() else None


def _holes_inside(column: pa.Array, kind: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    is_map = pa.types.is_map(column.type)
    items = column.items if is_map else column.values
    inner, offsets = _holes(items, kind["values" if is_map else "items"]), column.offsets.to_numpy()
    if inner is None:
        return np.zeros(len(column), bool)
    before = np.concatenate(([0], np.cumsum(inner)))
    return np.asarray((before[offsets[1:]] > before[offsets[:-1]]) & column.is_valid().to_numpy(zero_copy_only=False))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
