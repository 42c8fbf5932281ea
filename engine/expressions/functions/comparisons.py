"""Comparisons: exact for whole numbers and decimals; NaN equals itself and is greater than all other numbers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...types.widening import is_bytes, is_number, is_text
from ..trees.problems import BindingError
from ..trees.text import SIGNS
from .common_types import aligned, common_type, whole_types
from .operand import Binder, Bound, Kernel, Operand, nothing

_KERNELS: dict[str, Kernel] = {
    "lt": pc.less, "le": pc.less_equal, "gt": pc.greater, "ge": pc.greater_equal, "eq": pc.equal, "ne": pc.not_equal,
}  # fmt: skip
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def comparison(name: str) -> Binder:
    """Return the binder of a comparison."""
    kernel, sign = _KERNELS[name], SIGNS[name]

    def bind(left: Operand, right: Operand) -> Bound:
        one, other = left.type, right.type
        if left.is_null or right.is_null:
            return nothing(pa.bool_(), 2)
        if is_number(one) and is_number(other):
            return _numbers(name, left, right)
        if one == other and (pa.types.is_boolean(one) or pa.types.is_temporal(one)):
            return Bound(kernel, ((0, None), (1, None)))
        if is_text(one) and is_text(other):
            return Bound(kernel, ((0, None), (1, None)))
        if is_bytes(one) and is_bytes(other):
            kind = None if one == other else pa.large_binary()
            return Bound(kernel, ((0, kind), (1, kind)))
        if _are_times(one, other):
            return Bound(kernel, ((0, None), (1, None)))
        raise BindingError(f"{sign} can't compare {one} and {other}{_advice(one, other)}")

    return bind


def _advice(one: pa.DataType, other: pa.DataType) -> str:
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return ": one has a time zone; compare with datetime(..., tzinfo=UTC), or cast one to the other's type"
    if (is_text(one) and pa.types.is_temporal(other)) or (is_text(other) and pa.types.is_temporal(one)):
        return ": give a datetime, a date or a timedelta in place of a text"
    return ""


def _are_times(one: pa.DataType, other: pa.DataType) -> bool:
    types = pa.types
    points = [types.is_timestamp(kind) or types.is_date(kind) for kind in (one, other)]
    if all(points):
        zones = [types.is_timestamp(kind) and kind.tz is not None for kind in (one, other)]
        return zones[0] == zones[1]
    return any(all(map(check, (one, other))) for check in (types.is_duration, types.is_time))


def _numbers(name: str, left: Operand, right: Operand) -> Bound:
    one, other = left.type, right.type
    if pa.types.is_floating(one) or pa.types.is_floating(other):
        kind = pa.float32() if one == other == pa.float32() else pa.float64()
        return Bound(_of_floats(name, left, right), ((0, kind), (1, kind)))
    if pa.types.is_decimal(one) or pa.types.is_decimal(other):
        kind = aligned(one, other)
        return Bound(_KERNELS[name], ((0, kind), (1, kind)))
    first, second = whole_types(left, right)
    if (first or second) is None and pa.types.is_uint64(one) != pa.types.is_uint64(other):
        first = second = pa.decimal128(20, 0)
    return Bound(_KERNELS[name], ((0, first), (1, second)))


def _never_nan(operand: Operand) -> bool:
    """Return True if no value of the operand is NaN."""
    if not pa.types.is_floating(operand.type):
        return True
    value = None if operand.constant is None else operand.constant.as_py()
    return value is not None and value == value  # noqa: PLR0124 -- NaN is the value that differs from itself


def _of_floats(name: str, left: Operand, right: Operand) -> Kernel:
    """Return the kernel of floats: Arrow's, corrected for the operands that may be NaN."""
    if _never_nan(left):
        if _never_nan(right):
            return _KERNELS[name]
        mirrored = _right_number(_MIRRORED[name])
        return lambda a, b: mirrored(b, a)
    return _right_number(name) if _never_nan(right) else _both(name)


def _right_number(name: str) -> Kernel:
    """Return the kernel for a right operand that is never NaN: NaN on the left is greater."""
    if name == "gt":
        return lambda a, b: pc.invert(pc.less_equal(a, b))
    if name == "ge":
        return lambda a, b: pc.invert(pc.less(a, b))
    return _KERNELS[name]


def _both(name: str) -> Kernel:
    if name == "lt":
        return _less
    if name == "le":
        return lambda a, b: pc.or_(pc.less_equal(a, b), pc.is_nan(b))
    if name == "gt":
        return lambda a, b: _less(b, a)
    if name == "ge":
        return lambda a, b: pc.or_(pc.less_equal(b, a), pc.is_nan(a))
    if name == "eq":
        return _equal
    return lambda a, b: pc.invert(_equal(a, b))


def _less(a: Any, b: Any) -> Any:
    return pc.or_(pc.less(a, b), pc.and_not(pc.is_nan(b), pc.is_nan(a)))


def _equal(a: Any, b: Any) -> Any:
    return pc.or_(pc.equal(a, b), pc.and_(pc.is_nan(a), pc.is_nan(b)))


def is_in(operand: Operand, options: Operand) -> Bound:
    """Bind `is_in`: null for null, and if nothing is equal and a null is among the options."""
    assert options.constant is not None
    kind = options.constant.type.value_type
    values = options.constant.values
    if operand.is_null:
        return nothing(pa.bool_())
    if pa.types.is_null(kind):
        values = values.cast(operand.type)
        kind = operand.type
    comparison("eq")(operand, Operand(kind))  # the same types as for ==
    wide = common_type("is_in", [operand.type, kind])
    if any(map(pa.types.is_temporal, (operand.type, kind))) and operand.type != kind:
        wide = operand.type if pa.types.is_timestamp(operand.type) else wide
    exact = values if kind == wide else values.cast(wide)
    has_zeros, has_null = pa.types.is_floating(wide), exact.null_count > 0
    value_set = _one_zero(exact.drop_null()) if has_zeros else exact.drop_null()

    def kernel(column: Any) -> Any:
        found = pc.is_in(_one_zero(column) if has_zeros else column, value_set=value_set)
        if has_null:  # true or unknown
            return pc.if_else(found, found, pa.scalar(None, pa.bool_()))
        null_count = column.null_count if isinstance(column, pa.Array) else 0 if column.is_valid else 1
        return pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_())) if null_count else found

    return Bound(kernel, ((0, None if operand.type == wide else wide),))


def _one_zero(values: Any) -> Any:
    """Return floats with 0.0 in place of -0.0, which Arrow finds different when it looks values up."""
    return pc.add(values, pa.scalar(0.0, values.type))


FUNCTIONS: dict[str, Binder] = {**{name: comparison(name) for name in _KERNELS}, "is_in": is_in}
