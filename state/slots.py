"""Slots: a number for every key, under which columns of state keep its row.

Freed slots are used again. A slot's hash is kept, so that the keys of a move are found by one vectorised comparison.

>>> slots = Slots()
>>> slots.find(["a", "b", "a"], lambda fresh: np.arange(len(fresh), dtype=np.uint64)).tolist()
[0, 1, 0]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Where = npt.NDArray[np.int64]
"""Slots, shape (n,)."""

_FIRST = 1024


class Slots:
    """Keys are Python values. `capacity`: how many rows the columns must have."""

    def __init__(self) -> None:
        self._slots: dict[Any, int] = {}
        self._keys: list[Any] = []
        self._free: list[int] = []
        self._hashes = np.zeros(0, np.uint64)
        self._live = np.zeros(0, np.bool_)
        self.fresh: Where = np.zeros(0, np.int64)
        """The slots that the last `find` gave to new keys."""
        self._found: npt.NDArray[np.bool_] | None = None
        """By slot, whether it was found since `changes` was asked for; None if that isn't known."""
        self._removed: list[Any] = []

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def capacity(self) -> int:
        return len(self._live)

    @property
    def nbytes(self) -> int:
        """Estimate of its bytes, the keys' own not counted."""
        return 9 * self.capacity + 100 * len(self._slots)

    def find(self, keys: list[Any], hashes: Callable[[Where], npt.NDArray[np.uint64]]) -> Where:
        """The slots of `keys`; new keys get one, for which `hashes` is asked with the places of their first appearance in `keys`."""
        slots = self._slots
        get = slots.get
        where = np.array([get(key, -1) for key in keys], np.int64)
        missing = np.flatnonzero(where < 0)
        if len(missing):
            self._add(keys, missing, hashes)
            where[missing] = [slots[keys[place]] for place in missing.tolist()]
        else:
            self.fresh = missing
        if self._found is not None:
            self._found[where] = True
        return where

    def known(self, keys: list[Any]) -> Where:
        """The slots of those of `keys` that have one."""
        slots = self._slots
        return np.array([slots[key] for key in keys if key in slots], np.int64)

    def keys(self, where: Where) -> list[Any]:
        """The keys at these slots."""
        keys = self._keys
        return [keys[slot] for slot in where.tolist()]

    def everything(self) -> Where:
        """All slots in use, rising."""
        return np.flatnonzero(self._live)

    def where(self, selects: Callable[[npt.NDArray[np.uint64]], npt.NDArray[np.bool_]]) -> Where:
        """The slots in use whose key's hash is selected."""
        live = self.everything()
        return live[selects(self._hashes[live])]

    def changes(self) -> tuple[Where, list[Any]] | None:
        """The slots found since the last call, some of which may be free again, and the keys removed; None if that isn't known.

        It isn't at the first call, nor when more keys were removed than there are. A key may be among both, if it came back.
        """
        found, removed = self._found, self._removed
        self._found, self._removed = np.zeros(self.capacity, np.bool_), []
        return None if found is None else (np.flatnonzero(found), removed)

    def in_use(self, where: Where) -> Where:
        """Those of the slots that a key has."""
        return where[self._live[where]]

    def remove(self, where: Where) -> None:
        """Forget the keys at these slots."""
        if self._found is not None:
            self._removed += self.keys(where)
            if len(self._removed) > max(_FIRST, self.capacity):
                self._found, self._removed = None, []
        for slot in where.tolist():
            del self._slots[self._keys[slot]]
            self._keys[slot] = None
            self._free.append(slot)
        self._live[where] = False

    def _add(self, keys: list[Any], missing: Where, hashes: Callable[[Where], npt.NDArray[np.uint64]]) -> None:
        slots, fresh, places = self._slots, [], []
        for place in missing.tolist():
            key = keys[place]
            if key not in slots:
                slots[key] = slot = self._free.pop() if self._free else len(self._keys)
                if slot == len(self._keys):
                    self._keys.append(key)
                else:
                    self._keys[slot] = key
                fresh.append(slot)
                places.append(place)
        self.fresh = np.array(fresh, np.int64)
        more = max(_FIRST, self.capacity, len(self._keys) - self.capacity) if len(self._keys) > self.capacity else 0
        if more:
            self._hashes = np.concatenate([self._hashes, np.zeros(more, np.uint64)])
            self._live = np.concatenate([self._live, np.zeros(more, np.bool_)])
            if self._found is not None:
                self._found = np.concatenate([self._found, np.zeros(more, np.bool_)])
        self._hashes[self.fresh] = hashes(np.array(places, np.int64))
        self._live[self.fresh] = True
