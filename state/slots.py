"""Slots: a number for every key, the index of its row in columns of state.

Freed slots are reused. Each slot keeps its key's hash, so that one vectorised comparison finds the keys of a move.

>>> from evenflow.state.key_index import DictIndex
>>> slots = Slots(DictIndex())
>>> slots.find(["a", "b", "a"], lambda fresh: np.arange(len(fresh), dtype=np.uint64)).tolist()
[0, 1, 0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from .growing import growth, longer
from .hashing import group_of
from .key_index import KeyIndex
from .words import Where

Mask = npt.NDArray[np.bool_]
"""True or False for each slot."""

_FIRST = 1024


class Slots:
    """The slots of keys, which have the form that `index` takes. `capacity`: the number of rows that the columns must have."""

    def __init__(self, index: KeyIndex) -> None:
        self.index = index
        self._used = 0
        """The number of slots ever used."""
        self._free: list[int] = []
        self._hashes = np.zeros(0, np.uint64)
        self.live: Mask = np.zeros(0, np.bool_)
        """True for each slot that a key has."""
        self.fresh: Where = np.zeros(0, np.int64)
        """The slots that the last `find` gave to new keys."""
        self._found: Mask | None = None
        """True for each slot found since the last call of `changes`; None if unknown."""
        self._removed: list[Any] = []
        """The removed keys of each call of `remove` since the last call of `changes`."""
        self._removals = 0
        """The number of these keys."""

    def __len__(self) -> int:
        return self._used - len(self._free)

    @property
    def capacity(self) -> int:
        return len(self.live)

    @property
    def nbytes(self) -> int:
        """An estimate of its bytes, without those of keys that are Python objects."""
        return 9 * self.capacity + self.index.nbytes

    def reserve(self, more: int) -> None:
        """Make room for `more` new keys, so that adding them moves no others."""
        self._grow(self._used + more)
        self.index.reserve(self.capacity)

    def find(self, keys: Any, hashes: Callable[[Where], npt.NDArray[np.uint64]]) -> Where:
        """Return the slots of `keys`. New keys get a slot; `hashes` is called with the places of their first occurrence in
        `keys`.
        """
        where = self.index.find(keys)
        missing = np.flatnonzero(where < 0)
        if len(missing):
            places, which = self.index.first(keys, missing)
            of_fresh = hashes(places)
            self.fresh = self._take(len(places))
            self.index.add(keys, places, self.fresh)
            self._hashes[self.fresh] = of_fresh
            self.live[self.fresh] = True
            where[missing] = self.fresh[which]
        else:
            self.fresh = missing
        if self._found is not None:
            self._found[where] = True
        return where

    def known(self, keys: Any) -> Where:
        """Return the slots of those of `keys` that have one."""
        where = self.index.find(keys)
        return where[where >= 0]

    def note(self, where: Where) -> None:
        """Note changes of the rows at these slots, which were not found by `find`."""
        if self._found is not None:
            self._found[where] = True

    def keys(self, where: Where) -> Any:
        """Return the keys at these slots."""
        return self.index.keys(where)

    def everything(self) -> Where:
        """Return all slots in use, ascending."""
        return np.flatnonzero(self.live)

    def where(self, groups: Iterable[int], key_groups: int, selects: Callable[[npt.NDArray[np.uint64]], Mask]) -> Where:
        """Return the slots in use whose keys are in `groups`, out of `key_groups`, and whose hashes are selected.

        A move calls this once per step, which takes less than 2 ns for each key of this worker.
        """
        among = np.zeros(key_groups, np.bool_)
        among[list(groups)] = True
        some = np.flatnonzero(among.take(group_of(self._hashes, key_groups)) & self.live)
        return some[selects(self._hashes[some])]

    def changes(self) -> tuple[Mask, list[Any]] | None:
        """Return the slots found since the last call (some may be free again), and the removed keys, one result of `keys` per
        removal.

        Returns None if unknown: at the first call, and when more keys were removed than exist. A key that was added again may be
        among both.
        """
        found, removed = self._found, self._removed
        self._found, self._removed, self._removals = np.zeros(self.capacity, np.bool_), [], 0
        return None if found is None else (found, removed)

    @contextmanager
    def unnoted(self) -> Iterator[None]:
        """Return a block in which found slots are not noted as changed. No key is removed in it."""
        found, self._found = self._found, None
        yield
        if found is not None:
            more = self.capacity - len(found)
            self._found = np.concatenate([found, np.zeros(more, np.bool_)]) if more else found

    def in_use(self, those: Mask) -> Mask:
        """Return the slots among these that are in use."""
        return those & self.live[: len(those)]

    def remove(self, where: Where) -> None:
        """Remove the keys at these slots, and free the slots."""
        if self._found is not None and len(where):  # before the first key, no columns of keys are known
            self._removed.append(self.keys(where))
            self._removals += len(where)
            if self._removals > max(_FIRST, self.capacity):
                self._found, self._removed, self._removals = None, [], 0
        self.index.remove(where)
        self._free += where.tolist()
        self.live[where] = False

    def _take(self, count: int) -> Where:
        """Take `count` slots, freed ones first."""
        again = self._free[max(0, len(self._free) - count) :]
        del self._free[len(self._free) - len(again) :]
        first, self._used = self._used, self._used + count - len(again)
        taken = np.concatenate([np.array(again[::-1], np.int64), np.arange(first, self._used)])
        if self._used > self.capacity:
            self._grow(max(self.capacity + max(_FIRST, growth(self.capacity)), self._used))
        return taken

    def _grow(self, capacity: int) -> None:
        more = capacity - self.capacity
        if more > 0:
            self._hashes = longer(self._hashes, np.zeros(more, np.uint64))
            self.live = longer(self.live, np.zeros(more, np.bool_))
            if self._found is not None:
                self._found = longer(self._found, np.zeros(more, np.bool_))
