"""The tree of an expression: plain data, equal if it means the same, small when pickled.

>>> double = Call("mul", (Column("price"), Literal(pa.scalar(2))))
>>> double == Call("mul", (Column("price"), Literal(pa.scalar(2)))), sorted(columns_of(double))
(True, ['price'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a column."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """One value for all rows, or an option of a function."""

    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class Call:
    """The function `name` of its arguments; `functions/registry.py` lists the functions."""

    name: str
    arguments: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class PythonCall(Call):
    """A user's Python function of its arguments, called for each row; `kind`: the type of its results."""

    function: Callable[..., Any]
    kind: pa.DataType


Tree: TypeAlias = Column | Literal | Call


def columns_of(tree: Tree) -> frozenset[str]:
    """Return the names of the columns that it reads."""
    if isinstance(tree, Column):
        return frozenset({tree.name})
    return columns_of_all(tree.arguments) if isinstance(tree, Call) else frozenset()


def columns_of_all(trees: Iterable[Tree]) -> frozenset[str]:
    """Return the names of the columns that these trees read."""
    return frozenset[str]().union(*map(columns_of, trees))
