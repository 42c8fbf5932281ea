"""Lists of values of any length, one list per group: the state of aggregates that keep many values of a group.

The lists are stored end to end in one Arrow array, so that work is per value and vectorised, and a group costs eight bytes.
The invariant: a `Ragged` never changes; its methods return new ones.

>>> lists = Ragged.of(pa.array([3, 1, 2]), np.array([2, 0, 1]))
>>> lists[np.array([2, 0])].to_arrow().to_pylist()
[[2], [3, 1]]
>>> joined([lists, lists]).counts.tolist()
[2, 0, 1, 2, 0, 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]


class Ragged:
    """The lists of all groups: `values`, end to end, and `offsets`, the start of each and the end of the last, shape (groups +
    1,).
    """

    __slots__ = ("offsets", "values")

    dtype = np.dtype(object)
    """Its rows have no fixed width."""

    def __init__(self, values: pa.Array, offsets: Ints) -> None:
        self.values, self.offsets = values, offsets

    @staticmethod
    def of(values: pa.Array, counts: npt.NDArray[Any]) -> Ragged:
        """Return lists of `counts` values each, shape (groups,), that are stored end to end in `values`."""
        offsets = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        return Ragged(values, offsets)

    @staticmethod
    def empty(kind: pa.DataType, groups: int) -> Ragged:
        """Return lists without values."""
        return Ragged(pa.nulls(0, kind), np.zeros(groups + 1, np.int64))

    @staticmethod
    def from_arrow(lists: pa.LargeListArray) -> Ragged:
        """Return lists from an Arrow array, a null as an empty list; the inverse of `to_arrow`."""
        offsets = lists.offsets.to_numpy()
        if lists.null_count:
            return Ragged.of(lists.flatten(), np.diff(offsets) * lists.is_valid().to_numpy(zero_copy_only=False))
        return Ragged(lists.values.slice(offsets[0], offsets[-1] - offsets[0]), offsets - offsets[0])

    def to_arrow(self, missing: npt.NDArray[np.bool_] | None = None) -> pa.LargeListArray:
        """Return the lists as an Arrow array, shape (groups,); null where `missing`."""
        mask = None if missing is None or not missing.any() else pa.array(missing)
        return pa.LargeListArray.from_arrays(pa.array(self.offsets), self.values, mask=mask)

    @property
    def counts(self) -> Ints:
        """Return the length of each list, shape (groups,)."""
        return np.diff(self.offsets)

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes) + 8 * len(self)

    def codes(self, groups: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the group of each value; `groups` has the group of each list."""
        return np.repeat(groups, self.counts)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: npt.NDArray[Any]) -> Ragged:
        """Return the lists at these indices, or where a mask is true."""
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        counts = self.offsets[rows + 1] - self.offsets[rows]
        return Ragged.of(self.values.take(pa.array(stretches(self.offsets[rows], counts))), counts)

    def replaced(self, rows: Ints, others: Ragged) -> Ragged:
        """Return these lists, but `others` at the indices `rows`."""
        place = np.arange(len(self))
        place[rows] = np.arange(len(self), len(self) + len(others))
        return joined([self, others])[place]


class Lengths:
    """The lengths of lists, shape (groups,), for accumulators that need no values."""

    def __init__(self, counts: Ints) -> None:
        self.counts = counts

    def __len__(self) -> int:
        return len(self.counts)


Column = TypeVar("Column", npt.NDArray[Any], Ragged)
"""A part of an aggregate's state: one row per group."""


def stretches(starts: Ints, counts: Ints) -> Ints:
    """Return the integers of stretches of `counts` that begin at `starts`, one stretch after the other."""
    ends = np.cumsum(counts)
    places: Ints = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return places


def joined(columns: Sequence[Column]) -> Column:
    """Concatenate the rows of parts of one kind."""
    if not isinstance(columns[0], Ragged):
        return np.concatenate(columns)
    return Ragged.of(pa.concat_arrays([column.values for column in columns]), np.concatenate([column.counts for column in columns]))


def replaced(column: Column, rows: Ints, others: Column) -> Column:
    """Return the part `column`, but `others` at the indices `rows`; neither is changed."""
    if isinstance(column, Ragged):
        return column.replaced(rows, others)
    changed = column.copy()
    changed[rows] = others
    return changed
