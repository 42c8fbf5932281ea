"""The common type of two types: the type of a column that came with both.

The invariant: the order of the types makes no difference, so workers that saw them in different orders agree.

>>> wider(pa.null(), pa.string()), wider(pa.float64(), pa.int64())
(DataType(string), DataType(double))
>>> wider(pa.int64(), pa.string()) is None
True
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def wider(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type that holds both, None if there is none.

    Null and any type; integers and floats (together float64, as in SQL); decimals of any scale up to 76 digits; strings; bytes.
    """
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if _is_number(left) and _is_number(right):
        return _number(left, right)
    if pa.types.is_decimal(left) and pa.types.is_decimal(right):
        return _decimal(left, right)
    if _is_text(left) and _is_text(right):
        return pa.large_string()
    return pa.large_binary() if _is_bytes(left) and _is_bytes(right) else None


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values: of a dictionary those that it encodes."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(left) != pa.types.is_integer(right):
        return pa.float64()
    return pa.from_numpy_dtype(np.result_type(left.to_pandas_dtype(), right.to_pandas_dtype()))


def _decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    if precision <= 38 and not pa.types.is_decimal256(left) and not pa.types.is_decimal256(right):
        return pa.decimal128(precision, scale)
    return pa.decimal256(precision, scale) if precision <= 76 else None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind))
