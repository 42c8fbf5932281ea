"""The common type of operands that are compared, chosen from, or computed with.

>>> common_type("case", [pa.int64(), pa.decimal128(10, 2)]), common_type("case", [pa.int32(), pa.float32()])
(Decimal128Type(decimal128(21, 2)), DataType(double))
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ...types.widening import is_text, wider
from ..trees.problems import BindingError
from .operand import Operand

MOST_DIGITS = 38
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""The digits of a whole number by its bits; uint64 has one more."""


def common_type(name: str, kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type that holds all; whole numbers and decimals with floats are float64. Raises BindingError if there is none."""
    found = pa.null()
    for kind in kinds:
        joined = _joined(found, kind)
        if joined is None:
            raise BindingError(f"{name} can't combine {found} and {kind}")
        found = joined
    return found


def _joined(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if left == right or pa.types.is_null(right):
        return left
    floats = [pa.types.is_floating(kind) for kind in (left, right)]
    numbers = [is_exact(kind) or pa.types.is_floating(kind) for kind in (left, right)]
    if any(floats) and all(numbers):
        return pa.float64()
    if any(map(pa.types.is_decimal, (left, right))) and all(numbers):
        return aligned(left, right)
    if pa.types.is_uint64(left) != pa.types.is_uint64(right) and all(map(pa.types.is_integer, (left, right))):
        signed = right if pa.types.is_uint64(left) else left
        return pa.uint64() if pa.types.is_unsigned_integer(signed) else aligned(left, right)
    if is_text(left) and is_text(right):
        return pa.large_string()
    return wider(left, right)


def is_exact(kind: pa.DataType) -> bool:
    """Return True for whole numbers and decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """Return the decimal that holds all values of a whole number's type, or a decimal of at least 128 bits."""
    if pa.types.is_integer(kind):
        return pa.decimal128(_DIGITS[kind.bit_width] + pa.types.is_uint64(kind), 0)
    return kind if kind.bit_width >= 128 else pa.decimal128(kind.precision, kind.scale)


def aligned(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the decimal that holds all values of both, of up to 76 digits."""
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    if precision > 2 * MOST_DIGITS:
        raise BindingError(f"no type holds {left} and {right}: cast one to fewer digits")
    return pa.decimal128(precision, scale) if precision <= MOST_DIGITS else pa.decimal256(precision, scale)


def whole_types(left: Operand, right: Operand) -> tuple[pa.DataType | None, pa.DataType | None]:
    """Return the types to convert two whole numbers to, before they are computed with.

    Arrow takes uint64 and a type with a sign as int64, so constants that are not negative become uint64.
    """
    for one, other, swapped in ((left, right, False), (right, left, True)):
        value = other.constant
        if pa.types.is_uint64(one.type) and value is not None and value.is_valid and value.as_py() >= 0:
            return (pa.uint64(), None) if swapped else (None, pa.uint64())
    return None, None
