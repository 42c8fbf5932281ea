"""An expression bound to the types of its columns: steps in their order, each a kernel of earlier results.

Equal parts of all its expressions are one step. Types are found by running the steps on no rows.

>>> from .expression import col
>>> rows = pa.record_batch({"price": [10, None], "qty": [2, 3]})
>>> program = Program([(col("price") * col("qty") + 1).tree, (col("price") * col("qty")).tree], rows.schema)
>>> [values.to_pylist() for values in program.run(rows)], program.types, len(program.steps)
([[21, None], [20, None]], [DataType(int64), DataType(int64)], 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .functions.distinct import encoded_if_repeated
from .functions.operand import Kernel, Operand
from .functions.python_function import python_function
from .functions.registry import FUNCTIONS
from .trees.problems import BindingError, EvaluationError, missing_column
from .trees.text import text_of
from .trees.tree import Call, Column, Literal, PythonCall, Tree

FAILURES = (pa.ArrowException, EvaluationError, OverflowError, ValueError)
"""The errors of kernels."""


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel, the slots of its arguments, the slot of its result, and the expression that it computes.

    `choice`: it is a `case`, whose arguments are conditions and values in turn, then another value.
    """

    kernel: Kernel
    arguments: tuple[int, ...]
    slot: int
    choice: bool


class Program:
    """The expressions `trees`, bound to the columns of `schema`. Raises BindingError if they don't fit them."""

    def __init__(self, trees: Sequence[Tree], schema: pa.Schema) -> None:
        self.schema = schema
        self.steps: list[Step] = []
        self._operands: list[Operand] = []
        self._slots: dict[Any, int] = {}
        self._columns: list[tuple[int, int, pa.DataType | None]] = []
        self._place: dict[str, int] = {}
        for place, name in enumerate(schema.names):
            self._place[name] = -1 if name in self._place else place
        self.results = [self._bound_whole(tree) for tree in trees]
        self.types = [self._operands[slot].type for slot in self.results]
        self.chooses = any(step.choice for step in self.steps)
        self._blank: list[Any] = [operand.constant for operand in self._operands]

    def run(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the values of each expression, one for each row. Raises one of FAILURES."""
        values = self.loaded(rows)
        for step in self.steps:
            values[step.slot] = step.kernel(*[values[argument] for argument in step.arguments])
        return [spread(values[slot], rows.num_rows) for slot in self.results]

    def loaded(self, rows: pa.RecordBatch) -> list[Any]:
        """Return the slots with the columns of `rows` and the constants; those of steps are empty."""
        values = self._blank.copy()
        for slot, place, kind in self._columns:
            column = rows.column(place)
            values[slot] = column if kind is None else column.cast(kind)
        return values

    def _bound_whole(self, tree: Tree) -> int:
        try:
            return self._bound(tree)
        except BindingError as error:
            raise BindingError(f"{error}, in {text_of(tree):.500}" if isinstance(tree, Call) else str(error)) from error

    def _bound(self, tree: Tree) -> int:
        """Return the slot of a tree."""
        known = self._slots.get(tree)
        if known is None:
            known = self._slots[tree] = self._call(tree) if isinstance(tree, Call) else self._leaf(tree)
        return known

    def _leaf(self, tree: Column | Literal) -> int:
        if isinstance(tree, Literal):
            return self._slot(Operand(tree.value.type, tree.value))
        place = self._place.get(tree.name)
        if place is None:
            raise BindingError(missing_column(tree.name, self.schema.names))
        if place < 0:
            raise BindingError(f"there is more than one column `{tree.name}`; there are: {', '.join(self.schema.names)}")
        kind = self.schema.field(place).type
        plain = _plain(kind)
        slot = self._slot(Operand(plain))
        self._columns.append((slot, place, None if plain == kind else plain))
        return slot

    def _slot(self, operand: Operand) -> int:
        self._operands.append(operand)
        return len(self._operands) - 1

    def _call(self, tree: Call) -> int:
        binder = python_function(tree) if isinstance(tree, PythonCall) else FUNCTIONS.get(tree.name)
        if binder is None:
            raise BindingError(f"the function {tree.name} is unknown")
        slots = [self._bound(argument) for argument in tree.arguments]
        bound = binder(*(self._operands[slot] for slot in slots))
        arguments = tuple(self._converted(slots[place], kind) for place, kind in bound.takes)
        if bound.distinct:
            arguments = tuple(map(self._encoded, arguments))
        if bound.shared is not None:
            arguments = tuple(self._shared(argument, *bound.shared) for argument in arguments)
        return self._step(bound.kernel, arguments, choice=bound.choice)

    def _converted(self, slot: int, kind: pa.DataType | None) -> int:
        """Return the slot of the same values as another type."""
        if kind is None or kind == self._operands[slot].type:
            return slot
        known = self._slots.get((slot, kind))
        if known is None:
            known = self._slots[slot, kind] = self._step(lambda values: converted(values, kind), (slot,))
        return known

    def _encoded(self, slot: int) -> int:
        """Return the slot of the same values, with a dictionary where they repeat."""
        known = self._slots.get((slot, "encoded"))
        if known is None:
            known = self._slots[slot, "encoded"] = self._step(encoded_if_repeated, (slot,))
        return known

    def _shared(self, slot: int, name: tuple[str, ...], kernel: Kernel) -> int:
        """Return the slot of what the kernel `name` computes."""
        known = self._slots.get((slot, name))
        if known is None:
            known = self._slots[slot, name] = self._step(kernel, (slot,))
        return known

    def _step(self, kernel: Kernel, arguments: tuple[int, ...], *, choice: bool = False) -> int:
        """Return the slot of a new step, or of its value if all arguments are constants."""
        operands = [self._operands[argument] for argument in arguments]
        constants = [operand.constant for operand in operands]
        try:
            if None not in constants:
                value = kernel(*(pa.repeat(constant, 1) for constant in constants))[0]
                return self._slot(Operand(value.type, value))
            empty = (pa.array([], each.type) if each.constant is None else each.constant for each in operands)
            kind = kernel(*empty).type
        except FAILURES as error:
            raise BindingError(reason(error)) from error
        slot = self._slot(Operand(kind))
        self.steps.append(Step(kernel, arguments, slot, choice))
        return slot


def spread(values: Any, count: int) -> pa.Array:
    """Return the array, or a scalar as an array of `count` rows."""
    return pa.repeat(values, count) if isinstance(values, pa.Scalar) else values


def converted(values: Any, kind: pa.DataType) -> Any:
    """Return an array or scalar as another type; whole numbers and decimals become the closest float."""
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), kind) if isinstance(values, pa.Array) else pa.scalar(None, kind)
    return pc.cast(values, kind, safe=not pa.types.is_floating(kind))


def reason(error: BaseException) -> str:
    """Return the text of an error of a kernel."""
    text = str(error)
    return {"overflow": "the result overflows its type", "divide by zero": "division by zero"}.get(text, text)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type without a dictionary, or a view that Arrow has no kernels for."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind
