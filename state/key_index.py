"""Indexes from keys to slots: a dict of Python values, or a hash table of 64-bit words that looks up a whole batch at once.

>>> index = WordIndex(2)
>>> keys = np.array([[70, 3, 70], [1, 1, 0]], np.uint64)
>>> index.add(keys, np.array([0, 1]), np.array([0, 1]))
>>> index.find(keys[:, ::-1]).tolist()
[-1, 1, 0]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from .growing import growth, longer
from .words import Where, Words, equal, grouped, mixed, numbered

_EMPTY, _GONE = -1, -2
"""Marks in place of a slot: no key was in the cell, the cell's key was removed. A table holds slots plus 1, so that memory of zeros is an
empty table: a large one costs nothing before its keys come."""
_FIRST_BITS = 10
_ROOM = 4
"""The cells per key in a new table: most keys are found at the first probe."""
_FULL = 0.5
_FEW = 24
"""Up to this number of keys whose first cell contains another key, the next cells are probed key by key."""


class KeyIndex(ABC):
    """An index from keys to slots. Keys are a list or an array, as the subclass says."""

    @abstractmethod
    def find(self, keys: Any) -> Where:
        """Return the slot of each key, -1 for those without one."""

    @abstractmethod
    def first(self, keys: Any, places: Where) -> tuple[Where, Where]:
        """Return the first place of each distinct key among those at `places`, and for each key the number of its distinct one."""

    @abstractmethod
    def add(self, keys: Any, places: Where, where: Where) -> None:
        """Add the keys at `places`, all distinct and new, with the slots `where`."""

    @abstractmethod
    def remove(self, where: Where) -> None:
        """Remove the keys at these slots."""

    @abstractmethod
    def keys(self, where: Where) -> Any:
        """Return the keys at these slots."""

    def reserve(self, slots: int) -> None:
        """Make room for keys in that number of slots, so that adding them moves no others."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """An estimate of its bytes, without those of keys that are Python objects."""


class DictIndex(KeyIndex):
    """An index for lists of Python values of any type: about 60 ns per key, several times that with millions of keys."""

    def __init__(self) -> None:
        self._slots: dict[Any, int] = {}
        self._keys: list[Any] = []

    def find(self, keys: list[Any]) -> Where:
        get = self._slots.get
        return np.array([get(key, -1) for key in keys], np.int64)

    def first(self, keys: list[Any], places: Where) -> tuple[Where, Where]:
        first, number = numbered([keys[place] for place in places.tolist()])
        return places[first], number

    def add(self, keys: list[Any], places: Where, where: Where) -> None:
        self._keys += [None] * (int(where.max()) + 1 - len(self._keys))
        for place, slot in zip(places.tolist(), where.tolist(), strict=True):
            self._keys[slot] = key = keys[place]
            self._slots[key] = slot

    def remove(self, where: Where) -> None:
        for slot in where.tolist():
            del self._slots[self._keys[slot]]
            self._keys[slot] = None

    def keys(self, where: Where) -> list[Any]:
        keys = self._keys
        return [keys[slot] for slot in where.tolist()]

    @property
    def nbytes(self) -> int:
        return 100 * len(self._slots)


class WordIndex(KeyIndex):
    """An index for keys of `width` words: open addressing with linear probing, each step for all keys of a batch at once."""

    def __init__(self, width: int) -> None:
        self._values: Words = np.zeros((0, width), np.uint64)
        """The keys by slot, shape (slots, width): to read a key of many takes one look into memory."""
        self._count = self._reserved = 0
        """The number of keys, and of those that there is room for."""
        self._clear(_FIRST_BITS)

    def find(self, keys: Words) -> Where:
        cells = self._home(keys)
        where = self._table.take(cells).astype(np.int64)
        where -= 1
        missed = np.flatnonzero(~self._has(where, keys))
        if len(missed):
            left = missed[where[missed] != _EMPTY]
            where[missed] = -1
            if len(left):
                self._find_on(keys, left, cells[left], where)
        return where

    def _find_on(self, keys: Words, left: Where, cells: Where, where: Where) -> None:
        """Find the keys at the places `left` after these cells, which contain other keys."""
        while len(left) > _FEW:
            cells = (cells + 1) & self._mask
            slots = self._table[cells] - 1
            hit = self._has(slots, keys.take(left, axis=1))
            where[left[hit]] = slots[hit]
            on = ~hit & (slots != _EMPTY)
            left, cells = left[on], cells[on]
        for place, cell in zip(left.tolist(), cells.tolist(), strict=True):
            where[place] = self._find_one(keys[:, place].tolist(), cell)

    def _find_one(self, key: list[int], cell: int) -> int:
        """Return the slot of the key after a cell, -1 if it has none."""
        slot = _GONE
        while slot != _EMPTY and (slot == _GONE or self._values[slot].tolist() != key):
            cell = (cell + 1) & self._mask
            slot = self._table.item(cell) - 1
        return slot

    def first(self, keys: Words, places: Where) -> tuple[Where, Where]:
        first, number = grouped(keys.take(places, axis=1))
        return places[first], number

    def add(self, keys: Words, places: Where, where: Where) -> None:
        more = int(where.max()) + 1 - len(self._values)
        if more > 0:
            self._extend(max(more, growth(len(self._values))))
        self._values[where] = keys.take(places, axis=1).T
        self._count += len(where)
        if self._filled + len(where) > _FULL * len(self._table):
            self._rebuild()
        self._put(where)

    def remove(self, where: Where) -> None:
        left, cells = where, self._home(self._of(where))
        while len(left):
            found = self._table[cells] == left + 1
            self._table[cells[found]] = _GONE + 1
            left, cells = left[~found], (cells[~found] + 1) & self._mask
        self._count -= len(where)

    def keys(self, where: Where) -> Words:
        return self._of(where)

    def reserve(self, slots: int) -> None:
        self._reserved = slots
        if slots > len(self._values):
            self._extend(slots - len(self._values))
        if slots > _FULL * len(self._table):
            self._rebuild()

    def widen(self, place: int) -> None:
        """Give keys another word at `place`; existing keys have 0 in it."""
        self._values = np.insert(self._values, place, 0, axis=1)
        self._rebuild()

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._table.nbytes

    def _extend(self, more: int) -> None:
        self._values = longer(self._values, np.zeros((more, self._values.shape[1]), np.uint64))

    def _rebuild(self) -> None:
        there = self._table[self._table > 0].astype(np.int64) - 1
        self._clear(max(_FIRST_BITS, int(_ROOM * max(self._count, self._reserved)).bit_length()))
        self._put(there)

    def _clear(self, bits: int) -> None:
        self._table = np.zeros(1 << bits, np.int32)
        self._mask, self._shift = (1 << bits) - 1, np.uint64(64 - bits)
        self._filled = 0
        """The number of cells that are not empty, including those of removed keys."""

    def _home(self, keys: Words) -> Where:
        """Return the first cell to probe for each key."""
        return (mixed(keys) >> self._shift).astype(np.int64)

    def _has(self, slots: npt.NDArray[np.integer], keys: Words) -> npt.NDArray[np.bool_]:
        """Return a mask of the cells whose slots have the keys."""
        if not len(self._values):
            return np.zeros(len(slots), np.bool_)
        hit: npt.NDArray[np.bool_] = equal(self._of(slots), keys) & (slots >= 0)
        return hit

    def _of(self, slots: npt.NDArray[np.integer]) -> Words:
        return self._values.take(slots, axis=0, mode="clip").T

    def _put(self, left: Where) -> None:
        """Put each of the slots, whose keys are not in the table, into a cell: an empty one, or that of a removed key."""
        cells = self._home(self._of(left))
        while len(left):
            there = self._table[cells] - 1
            free = np.flatnonzero(there < 0)
            self._table[cells[free]] = left[free] + 1  # one of the slots that contend for a cell gets it
            got = self._table[cells] == left + 1
            self._filled += int(np.count_nonzero(got & (there == _EMPTY)))
            left, cells = left[~got], (cells[~got] + 1) & self._mask
