"""The order of rows by several columns, as integers that numpy sorts.

It is the order of `min` and `max`: NaN is larger than any number, strings are compared by their UTF-8 bytes. Nulls come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]

_SIGN = np.uint64(1 << 63)


def has_order(kind: pa.DataType) -> bool:
    """Return True if values of the type can be compared."""
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind))


def order_keys(column: pa.Array, *, one_zero: bool = False) -> Ints:
    """Return integers in the order of the values, shape (rows,); equal values have equal ones. Nulls have any.

    -0.0 comes before 0.0, so that equal keys mean equal rows; with `one_zero` they are equal.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64)
    if pa.types.is_floating(kind):
        values = column.cast(pa.float64()).fill_null(0.0).to_numpy()
        return _of_floats(values + 0.0 if one_zero else values)
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    if pa.types.is_integer(column.type):
        values = column.fill_null(0).to_numpy()
        if values.dtype == np.uint64:
            values = (values ^ _SIGN).view(np.int64)
        keys: Ints = values.astype(np.int64, copy=False)
        return keys
    encoded = column.dictionary_encode()
    rank = np.empty(len(encoded.dictionary), np.int64)
    rank[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(rank))
    return rank[encoded.indices.fill_null(0).to_numpy()] if len(rank) else np.zeros(len(column), np.int64)


def sort_keys(columns: Sequence[tuple[pa.Array, bool]]) -> list[npt.NDArray[Any]]:
    """Return keys for `np.lexsort`, the first column first, of columns that each fall (True) or rise."""
    keys: list[npt.NDArray[Any]] = []
    for column, falling in columns:
        if column.null_count and not pa.types.is_null(column.type):
            keys.append(column.is_null().to_numpy(zero_copy_only=False))
        of_values = order_keys(column)
        keys.append(~of_values if falling else of_values)
    return keys


def _of_floats(values: npt.NDArray[np.float64]) -> Ints:
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    keys: Ints = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return keys
