"""Arithmetic: exact for whole numbers and decimals, or an error; IEEE 754 for floats.

Whole numbers and decimals with floats become float64. `/` is a float, also of two whole numbers, as in Python. `//` and `%` round
down, so a remainder has the sign of its divisor, as in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...types.widening import is_number
from ..trees.problems import BindingError, EvaluationError
from ..trees.text import SIGNS
from .common_types import MOST_DIGITS, as_decimal, is_exact, whole_types
from .operand import Binder, Bound, Kernel, Operand, first_only, nothing, unary

_ADD, _SUBTRACT, _MULTIPLY = (pc.get_function(f"{name}_checked") for name in ("add", "subtract", "multiply"))


def _called(function: pc.Function) -> Kernel:
    return lambda a, b: function.call([a, b])


def arithmetic(name: str, function: pc.Function, times: Callable[[pa.DataType, pa.DataType], bool]) -> Binder:
    """Return the binder of `+`, `-` or `*`; `times` tells which types with a time it takes."""
    kernel, sign = _called(function), SIGNS[name]

    def bind(left: Operand, right: Operand) -> Bound:
        one, other = left.type, right.type
        if left.is_null or right.is_null:
            return nothing(pa.null(), 2)
        if is_number(one) and is_number(other):
            if pa.types.is_floating(one) or pa.types.is_floating(other):
                kind = _float(one, other)
                return Bound(kernel, ((0, kind), (1, kind)))
            if pa.types.is_decimal(one) or pa.types.is_decimal(other):
                return _decimals(name, kernel, one, other)
            first, second = whole_types(left, right)
            return Bound(kernel, ((0, first), (1, second)))
        if times(one, other):
            first, second = (_plain_date(kind) for kind in (one, other))
            return Bound(kernel, ((0, first), (1, second)))
        raise BindingError(f"{sign} can't combine {one} and {other}")

    return bind


def _plain_date(kind: pa.DataType) -> pa.DataType | None:
    """Return seconds for dates: Arrow can't add a duration to a date64."""
    return pa.timestamp("s") if pa.types.is_date(kind) else None


def _float(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    narrow = all(pa.types.is_floating(kind) and kind.bit_width <= 32 for kind in (left, right))
    return pa.float32() if narrow else pa.float64()


def _decimals(name: str, kernel: Kernel, left: pa.DataType, right: pa.DataType) -> Bound:
    """Bind an operation of decimals whose result has at most 38 digits, or 76 if an operand has more than 38."""
    one, other = as_decimal(left), as_decimal(right)
    if name == "mul":
        scale, needed = one.scale + other.scale, one.precision + other.precision + 1
    else:
        scale = max(one.scale, other.scale)
        needed = max(one.precision - one.scale, other.precision - other.scale) + scale + 1
    wide = any(kind.precision > MOST_DIGITS for kind in (one, other))
    if needed <= MOST_DIGITS:
        return Bound(kernel, ((0, one), (1, other)))
    most = 2 * MOST_DIGITS if wide else MOST_DIGITS
    if scale > most or (wide and needed > most):
        sign = SIGNS[name]
        raise BindingError(f"{sign} of {left} and {right} needs {max(needed, scale)} digits, more than {most}: cast one to fewer digits")
    result = pa.decimal128(MOST_DIGITS, scale) if not wide else pa.decimal256(min(needed, most), scale)
    narrower = 2 * MOST_DIGITS - one.precision - 1  # the product of two decimals of 38 digits would need 77

    def capped(a: Any, b: Any) -> Any:
        a, b = _wide(a, one.precision), _wide(b, min(other.precision, narrower) if name == "mul" else other.precision)
        return kernel(a, b).cast(result)

    return Bound(capped, ((0, one), (1, other)))


def _wide(values: Any, precision: int) -> Any:
    """Return decimals as decimals of 256 bits that claim `precision` digits. Arrow computes its results' digits from the claim."""
    if isinstance(values, pa.Scalar):
        return _wide(pa.array([values.as_py()], values.type), precision)[0]
    values = values.cast(pa.decimal256(values.type.precision, values.type.scale))
    if values.type.precision == precision:
        return values
    return pa.Array.from_buffers(pa.decimal256(precision, values.type.scale), len(values), values.buffers(), offset=values.offset)


def divide(left: Operand, right: Operand) -> Bound:
    """Bind `/`: a float64, or float32 of two of these."""
    _check_numbers("/", left, right)
    if left.is_null or right.is_null:
        return nothing(pa.float64(), 2)
    exact = is_exact(left.type) and is_exact(right.type)
    kind = pa.float64() if exact else _float(left.type, right.type)
    return Bound(pc.divide_checked if exact else pc.divide, ((0, kind), (1, kind)))


def truncating(left: Operand, right: Operand) -> Bound:
    """Bind SQL's division: of whole numbers a whole number, rounded toward zero; of others as `/`."""
    _check_numbers("/", left, right)
    if left.is_null or right.is_null:
        return nothing(pa.null(), 2)
    if not (pa.types.is_integer(left.type) and pa.types.is_integer(right.type)):
        return divide(left, right)
    first, second = whole_types(left, right)
    return Bound(pc.divide_checked, ((0, first), (1, second)))


def rounding_down(name: str, function: Callable[..., Any]) -> Binder:
    """Return the binder of `//` or `%`, by the function of numpy."""
    sign = SIGNS.get(name, "%")

    def bind(left: Operand, right: Operand) -> Bound:
        _check_numbers(sign, left, right)
        if left.is_null or right.is_null:
            return nothing(pa.null(), 2)
        if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
            raise BindingError(f"{sign} works on whole numbers and floats, got {left.type} and {right.type}: cast decimals first")
        if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
            kind = _float(left.type, right.type)
            return Bound(_vectorised(function, whole=False), ((0, kind), (1, kind)))
        first, second = whole_types(left, right)
        kind = first or second or _whole(left.type, right.type)
        return Bound(_vectorised(function, whole=True), ((0, kind), (1, kind)))

    return bind


def _whole(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type that Arrow gives the sum of two whole numbers."""
    return _ADD.call([pa.array([], left), pa.array([], right)]).type


def _vectorised(function: Callable[..., Any], *, whole: bool) -> Kernel:
    def kernel(a: Any, b: Any) -> pa.Array:
        valid = pc.and_(pc.is_valid(a), pc.is_valid(b))
        (left, right), count = (_numpy(values) for values in (a, b)), max(len(v) for v in (a, b) if isinstance(v, pa.Array))
        there = valid.to_numpy(zero_copy_only=False) if isinstance(valid, pa.Array) else np.full(count, valid.as_py())
        if whole:
            _check_whole(function, left, right, there)
        with np.errstate(all="ignore"):
            results = np.broadcast_to(function(left, right), (count,))
        return pa.array(results, mask=None if there.all() else ~there)

    return kernel


def _check_whole(function: Callable[..., Any], left: Any, right: Any, there: Any) -> None:
    """Raise EvaluationError for a division by zero, and for the one quotient that overflows."""
    if np.any((right == 0) & there):
        raise EvaluationError("division by zero")
    kind = right.dtype
    if function is np.floor_divide and kind.kind == "i" and np.any((right == -1) & (left == np.iinfo(kind).min) & there):
        raise EvaluationError("overflow")


def _numpy(values: Any) -> Any:
    """Return whole numbers or floats as a numpy array or scalar; 1 in place of null."""
    if isinstance(values, pa.Scalar):
        return np.asarray(values.as_py() if values.is_valid else 1, values.type.to_pandas_dtype())
    return (values.fill_null(1) if values.null_count else values).to_numpy()


def _check_numbers(sign: str, left: Operand, right: Operand) -> None:
    if not all(operand.is_null or is_number(operand.type) for operand in (left, right)):
        raise BindingError(f"{sign} can't combine {left.type} and {right.type}")


def power(left: Operand, right: Operand) -> Bound:
    """Bind `**`: a float64, exact for whole numbers, which must not have a negative exponent."""
    _check_numbers("**", left, right)
    if left.is_null or right.is_null:
        return nothing(pa.null(), 2)
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        first, second = whole_types(left, right)
        return Bound(pc.power_checked, ((0, first), (1, second)))
    return Bound(pc.power, ((0, pa.float64()), (1, pa.float64())))


def negative(operand: Operand) -> Bound:
    """Bind the unary minus."""
    if operand.is_null:
        return nothing(pa.null())
    kind = operand.type
    if pa.types.is_unsigned_integer(kind):
        raise BindingError(f"- works on numbers with a sign, got {kind}: cast it to int64")
    if not (is_number(kind) or pa.types.is_duration(kind)):
        raise BindingError(f"- works on numbers and durations, got {kind}")
    return first_only(pc.negate_checked, as_decimal(kind) if pa.types.is_decimal(kind) else None)


def _duration_sum(left: pa.DataType, right: pa.DataType) -> bool:
    times = [pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in (left, right)]
    durations = [pa.types.is_duration(kind) for kind in (left, right)]
    return all(durations) or (any(times) and any(durations))


def _duration_difference(left: pa.DataType, right: pa.DataType) -> bool:
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right):
        return (left.tz is None) == (right.tz is None)
    return (pa.types.is_date(left) and pa.types.is_date(right)) or (_duration_sum(left, right) and pa.types.is_duration(right))


def _duration_product(left: pa.DataType, right: pa.DataType) -> bool:
    return any(pa.types.is_duration(kind) for kind in (left, right)) and any(pa.types.is_integer(kind) for kind in (left, right))


def _absolute(kind: pa.DataType) -> Kernel:
    return lambda values: pc.abs_checked(values.cast(as_decimal(kind)) if pa.types.is_decimal(kind) else values)


def _rounded(kind: pa.DataType, decimals: int) -> Kernel:
    return lambda values: pc.round(values, decimals).cast(kind)


def _same_type(function: Kernel) -> Callable[..., Kernel]:
    return lambda kind: lambda values: function(values).cast(kind)


def _of_floats(function: Kernel) -> Callable[..., Kernel]:
    return lambda kind: lambda values: function(values.cast(pa.float64(), safe=False))


FUNCTIONS: dict[str, Binder] = {
    "add": arithmetic("add", _ADD, _duration_sum),
    "sub": arithmetic("sub", _SUBTRACT, _duration_difference),
    "mul": arithmetic("mul", _MULTIPLY, _duration_product),
    "truediv": divide,
    "floordiv": rounding_down("floordiv", np.floor_divide),
    "mod": rounding_down("mod", np.remainder),
    "truncdiv": truncating,
    "rem": rounding_down("rem", np.fmod),
    "pow": power,
    "neg": negative,
    "abs": unary("abs", is_number, "numbers", pa.null(), _absolute),
    "round": unary("round", is_number, "numbers", pa.null(), _rounded),
    "floor": unary("floor", is_number, "numbers", pa.null(), _same_type(pc.floor)),
    "ceil": unary("ceil", is_number, "numbers", pa.null(), _same_type(pc.ceil)),
    "sqrt": unary("sqrt", is_number, "numbers", pa.float64(), _of_floats(pc.sqrt)),
    "exp": unary("exp", is_number, "numbers", pa.float64(), _of_floats(pc.exp)),
    "log": unary("log", is_number, "numbers", pa.float64(), _of_floats(pc.ln)),
}
