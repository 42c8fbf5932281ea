"""The columns of a join's results: left's, then right's. A key column with the same name on both sides appears once.

Any other column of right with the name of one of left's gets a suffix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from ..batch import Batch, Times
from ..errors import RecordError
from ..protocol.split_route import Dealt
from ..types.exact import Inexact, exactly
from .block import Block
from .key_types import common_type
from .matching import plain

How: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]

DEALABLE: dict[How, tuple[Dealt, ...]] = {
    "inner": ("left", "right"), "left": ("left",), "right": ("right",), "full": (), "semi": ("left",), "anti": ("left",),
}  # fmt: skip
"""The sides whose rows may be dealt over several workers.

A copied row is at several workers, and none of them knows if it has a partner at another.
"""


class JoinColumns:
    """The layout of a join's results. `left_keys`, `right_keys`: the key columns, in pairs; `how`: the rows that are emitted."""

    def __init__(self, operator: str, left_keys: tuple[str, ...], right_keys: tuple[str, ...], suffix: str, how: How) -> None:
        self._operator, self._suffix = operator, suffix
        self._shared = shared_keys(left_keys, right_keys)
        self._wide = how in ("right", "full")
        """True if a key column of both sides may have keys of right that left's type can't hold."""
        self._checked: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._names: dict[str, str] = {}

    def pairs(self, left: pa.RecordBatch, right: pa.RecordBatch, times: Times | None) -> Batch:
        """Return pairs of rows as result rows."""
        names = self._right_names(left.schema, right.schema)
        left = self._widened(left, right.schema)
        columns = [*left.columns, *(right.column(name) for name in names)]
        return Batch(pa.RecordBatch.from_arrays(columns, names=[*left.schema.names, *names.values()]), times)

    def left_only(self, left: pa.RecordBatch, right: pa.Schema | None, times: Times | None) -> Batch:
        """Return rows of left with nulls for right's columns; without these while they are unknown."""
        names = {} if right is None else self._right_names(left.schema, right)
        nulls = [pa.nulls(left.num_rows, right.field(name).type) for name in names] if right is not None else []
        left = left if right is None else self._widened(left, right)
        return Batch(pa.RecordBatch.from_arrays([*left.columns, *nulls], names=[*left.schema.names, *names.values()]), times)

    def right_only(self, left: pa.Schema | None, right: pa.RecordBatch, times: Times | None) -> Batch:
        """Return rows of right with nulls for left's columns; without these while they are unknown.

        Key columns with the same name on both sides have right's key.
        """
        if left is None:
            return Batch(right, times)
        names = self._right_names(left, right.schema)
        columns = [
            self._cast(field.name, right.column(field.name), field.type, right.schema.field(field.name).type)
            if field.name in self._shared
            else pa.nulls(right.num_rows, field.type)
            for field in left
        ]
        columns += [right.column(name) for name in names]
        return Batch(pa.RecordBatch.from_arrays(columns, names=[*left.names, *names.values()]), times)

    def _widened(self, left: pa.RecordBatch, right: pa.Schema) -> pa.RecordBatch:
        """Return left's rows with shared key columns in their result type."""
        if not self._wide or all(left.schema.field(name).type == right.field(name).type for name in self._shared):
            return left
        columns = [
            self._cast(field.name, column, field.type, right.field(field.name).type) if field.name in self._shared else column
            for field, column in zip(left.schema, left.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=left.schema.names)

    def _cast(self, name: str, column: pa.Array, left: pa.DataType, right: pa.DataType) -> pa.Array:
        """Return a key column in the type for both sides, with left's zone. Raises RecordError for a key that does not fit it."""
        kind = common_type(left, right)
        if kind is None or kind == column.type:
            return column
        try:
            return exactly(plain(column), kind)
        except Inexact as error:
            problem = f"the key column `{name}` of both sides: {error}: give both sides one type, for example by cast or schema="
            raise RecordError(self._operator, problem) from error

    def _right_names(self, left: pa.Schema, right: pa.Schema) -> dict[str, str]:
        """Return the result's names of right's columns. Raises RecordError for duplicate names."""
        both = tuple(left.names), tuple(right.names)
        if both == self._checked:
            return self._names
        names = right_names(left.names, right.names, self._shared, self._suffix)
        problem = clash(left.names, names)
        if problem is not None:
            raise RecordError(self._operator, problem)
        self._checked, self._names = both, names
        return names


def right_names(left: Iterable[str], right: Iterable[str], shared: set[str], suffix: str) -> dict[str, str]:
    """Return the result's names of right's columns; `shared`: those that are left's too."""
    taken = set(left)
    return {name: f"{name}{suffix}" if name in taken else name for name in right if name not in shared}


def clash(left: Iterable[str], names: Mapping[str, str]) -> str | None:
    """Describe the problem of duplicate names in the result of left's columns and right's by these `names`; None without one."""
    taken = set(left)
    for name, result in names.items():
        if result in taken or list(names.values()).count(result) > 1:
            return f"the result would have two columns `{result}`, one of them right's `{name}`: rename it, or choose another suffix="
    return None


def shared_keys(left_keys: Sequence[str], right_keys: Sequence[str]) -> set[str]:
    """Return the key columns that have one name on both sides."""
    return {left for left, right in zip(left_keys, right_keys, strict=True) if left == right}


def later_times(left: Block, right: Block) -> Times:
    """Return the event time of each pair: the later of both."""
    return np.maximum(left.times, right.times)
