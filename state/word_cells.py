"""A hash table from keys of 64-bit words to slots: open addressing with linear probing, each step for all keys of a batch at once.

It holds slots only; the keys are in `values`, by slot, shape (slots, words).

>>> values, cells = np.array([[70], [3]], np.uint64), WordCells(4)
>>> cells.put(values, np.array([0, 1]))
>>> cells.find(values, np.array([[3, 5, 70]], np.uint64)).tolist()
[1, -1, 0]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .words import Where, Words, equal, mixed

_EMPTY, _GONE = -1, -2
"""Marks in place of a slot: no key was in the cell, the cell's key was removed. A table holds slots plus 1, so that memory of zeros is an
empty table: a large one costs nothing before its keys come."""

_FEW = 24
"""Up to this number of keys whose first cell contains another key, the next cells are probed key by key."""


class WordCells:
    """A table of 2**`bits` cells. `filled`: the number of cells that are not empty, including those of removed keys."""

    def __init__(self, bits: int) -> None:
        self._table = np.zeros(1 << bits, np.int32)
        self._mask, self._shift = (1 << bits) - 1, np.uint64(64 - bits)
        self.filled = 0

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    def find(self, values: Words, keys: Words) -> Where:
        """Return the slot of each key, -1 for those without one."""
        cells = self.home(keys)
        where = self._table.take(cells).astype(np.int64)
        where -= 1
        missed = np.flatnonzero(~_have(values, where, keys))
        if len(missed):
            left = missed[where[missed] != _EMPTY]
            where[missed] = -1
            if len(left):
                self._find_on(values, keys, left, cells[left], where)
        return where

    def put(self, values: Words, left: Where) -> None:
        """Put each of the slots, whose keys are not in the table, into a cell: an empty one, or that of a removed key."""
        cells = self.home(_of(values, left))
        while len(left):
            there = self._table[cells] - 1
            free = np.flatnonzero(there < 0)
            self._table[cells[free]] = left[free] + 1  # one of the slots that contend for a cell gets it
            got = self._table[cells] == left + 1
            self.filled += int(np.count_nonzero(got & (there == _EMPTY)))
            left, cells = left[~got], (cells[~got] + 1) & self._mask

    def remove(self, values: Words, left: Where) -> None:
        """Remove those of the slots that are in the table."""
        cells = self.home(_of(values, left))
        while len(left):
            there = self._table[cells] - 1
            found = there == left
            self._table[cells[found]] = _GONE + 1
            on = ~found & (there != _EMPTY)
            left, cells = left[on], (cells[on] + 1) & self._mask

    def among(self, begin: int, end: int) -> Where:
        """Return the slots in these cells."""
        there = self._table[begin:end]
        return there[there > 0].astype(np.int64) - 1

    def home(self, keys: Words) -> Where:
        """Return the first cell to probe for each key."""
        return (mixed(keys) >> self._shift).astype(np.int64)

    def _find_on(self, values: Words, keys: Words, left: Where, cells: Where, where: Where) -> None:
        """Find the keys at the places `left` after these cells, which contain other keys."""
        while len(left) > _FEW:
            cells = (cells + 1) & self._mask
            slots = self._table[cells] - 1
            hit = _have(values, slots, keys.take(left, axis=1))
            where[left[hit]] = slots[hit]
            on = ~hit & (slots != _EMPTY)
            left, cells = left[on], cells[on]
        for place, cell in zip(left.tolist(), cells.tolist(), strict=True):
            where[place] = self._find_one(values, keys[:, place].tolist(), cell)

    def _find_one(self, values: Words, key: list[int], cell: int) -> int:
        """Return the slot of the key after a cell, -1 if it has none."""
        slot = _GONE
        while slot != _EMPTY and (slot == _GONE or values[slot].tolist() != key):
            cell = (cell + 1) & self._mask
            slot = self._table.item(cell) - 1
        return slot


def _have(values: Words, slots: npt.NDArray[np.integer], keys: Words) -> npt.NDArray[np.bool_]:
    """Return a mask of the cells whose slots have the keys."""
    if not len(values):
        return np.zeros(len(slots), np.bool_)
    hit: npt.NDArray[np.bool_] = equal(_of(values, slots), keys) & (slots >= 0)
    return hit


def _of(values: Words, slots: npt.NDArray[np.integer]) -> Words:
    return values.take(slots, axis=0, mode="clip").T
