"""The index of keys that consist of 64-bit words, which looks up a whole batch at once.

It grows while it is used: a full table gets a successor, and each call moves some slots there, so that millions of keys don't wait until
all are moved. Meanwhile a key is looked up in the successor, and if it isn't there, in the full table.

>>> index = WordIndex(2)
>>> keys = np.array([[70, 3, 70], [1, 1, 0]], np.uint64)
>>> index.add(keys, np.array([0, 1]), np.array([0, 1]))
>>> index.find(keys[:, ::-1]).tolist()
[-1, 1, 0]
"""

from __future__ import annotations

import numpy as np

from .growing import growth, longer
from .key_index import KeyIndex
from .word_cells import WordCells
from .words import Where, Words, grouped

_FIRST_BITS = 10
_ROOM = 4
"""The cells per key in a new table: most keys are found at the first probe."""

_FULL = 0.5

STEP = 8_192
"""The cells of the full table whose slots a call moves, which takes a fifth of a millisecond; tables of `STEP` cells move at once."""

_PER_KEY = 8
"""The cells for each key that is added: the full table is empty long before its successor is full."""


class WordIndex(KeyIndex):
    """An index for keys of `width` words."""

    def __init__(self, width: int) -> None:
        self._values: Words = np.zeros((0, width), np.uint64)
        """The keys by slot, shape (slots, width): to read a key of many takes one look into memory."""
        self._count = self._reserved = 0
        """The number of keys, and of those that there is room for."""
        self._cells = WordCells(_FIRST_BITS)
        self._full: WordCells | None = None
        """The predecessor of `_cells`. Its cells before `_moved` have been moved."""
        self._moved = 0

    def find(self, keys: Words) -> Where:
        where = self._cells.find(self._values, keys)
        if self._full is not None:
            missing = np.flatnonzero(where < 0)
            if len(missing):
                where[missing] = self._full.find(self._values, keys.take(missing, axis=1))
            self._move(STEP)
        return where

    def first(self, keys: Words, places: Where) -> tuple[Where, Where]:
        first, number = grouped(keys.take(places, axis=1))
        return places[first], number

    def add(self, keys: Words, places: Where, where: Where) -> None:
        more = int(where.max()) + 1 - len(self._values)
        if more > 0:
            self._extend(max(more, growth(len(self._values))))
        self._values[where] = keys.take(places, axis=1).T
        self._count += len(where)
        self._move(_PER_KEY * len(where))
        if self._cells.filled + len(where) > _FULL * len(self._cells):
            self._succeed()
        self._cells.put(self._values, where)

    def remove(self, where: Where) -> None:
        self._cells.remove(self._values, where)
        if self._full is not None:
            self._full.remove(self._values, where)
        self._count -= len(where)

    def keys(self, where: Where) -> Words:
        return self._values.take(where, axis=0).T

    def reserve(self, slots: int) -> None:
        self._reserved = slots
        if slots > len(self._values):
            self._extend(slots - len(self._values))
        if slots > _FULL * len(self._cells):
            self._succeed()
            self._move_all()

    def widen(self, place: int) -> None:
        """Give keys another word at `place`; existing keys have 0 in it."""
        self._move_all()
        self._values = np.insert(self._values, place, 0, axis=1)
        self._succeed()
        self._move_all()

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._cells.nbytes + (0 if self._full is None else self._full.nbytes)

    def _extend(self, more: int) -> None:
        self._values = longer(self._values, np.zeros((more, self._values.shape[1]), np.uint64))

    def _succeed(self) -> None:
        """Begin a new table with room for all keys; a small table moves there at once."""
        self._move_all()
        self._full, self._moved = self._cells, 0
        self._cells = WordCells(max(_FIRST_BITS, int(_ROOM * max(self._count, self._reserved)).bit_length()))
        if len(self._full) <= STEP:
            self._move_all()

    def _move_all(self) -> None:
        if self._full is not None:
            self._move(len(self._full))

    def _move(self, cells: int) -> None:
        """Move the slots in the next cells of the full table, if there is one, to its successor."""
        if self._full is None:
            return
        begin, self._moved = self._moved, min(self._moved + cells, len(self._full))
        self._cells.put(self._values, self._full.among(begin, self._moved))
        if self._moved == len(self._full):
            self._full = None
