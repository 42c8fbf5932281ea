"""SQL's three-valued logic, nulls, choices and casts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...types.casting import cast as casting
from ..trees.problems import BindingError
from ..trees.text import SIGNS
from .common_types import common_type
from .operand import Binder, Bound, Kernel, Operand, first_only, nothing


def _logic(name: str, kernel: Kernel) -> Binder:
    def bind(left: Operand, right: Operand) -> Bound:
        _check_booleans(SIGNS[name], left, right)
        return Bound(kernel, ((0, pa.bool_()), (1, pa.bool_())))

    return bind


def _check_booleans(name: str, *operands: Operand) -> None:
    wrong = next((each.type for each in operands if not (each.is_null or pa.types.is_boolean(each.type))), None)
    if wrong is not None:
        raise BindingError(f"{name} works on booleans, got {wrong}")


def negation(operand: Operand) -> Bound:
    """Bind `~`."""
    _check_booleans("~", operand)
    return first_only(pc.invert, pa.bool_())


def is_nan(operand: Operand) -> Bound:
    """Bind `is_nan`."""
    if operand.is_null:
        return nothing(pa.bool_())
    if not (pa.types.is_floating(operand.type) or pa.types.is_integer(operand.type) or pa.types.is_decimal(operand.type)):
        raise BindingError(f"is_nan works on numbers, got {operand.type}")
    return first_only(pc.is_nan)


def fill_null(operand: Operand, value: Operand) -> Bound:
    """Bind `fill_null`."""
    kind = common_type("fill_null", [operand.type, value.type])
    return Bound(pc.coalesce, ((0, kind), (1, kind)))


def choice(*operands: Operand) -> Bound:
    """Bind `case`: conditions and values in turn, then the value of all other rows."""
    conditions, values = operands[:-1:2], (*operands[1::2], operands[-1])
    _check_booleans("when", *conditions)
    kind = common_type("when", [value.type for value in values])
    *pairs, other = range(len(operands))
    takes = tuple((place, pa.bool_() if place % 2 == 0 else kind) for place in pairs)
    return Bound(_chosen, (*takes, (other, kind)), choice=True)


def _chosen(*arguments: Any) -> Any:
    *pairs, result = arguments
    for condition, value in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        result = pc.if_else(pc.coalesce(condition, pa.scalar(False)), value, result)
    return result


def cast(operand: Operand, to: Operand) -> Bound:
    """Bind `cast`."""
    assert to.constant is not None
    kind = to.type
    if operand.is_null:
        return nothing(kind)
    return first_only(lambda values: casting(values, kind))


FUNCTIONS: dict[str, Binder] = {
    "and": _logic("and", pc.and_kleene),
    "or": _logic("or", pc.or_kleene),
    "not": negation,
    "is_null": lambda operand: first_only(pc.is_null),
    "is_not_null": lambda operand: first_only(pc.is_valid),
    "is_nan": is_nan,
    "fill_null": fill_null,
    "case": choice,
    "cast": cast,
}
