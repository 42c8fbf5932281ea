"""Functions bound to types: the operands of a call, and the kernel that computes it.

A *binder* gets the operands of a call and returns the kernel with the operands that it takes, converted to types that it can
take. Operands that are options of the kernel are read while binding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from ..trees.problems import BindingError

Kernel: TypeAlias = Callable[..., Any]
"""A function from arrays of one length, or scalars in place of some of them, to an array or a scalar."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand: its type, and its `constant` if it is one."""

    type: pa.DataType
    constant: pa.Scalar | None = None

    @property
    def is_null(self) -> bool:
        """True if it has held only nulls so far, and has no type yet."""
        return bool(pa.types.is_null(self.type))

    def option(self) -> Any:
        """Return the Python value of an option."""
        assert self.constant is not None
        return self.constant.as_py()


@dataclass(frozen=True, slots=True)
class Bound:
    """A kernel, and the operands that it takes: the place of each, and the type to convert it to, None for its own.

    `distinct`: its operand may have a dictionary, whose values it computes once. `choice`: for the function `case`, whose values
    are computed only for the rows that take them if one of them fails. `shared`: a kernel that computes the only operand first,
    with a name: calls with equal names compute an operand once.
    """

    kernel: Kernel
    takes: tuple[tuple[int, pa.DataType | None], ...]
    choice: bool = False
    distinct: bool = False
    shared: tuple[tuple[str, ...], Kernel] | None = None


Binder: TypeAlias = Callable[..., Bound]


def nothing(kind: pa.DataType, operands: int = 1) -> Bound:
    """Return a kernel of nulls, for the case that an operand has no type."""

    def nulls(*values: Any) -> Any:
        column = next((each for each in values if not isinstance(each, pa.Scalar)), None)
        return pa.scalar(None, kind) if column is None else pa.nulls(len(column), kind)

    return Bound(nulls, tuple((place, None) for place in range(operands)))


def first_only(kernel: Kernel, kind: pa.DataType | None = None) -> Bound:
    """Return a kernel of the first operand alone, converted to `kind`."""
    return Bound(kernel, ((0, kind),))


def unary(name: str, accepts: Callable[[pa.DataType], bool], expected: str, result: pa.DataType, make: Callable[..., Kernel]) -> Binder:
    """Return the binder of a function of one operand with options.

    `accepts` tells the types, which errors call `expected`; `make` gets the type and the options and returns the kernel;
    `result`: the type of its results for an operand without a type.
    """

    def bind(operand: Operand, *options: Operand) -> Bound:
        if operand.is_null:
            return nothing(result)
        if not accepts(operand.type):
            raise BindingError(f"{name} works on {expected}, got {operand.type}")
        return first_only(make(operand.type, *(each.option() for each in options)))

    return bind
