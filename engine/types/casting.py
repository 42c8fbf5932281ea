"""Conversions of columns to types that a user names, which may hold fewer values.

>>> cast(pa.array([1]), pa.decimal128(3, 2)).to_pylist()
[Decimal('1.00')]
>>> cast(pa.array([{"a": 1, "b": 2}]), pa.struct({"a": pa.int64()}))
Traceback (most recent call last):
    ...
pyarrow.lib.ArrowInvalid: the field `b` would be lost
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from .widening import is_list, is_text

_INFINITE = frozenset({"inf", "infinity"})


def cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the column as `kind`.

    Arrow refuses all integers for a decimal with fewer digits than their type, so they become a wide decimal first. Arrow gives
    infinity for a number that is too large for a float of fewer bits, and drops fields that a struct lacks; here both are errors,
    also inside of lists and structs. Raises ArrowInvalid for a value that doesn't fit, ArrowNotImplementedError for types that
    can't be converted.
    """
    if pa.types.is_decimal(kind) and pa.types.is_integer(column.type):
        column = column.cast(pa.decimal128(20, 0)).cast(pa.decimal256(76, kind.scale) if kind.scale > 18 else pa.decimal128(38, kind.scale))
    converted = column.cast(kind)
    if column.type != kind:
        _check(column, converted)
    return converted


def unchanged(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the column as `kind`, which holds the same values. Raises ArrowInvalid for a value that would change.

    >>> unchanged(pa.array([0.5, None]), pa.float32()).to_pylist()
    [0.5, None]
    >>> unchanged(pa.array([0.1]), pa.float32())
    Traceback (most recent call last):
        ...
    pyarrow.lib.ArrowInvalid: 0.1 (double) would change in float
    """
    if column.type == kind:
        return column
    converted = cast(column, kind)
    back = converted.cast(column.type)
    if not back.equals(column):
        for before, after in zip(column, back, strict=True):
            if not before.equals(after) and repr(before.as_py()) != repr(after.as_py()):  # a NaN equals no other
                raise pa.ArrowInvalid(f"{before.as_py()!r:.200} ({column.type}) would change in {kind}")
    return converted


def _check(column: pa.Array, converted: pa.Array) -> None:
    """Raise ArrowInvalid for a field that was dropped, or a number or text that became infinite."""
    kind, to = column.type, converted.type
    if pa.types.is_floating(to):
        _check_size(column, converted)
    elif pa.types.is_struct(kind) and pa.types.is_struct(to):
        parts, results = column.flatten(), converted.flatten()
        for field, part in zip(kind, parts, strict=True):
            place = to.get_field_index(field.name)
            if place < 0:
                raise pa.ArrowInvalid(f"the field `{field.name}` would be lost")
            _check(part, results[place])
    elif pa.types.is_map(kind) and pa.types.is_map(to):
        for part, result in zip(_entries(column), _entries(converted), strict=True):
            _check(part, result)
    elif is_list(kind) and is_list(to):
        _check(column.flatten(), converted.flatten())


def _check_size(column: pa.Array, converted: pa.Array) -> None:
    """Raise ArrowInvalid for a number or a text that became an infinite float."""
    kind, to = column.type, converted.type
    if pa.types.is_floating(kind) and to.bit_width < kind.bit_width:
        finite = pc.or_kleene(pc.is_finite(converted), pc.invert(pc.is_finite(column)))
        if not pc.all(finite, min_count=0).as_py():
            value = column.filter(pc.invert(finite))[0]
            raise pa.ArrowInvalid(f"{value} is too large for {to}")
    elif is_text(kind):
        for value in column.filter(pc.is_inf(converted)).to_pylist():
            if value.strip().lstrip("+-").lower() not in _INFINITE:
                raise pa.ArrowInvalid(f"{value!r:.200} is too large for {to}")


def _entries(column: pa.MapArray) -> list[pa.Array]:
    """Return the keys and the items of all maps."""
    kind = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
    parts: list[pa.Array] = column.cast(pa.list_(kind)).flatten().flatten()
    return parts
