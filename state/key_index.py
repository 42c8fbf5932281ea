"""Indexes from keys to slots, and the index of keys of any type: a dict of Python values.

>>> index = DictIndex()
>>> index.add(["a", "b"], np.array([0, 1]), np.array([0, 1]))
>>> index.find(["b", "c"]).tolist()
[1, -1]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from .words import Where, numbered


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
