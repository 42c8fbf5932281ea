"""Lists of distinct values in numbered slots, for state in memory: the cost of adding values doesn't depend on the values there.

A value has a number, and an owner, a slot that has a list, has one too. A pair of these in 64 bits means that a value is in a
list. Pairs are kept in sorted runs, each at least a few times as long as the next one, as in a log-structured merge-tree: so a
look-up of a pair takes a few binary searches, a slot's list is a stretch of each run, and a pair takes eight bytes. A slot whose
list is given up gets a new owner with its next list; the pairs of the old one are removed when they are half of all.

>>> slots = DistinctSlots(pa.int64(), 2)
>>> for values in ([1, 2], [2, 3], [3, 4]):
...     print(slots.add(np.array([1]), Ragged.of(pa.array(values), np.array([2]))).counts.tolist())
[2]
[3]
[4]
>>> slots[np.array([0, 1])].to_arrow().to_pylist()
[[], [1, 2, 3, 4]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....state.key_index import DictIndex, KeyIndex
from ....state.word_index import WordIndex
from ....state.words import Words
from ...aggregates.kept_values import in_groups
from ...aggregates.ragged import Lengths, Ragged, stretches

Ints = npt.NDArray[np.int64]

_BITS = 32
_VALUE = (1 << _BITS) - 1
_NOBODY = -1

_RATIO = 4
"""The least ratio of the length of a run to that of the next one."""

_SHORT = 1_024
"""The length up to which a run is joined with the one before it, regardless of that one's length."""


class DistinctSlots:
    """A mutable part of an aggregate's state, like `RaggedSlots`. Slots without a list have an empty one."""

    def __init__(self, kind: pa.DataType, slots: int) -> None:
        self._kind = kind
        self._owners = np.full(slots, _NOBODY, np.int64)
        self._counts = np.zeros(slots, np.int64)
        self._slots: Ints
        """The slot of each owner that there ever was."""
        self._forget_all()

    def __len__(self) -> int:
        return len(self._owners)

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self._runs) + self._numbers.nbytes + self._slots.nbytes + 16 * len(self)

    def grow(self, more: int) -> None:
        """Add empty slots."""
        self._owners = np.concatenate([self._owners, np.full(more, _NOBODY, np.int64)])
        self._counts = np.concatenate([self._counts, np.zeros(more, np.int64)])

    def __getitem__(self, slots: Ints) -> Ragged:
        """Return the lists in these slots."""
        rows, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        owners = self._owners[slots]
        for run in self._runs:
            first, last = np.searchsorted(run, owners << _BITS), np.searchsorted(run, (owners + 1) << _BITS)
            rows.append(np.repeat(np.arange(len(slots)), last - first))
            numbers.append(run[stretches(first, last - first)] & _VALUE)
        row, number = np.concatenate(rows), np.concatenate(numbers)
        order = in_groups(row, len(slots))
        return Ragged.of(self._numbers.values(number[order]), self._counts[slots])

    def __setitem__(self, slots: Ints, lists: Ragged) -> None:
        """Put lists of distinct values into distinct slots."""
        self.clear(slots)
        self.add(slots, lists)

    def clear(self, slots: Ints) -> None:
        """Make these distinct slots empty."""
        self._dead += int(self._counts[slots].sum())
        self._owners[slots], self._counts[slots] = _NOBODY, 0
        if self._dead * 2 > self._pairs:
            self._compact()

    def add(self, slots: Ints, lists: Ragged) -> Lengths:
        """Add the values of lists of distinct values to the lists in distinct slots; return the new lengths."""
        if len(lists.values):
            self._own(slots[(lists.counts > 0) & (self._owners[slots] == _NOBODY)])
            pairs = np.sort((lists.codes(self._owners[slots]) << _BITS) | self._numbers.of(lists.values))
            fresh = self._missing(pairs)
            if len(fresh):
                owners, counts = np.unique(fresh >> _BITS, return_counts=True)
                self._counts[self._slots[owners]] += counts
                self._append(fresh)
        return Lengths(self._counts[slots])

    def _own(self, slots: Ints) -> None:
        """Give each of these slots an owner of its own."""
        first = len(self._slots)
        if first + len(slots) > _VALUE >> 1:
            self._compact()
            first = len(self._slots)
        self._owners[slots] = np.arange(first, first + len(slots))
        self._slots = np.concatenate([self._slots, slots])

    def _missing(self, pairs: Ints) -> Ints:
        """Return the sorted pairs that are in no run."""
        for run in self._runs:
            at = np.searchsorted(run, pairs)
            at[at == len(run)] = 0
            pairs = pairs[run[at] != pairs]
        return pairs

    def _append(self, run: Ints) -> None:
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) < _RATIO * max(len(self._runs[-1]), _SHORT):
            last, before = self._runs.pop(), self._runs.pop()
            self._runs.append(np.sort(np.concatenate([before, last]), kind="stable"))  # linear in what is sorted already

    @property
    def _pairs(self) -> int:
        return sum(map(len, self._runs))

    def _compact(self) -> None:
        """Remove pairs of owners without a slot, and unused values; renumber both."""
        used = np.flatnonzero(self._owners != _NOBODY)
        lists = self[used]
        self._forget_all()
        self._owners[used], self._counts[used] = _NOBODY, 0
        self.add(used, lists)

    def _forget_all(self) -> None:
        self._numbers = ValueNumbers(self._kind)
        self._runs: list[Ints] = []
        self._dead = 0
        self._slots = np.zeros(0, np.int64)


class ValueNumbers:
    """The numbers of values of one type, none of them null: 0, 1, 2 and so on, in order of arrival.

    >>> numbers = ValueNumbers(pa.string())
    >>> numbers.of(pa.array(["a", "b", "a"])).tolist(), numbers.values(np.array([1])).to_pylist()
    ([0, 1, 0], ['b'])
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._kind, self._storage = kind, _storage(kind)
        self._index: KeyIndex = DictIndex() if self._storage is None else WordIndex(1)
        self._count = 0

    @property
    def nbytes(self) -> int:
        return self._index.nbytes

    def of(self, values: pa.Array) -> Ints:
        """Return the number of each value; new values get one."""
        keys = self._keys(values)
        numbers = self._index.find(keys)
        missing = np.flatnonzero(numbers < 0)
        if len(missing):
            places, which = self._index.first(keys, missing)
            fresh = np.arange(self._count, self._count + len(places))
            self._index.add(keys, places, fresh)
            self._count += len(places)
            numbers[missing] = fresh[which]
        return numbers

    def values(self, numbers: Ints) -> pa.Array:
        """Return the values with these numbers."""
        keys = self._index.keys(numbers)
        if self._storage is None:
            return pa.array(keys, self._kind)
        return pa.array(keys[0].view(np.int64)).cast(self._storage, safe=False).view(self._kind)

    def _keys(self, values: pa.Array) -> Words | list[Any]:
        if self._storage is None:
            return list(values.to_pylist())
        integers = values.view(self._storage).to_numpy(zero_copy_only=False).astype(np.int64)
        words: Words = integers.view(np.uint64)[np.newaxis]
        return words


def _storage(kind: pa.DataType) -> pa.DataType | None:
    """Return the integers with the bits of values of this type, None if there are none."""
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)) or pa.types.is_interval(kind):
        return None
    return {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width]
