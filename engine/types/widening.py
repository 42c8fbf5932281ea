"""The common type of two types: the type of a column that came with both.

The invariants: the common type holds every value of both types exactly, or the conversion of that value is an error
(`exact.py`). The order of two types makes no difference, so workers that saw them in different orders agree.

>>> wider(pa.null(), pa.string()), wider(pa.float64(), pa.int64())
(DataType(string), DataType(double))
>>> wider(pa.struct({"a": pa.int64()}), pa.struct({"a": pa.float64(), "b": pa.string()}))
StructType(struct<a: double, b: string>)
>>> wider(pa.int64(), pa.string()) is None
True
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_INT_DIGITS = 19
"""The decimal digits of integers: those of int64, also for narrower types, which may widen first."""

_UNITS = ("s", "ms", "us", "ns")


def wider(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type that holds both, None if no type does.

    These pairs have one: null and any type; integers and floats (float64, also for int64 and uint64); integers of up to 64 bits
    with a sign and decimals; decimals of any scale up to 76 digits; strings; bytes; dates; times, timestamps and durations of
    different units; structs with different fields; lists and maps of such types.
    """
    left, right = value_type(left), value_type(right)
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    for applies, join in _JOINS:
        if applies(left) and applies(right):
            return join(left, right)
    return None


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column's values; for a dictionary, the type that it encodes."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decimal_type(digits: int, scale: int) -> pa.DataType | None:
    """Return the decimal with `digits` before the point and `scale` behind it, None beyond 76 together."""
    precision = max(digits + scale, 1)
    if precision <= 38:
        return pa.decimal128(precision, scale)
    return pa.decimal256(precision, scale) if precision <= 76 else None


def _number(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if pa.types.is_decimal(left) or pa.types.is_decimal(right):
        return _decimal(left, right)
    if pa.types.is_integer(left) != pa.types.is_integer(right):
        return pa.float64()
    return pa.from_numpy_dtype(np.result_type(left.to_pandas_dtype(), right.to_pandas_dtype()))


def _decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if any(pa.types.is_floating(kind) or pa.types.is_uint64(kind) for kind in (left, right)):
        return None
    (digits, scale), (other_digits, other_scale) = _digits(left), _digits(right)
    kind = decimal_type(max(digits, other_digits), max(scale, other_scale))
    if kind is not None and (pa.types.is_decimal256(left) or pa.types.is_decimal256(right)):
        return pa.decimal256(kind.precision, kind.scale)
    return kind


def _digits(kind: pa.DataType) -> tuple[int, int]:
    """Return the digits before and behind the point."""
    return (_INT_DIGITS, 0) if pa.types.is_integer(kind) else (kind.precision - kind.scale, kind.scale)


def _timestamp(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if (left.tz is None) != (right.tz is None):
        return None
    return pa.timestamp(_finer(left, right), left.tz if left.tz == right.tz else "UTC")


def _time(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    unit = _finer(left, right)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _finer(left: pa.DataType, right: pa.DataType) -> str:
    return str(max(left.unit, right.unit, key=_UNITS.index))


def _struct(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    names = _names([field.name for field in left], [field.name for field in right])
    fields = []
    for name in names:
        here = [kind.field(name) for kind in (left, right) if kind.get_field_index(name) >= 0]
        kind = here[0].type if len(here) == 1 else wider(here[0].type, here[1].type)
        if kind is None:
            return None
        fields.append(pa.field(name, kind, nullable=len(here) == 1 or any(field.nullable for field in here)))
    return pa.struct(fields)


def _names(left: list[str], right: list[str]) -> list[str]:
    """Return the names of both, in the order of the one that has all, otherwise sorted."""
    if left == right:
        return left
    ours, theirs = set(left), set(right)
    if ours > theirs:
        return left
    return right if theirs > ours else sorted(ours | theirs)


def _list(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    kind = wider(left.value_type, right.value_type)
    if kind is None:
        return None
    sizes = {one.list_size if pa.types.is_fixed_size_list(one) else None for one in (left, right)}
    if len(sizes) == 1 and None not in sizes:
        return pa.list_(kind, sizes.pop())
    plain = all(pa.types.is_list(one) or pa.types.is_fixed_size_list(one) for one in (left, right))
    return pa.list_(kind) if plain else pa.large_list(kind)


def _map(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    key, item = wider(left.key_type, right.key_type), wider(left.item_type, right.item_type)
    return None if key is None or item is None else pa.map_(key, item)


def is_number(kind: pa.DataType) -> bool:
    """Return True for integers, floats and decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return True for strings of any layout."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Return True for bytes of any layout."""
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind))


def is_list(kind: pa.DataType) -> bool:
    """Return True for lists of any layout."""
    types = pa.types
    return bool(
        types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )  # fmt: skip


_JOINS = (
    (is_number, _number),
    (is_text, lambda left, right: pa.large_string()),
    (is_bytes, lambda left, right: pa.large_binary()),
    (pa.types.is_date, lambda left, right: pa.date64()),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_time, _time),
    (pa.types.is_duration, lambda left, right: pa.duration(_finer(left, right))),
    (pa.types.is_struct, _struct),
    (pa.types.is_map, _map),
    (is_list, _list),
)
"""Kinds of types: the test for each, and the function that returns the common type of two types of that kind."""
