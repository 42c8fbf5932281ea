"""The type of a column of Python values that arrive batch by batch; it widens when a value needs it.

>>> column = ValueColumn("v")
>>> for values in ([1, None], [2.5], [3]):
...     column.learn(array := column.encoded(values))
...     print(array.type, array.to_pylist())
int64 [1, None]
double [2.5]
double [3.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import is_
from typing import Any

import numpy as np
import pyarrow as pa

from .python_values import REFUSALS, array_of
from .widening import value_type, wider


@dataclass(frozen=True, slots=True)
class Misfit:
    """The first value that doesn't fit the column, at `place` of a batch.

    `kind`: the type of the column before this value, None if it had none.
    """

    name: str
    place: int
    value: Any
    kind: pa.DataType | None
    declared: bool
    in_batch: bool

    def problem(self, source: str = "") -> str:
        """Return the text for errors, without advice; `source` says whose value it is."""
        kind, got = _guess(self.value), f"got {shown(self.value)} ({_described(self.value)}){source}"
        if self.kind is None:
            return f"column `{self.name}` must have a type that Arrow has, {got}"
        where = "in schema" if self.declared else "in the rows before" if self.in_batch else "in this stream"
        found = f"column `{self.name}` is {self.kind} {where}, {got}"
        if self.declared:
            return f"{found}, which would change" if kind is not None and wider(self.kind, kind) is not None else found
        if kind is None:
            return f"{found}, which has no type in Arrow"
        if wider(self.kind, kind) is None:
            return f"{found}, and no type holds {self.kind} and {kind}"
        return f"{found}, and {wider(self.kind, kind)}, which holds both types, can't hold all values exactly"


class ValueColumn:
    """The type of a column so far. `declared`: it is the user's, and no value may change to fit it.

    A declared null type counts as none: the first value decides. `exact`: the values must be of the declared type's kind, so
    that 2.0 is no whole number.
    """

    __slots__ = ("declared", "exact", "kind", "name")

    def __init__(self, name: str, declared: pa.DataType | None = None, *, exact: bool = False) -> None:
        self.kind = None if declared is None or pa.types.is_null(declared) else declared
        """The type so far, None before the first value."""
        self.name, self.declared, self.exact = name, self.kind is not None, exact

    def encoded(self, values: Sequence[Any], like: pa.DataType | None = None) -> pa.Array:
        """Return the values in the column's type, or in a wider one.

        `like`: a type that the column takes if it has none and all values fit. Raises one of `REFUSALS` for values that no type
        holds.
        """
        if self.declared:
            return array_of(values, self.kind, declared=not self.exact)
        wanted = self.kind
        if wanted is None and (wanted := _usable(like)) is not None and all(map(is_, values, repeat(None))):
            wanted = None  # nulls alone say nothing about the values that follow
        if wanted is None:
            return array_of(values)
        try:
            return array_of(values, wanted)
        except REFUSALS:
            guess = array_of(values)
        if self.kind is None:
            return guess
        kind = wider(self.kind, guess.type)
        if kind is None:
            raise TypeError(f"no type holds {self.kind} and {guess.type}")
        return array_of(values, kind)

    def learn(self, array: pa.Array) -> None:
        """Use the type of `array`, which `encoded` returned, from now on."""
        if not self.declared and not pa.types.is_null(array.type):
            self.kind = array.type

    def first_misfit(self, values: Sequence[Any]) -> Misfit:
        """Return the first value that doesn't fit with those before it, given that there is one."""
        fits, fails = 0, len(values)
        while fails - fits > 1:
            middle = (fits + fails) // 2
            fits, fails = (middle, fails) if self._type_with(values[:middle]) is not None else (fits, middle)
        place = fails - 1
        before = self._type_with(values[:place]) if place else self.kind
        kind = None if before is None or pa.types.is_null(before) else before
        return Misfit(self.name, place, values[place], kind, self.declared, in_batch=self.kind is None)

    def _type_with(self, values: Sequence[Any]) -> pa.DataType | None:
        try:
            return self.encoded(values).type
        except REFUSALS:
            return None


def column_of(name: str, values: Any) -> pa.Array:
    """Convert the result of a user's function to a column: a list, or an array of numpy, pandas or Arrow, which keeps its type.

    Raises TypeError, naming the column, for values of a list that have no type in common, and Arrow's errors.
    """
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.tolist()
    if not isinstance(values, (list, tuple)):
        column = pa.array(values)
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    made = ValueColumn(name)
    try:
        return made.encoded(values)
    except REFUSALS as error:
        raise TypeError(made.first_misfit(values).problem()) from error


def _usable(like: pa.DataType | None) -> pa.DataType | None:
    """Return the type that values computed from an input column of the type `like` may take, None if it says nothing."""
    if like is None or pa.types.is_null(like) or isinstance(like, pa.BaseExtensionType):
        return None
    return value_type(like)


def _guess(value: Any) -> pa.DataType | None:
    try:
        return array_of([value]).type
    except REFUSALS:
        return None


def _described(value: Any) -> str:
    """Return the Python type of a value, with Arrow's if that says more."""
    kind = _guess(value)
    return type(value).__name__ if kind is None or not pa.types.is_nested(kind) else f"{type(value).__name__}, {kind}"


def shown(value: Any) -> str:
    """Return the text of a value, which may be a user's object."""
    try:
        return f"{value!r:.200}"
    except Exception as error:  # noqa: BLE001 -- a user's __repr__ may raise anything
        return f"an object whose __repr__ raises {type(error).__name__}"
