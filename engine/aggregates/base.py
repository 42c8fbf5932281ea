"""The interfaces of aggregates: a function as the user writes it, and its accumulator once the input types are known.

An accumulator keeps its state in *parts*: a tuple of numpy arrays with one row per group. The invariant: the results depend on
the rows alone, not on how they were cut into batches or in which order partial results were merged. So an aggregate can be
computed before and after an exchange, and its state can be split, moved and merged.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..columns import Columns
from ..errors import ProtocolError
from ..needed import Needed

Array = npt.NDArray[Any]

Parts = tuple[Any, ...]
"""The state of many groups: arrays, or lists of any length (`Ragged`), with one row per group.

Never written into; rows are taken with `tuple(p[rows] for p in parts)`, and joined with `ragged.joined`.
"""

Codes = npt.NDArray[Any]
"""Integers in [0, groups), one per row: the group of the row."""


class AggregateFunction(ABC):
    """An aggregate as the user writes it: `ef.count()`, `ef.sum("delay")`. Immutable and picklable."""

    column: str | None
    """The column that it reads, None for none or for whole rows; not set if `reads` names other columns."""

    whole_rows: ClassVar[bool] = False
    """True if it reads rows as dicts, so that it may need any column."""

    def reads(self, schema: pa.Schema) -> tuple[str, ...]:
        """Return the columns of `schema` whose types decide how it is bound."""
        return () if self.column is None else (self.column,)

    def needs(self) -> frozenset[str] | None:
        """Return the columns that it reads, None for all."""
        return None if self.whole_rows else frozenset(self.reads(pa.schema([])))

    def beside(self, keys: tuple[str, ...]) -> AggregateFunction:
        """Return the same aggregate for an operator whose results have the key columns `keys`."""
        return self

    def fields(self, known: Columns) -> tuple[str, ...] | None:
        """Return the field names of the structs in its results, from the known columns of its input.

        None if they aren't known, or its results are no lists of structs.
        """
        return None

    def problem(self, known: Columns) -> str | None:
        """Describe a problem of an input with these columns that is certain before the job runs; None without one."""
        return None

    def weighed(self) -> AggregateFunction | None:
        """Return the same aggregate with accumulators that can take rows back (`Accumulator.negated`); None if it can't."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """Return the function with its arguments, as a user writes it. A checkpoint stores it as the description of its state."""

    @abstractmethod
    def bind(self, schema: pa.Schema, operator: str) -> Accumulator:
        """Return the accumulator for rows of `schema`, in the operator named `operator`.

        A column of nulls has no type yet: that is no error. Raises RecordError, naming the operator and the column, if it is
        missing or has a type that the aggregate can't use.
        """


class Accumulator(ABC):
    """An aggregate bound to the types of its input: functions over parts, without a state of their own.

    `codes` may come in any order and omit groups. A group without values has the parts that `empty` returns.
    """

    operator: str
    """The operator's name, for errors."""

    part_types: tuple[pa.DataType, ...]
    """The types of the arrays of `to_arrow`."""

    typed = True
    """False while the types of its columns are not known: its state is then empty."""

    output_type: pa.DataType | None
    """The type of `finish`'s array; None if it depends on the values."""

    fixed_width = False
    """True if a group without rows takes no more than the width of its parts, so that many of them cost little."""

    distinct = False
    """True if its one part is lists that hold each value once, and `finish` needs only their lengths."""

    @abstractmethod
    def empty(self, n: int) -> Parts:
        """Return the state of `n` groups without rows: merging with it changes nothing."""

    @abstractmethod
    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        """Return the state, `groups` rows, after the rows of `batch` alone. Raises RecordError if a value can't be used."""

    def counted_partial(self, batch: Batch, codes: Codes, groups: int, rows: npt.NDArray[np.int64]) -> Parts:
        """Return what `partial` does. `rows` has the number of rows of each group, for accumulators that count them."""
        return self.partial(batch, codes, groups)

    @abstractmethod
    def combine(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        """Return the state, `groups` rows, with rows of `parts` that have equal codes merged; earlier rows came first."""

    @abstractmethod
    def merge(self, left: Parts, right: Parts) -> Parts:
        """Return the merged state of each row; `left` came first. Both have n rows, and neither is changed."""

    def negated(self, parts: Parts) -> Parts:
        """Return the state that takes these rows back: merged with `parts` it gives the state of no rows, exactly.

        Only the accumulators of `AggregateFunction.weighed` have it.
        """
        raise NotImplementedError

    @abstractmethod
    def finish(self, parts: Parts) -> pa.Array:
        """Return the result of each group, shape (n,). Raises RecordError if a result doesn't fit its type.

        May be called more than once.
        """

    def carried(self, parts: Parts, narrower: Self) -> Parts:
        """Convert the state `parts` of the same aggregate, bound to a narrower type, to this type."""
        return parts

    def to_arrow(self, parts: Parts) -> list[pa.Array]:
        """Return the parts as arrays of `part_types`, for the wire and for snapshots."""
        return [pa.array(part, kind) for part, kind in zip(parts, self.part_types, strict=True)]

    def from_arrow(self, arrays: Sequence[pa.Array]) -> Parts:
        """Return parts from arrays; the inverse of `to_arrow`. Raises ProtocolError if the arrays have other types."""
        self.check_types(arrays)
        return tuple(array.to_numpy(zero_copy_only=False) for array in arrays)

    def nbytes(self, parts: Parts) -> int:
        """Return an estimate of the state's bytes."""
        return sum(part.nbytes for part in parts)

    def check_types(self, arrays: Sequence[pa.Array]) -> None:
        """Raise ProtocolError unless `arrays` have the types of the parts."""
        found = [array.type for array in arrays]
        if found != list(self.part_types):
            expected = ", ".join(map(str, self.part_types))
            raise ProtocolError(
                f"operator `{self.operator}`: expected aggregate state of types ({expected}), got ({', '.join(map(str, found))}); "
                "do all workers run the same flow?"
            )


def read_by(functions: Iterable[AggregateFunction]) -> Needed | None:
    """Return the columns that aggregates read together, None for all."""
    names: set[str] = set()
    for function in functions:
        read = function.needs()
        if read is None:
            return None
        names |= read
    return Needed(frozenset(names))


def objects(values: Sequence[Any]) -> Array:
    """Return an array of Python objects, shape (n,), also if the values are sequences."""
    return np.fromiter(values, dtype=object, count=len(values))


def sampled_bytes(values: Array, size_of: Any) -> int:
    """Return an estimate of the bytes of an array of Python objects, from at most 256 of its rows."""
    sample = values[:: max(1, len(values) // 256)]
    if not len(sample):
        return 0
    return values.nbytes + int(sum(map(size_of, sample)) * len(values) / len(sample))


def seen_in(codes: Codes, groups: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the groups that occur in `codes`, shape (groups,)."""
    seen = np.zeros(groups, np.bool_)
    seen[codes] = True
    return seen


def described_parts(functions: Mapping[str, AggregateFunction]) -> tuple[dict[str, str], str, frozenset[str]]:
    """Return the aggregates for a `StateDescription`: their descriptions, their kind, and those that can't join saved state."""
    anything = pa.schema([("", pa.null())])
    closed = frozenset(name for name, function in functions.items() if "" in function.reads(anything))
    return {name: function.describe() for name, function in functions.items()}, "aggregate", closed


def call(name: str, *arguments: Any, **named: Any) -> str:
    """Return a call as text.

    >>> call("quantile", "delay", 0.9, exact=True)
    'quantile("delay", 0.9, exact=True)'
    """
    texts = [*map(_literal, arguments), *(f"{key}={_literal(value)}" for key, value in named.items())]
    return f"{name}({', '.join(texts)})"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
