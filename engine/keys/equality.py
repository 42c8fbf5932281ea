"""Comparison of key columns with different types of one kind: equal keys are equal in any unit, zone, width and scale; NaN equals
NaN.

>>> left, right = pa.array([1, 2], pa.timestamp("us", "UTC")), pa.array([1000, 1999], pa.timestamp("ns", "Europe/Berlin"))
>>> equal_values(left, right).tolist()
[True, False]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .key_values import PER_SECOND

Mask = npt.NDArray[np.bool_]


def equal_values(left: pa.Array, right: pa.Array) -> Mask:
    """Return a mask of the rows where two key columns are equal, shape (rows,); a null equals nothing."""
    left, right = _plain(left), _plain(right)
    one, other = left.type, right.type
    if pa.types.is_null(one) or pa.types.is_null(other):
        return np.zeros(len(left), np.bool_)
    if pa.types.is_floating(one) and pa.types.is_floating(other):
        return _equal_floats(left, right)
    if one == other:
        return _mask(pc.equal(left, right))
    if _has_unit(one) and _has_unit(other):
        return _equal_counts(left, right)
    if pa.types.is_uint64(one) != pa.types.is_uint64(other):
        return _equal_integers(left, right) if pa.types.is_uint64(one) else _equal_integers(right, left)
    try:
        return _mask(pc.equal(left, right))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # for example decimals without a common Arrow type
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.array([mine is not None and mine == theirs for mine, theirs in pairs], np.bool_)


def differ_in_unit(columns: Sequence[pa.Array]) -> bool:
    """Return True if the columns are times of one kind, or nulls, and their units differ."""
    kinds = [kind for column in columns if not pa.types.is_null(kind := _value_type(column.type))]
    return all(map(_has_unit, kinds)) and len({kind.unit for kind in kinds}) > 1


def whole_and_rest(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return times, or nulls, as whole seconds and the nanoseconds behind them: equal for equal times of any unit and range.

    >>> [each.to_pylist() for each in whole_and_rest(pa.array([-1, None], pa.timestamp("ms")))]
    [[-1, None], [999000000, None]]
    """
    column = _plain(column)
    if pa.types.is_null(column.type):
        nulls = pa.nulls(len(column), pa.int64())
        return nulls, nulls
    per_second, counts = PER_SECOND[column.type.unit], _counts(column)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    rest = counts % per_second * (PER_SECOND["ns"] // per_second)
    return pa.array(counts // per_second, mask=missing), pa.array(rest, mask=missing)


def _mask(equal: pa.Array) -> Mask:
    mask: Mask = equal.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    return column.cast(pa.date32()) if pa.types.is_date64(column.type) else column


def _equal_floats(left: pa.Array, right: pa.Array) -> Mask:
    equal = _mask(pc.equal(left, right))
    if equal.all():
        return equal
    return equal | (_mask(pc.is_nan(left)) & _mask(pc.is_nan(right)))


def _has_unit(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time(kind))


def _equal_counts(left: pa.Array, right: pa.Array) -> Mask:
    """Compare times of different units without conversion, which might overflow. Zones only affect how instants are displayed."""
    if PER_SECOND[left.type.unit] > PER_SECOND[right.type.unit]:
        left, right = right, left
    factor = PER_SECOND[right.type.unit] // PER_SECOND[left.type.unit]
    coarse, fine = _counts(left), _counts(right)
    valid = _mask(pc.is_valid(left)) & _mask(pc.is_valid(right))
    equal: Mask = valid & (fine // factor == coarse) & (fine % factor == 0)
    return equal


def _counts(column: pa.Array) -> npt.NDArray[np.int64]:
    counts = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()).fill_null(0)
    return counts.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _equal_integers(large: pa.Array, other: pa.Array) -> Mask:
    """Compare uint64 in `large` with other integers, which can't equal its greatest values."""
    mine, theirs = large.fill_null(0).to_numpy(), other.cast(pa.int64()).fill_null(0).to_numpy()
    valid = _mask(pc.is_valid(large)) & _mask(pc.is_valid(other))
    equal: Mask = valid & (theirs >= 0) & (mine == theirs.view(np.uint64))
    return equal
