"""Conversions of columns to types that a user names, which may hold fewer values.

>>> cast(pa.array([1]), pa.decimal128(3, 2)).to_pylist()
[Decimal('1.00')]
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the column as `kind`.

    Arrow refuses all integers for a decimal with fewer digits than their type, so they become a wide decimal first. Arrow gives
    infinity for a number that is too large for a float of fewer bits; here it is an error. Raises ArrowInvalid for a value that
    doesn't fit, ArrowNotImplementedError for types that can't be converted.
    """
    if pa.types.is_decimal(kind) and pa.types.is_integer(column.type):
        column = column.cast(pa.decimal128(20, 0)).cast(pa.decimal256(76, kind.scale) if kind.scale > 18 else pa.decimal128(38, kind.scale))
    converted = column.cast(kind)
    if pa.types.is_floating(kind) and pa.types.is_floating(column.type) and kind.bit_width < column.type.bit_width:
        finite = pc.or_kleene(pc.is_finite(converted), pc.invert(pc.is_finite(column)))
        if not pc.all(finite, min_count=0).as_py():
            value = column.filter(pc.invert(finite))[0]
            raise pa.ArrowInvalid(f"{value} is too large for {kind}")
    return converted
