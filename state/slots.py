"""Slots: a number for every key, under which columns of state keep its row.

Freed slots are used again. A slot's hash is kept, so that the keys of a move are found by one vectorised comparison.

>>> from evenflow.state.key_index import DictIndex
>>> slots = Slots(DictIndex())
>>> slots.find(["a", "b", "a"], lambda fresh: np.arange(len(fresh), dtype=np.uint64)).tolist()
[0, 1, 0]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .key_index import KeyIndex, Where

Mask = npt.NDArray[np.bool_]
"""By slot."""

_FIRST = 1024


class Slots:
    """Keys are what `index` takes. `capacity`: how many rows the columns must have."""

    def __init__(self, index: KeyIndex) -> None:
        self.index = index
        self._used = 0
        """Slots that were ever given."""
        self._free: list[int] = []
        self._hashes = np.zeros(0, np.uint64)
        self.live: Mask = np.zeros(0, np.bool_)
        """Whether a key has the slot."""
        self.fresh: Where = np.zeros(0, np.int64)
        """The slots that the last `find` gave to new keys."""
        self._found: Mask | None = None
        """By slot, whether it was found since `changes` was asked for; None if that isn't known."""
        self._removed: list[Any] = []

    def __len__(self) -> int:
        return self._used - len(self._free)

    @property
    def capacity(self) -> int:
        return len(self.live)

    @property
    def nbytes(self) -> int:
        """Estimate of its bytes, the keys' own not counted if they are Python objects."""
        return 9 * self.capacity + self.index.nbytes

    def find(self, keys: Any, hashes: Callable[[Where], npt.NDArray[np.uint64]]) -> Where:
        """The slots of `keys`; new keys get one, for which `hashes` is asked with the places of their first appearance in `keys`."""
        where = self.index.find(keys)
        missing = np.flatnonzero(where < 0)
        if len(missing):
            places, which = self.index.first(keys, missing)
            self.fresh = self._take(len(places))
            self.index.add(keys, places, self.fresh)
            self._hashes[self.fresh] = hashes(places)
            self.live[self.fresh] = True
            where[missing] = self.fresh[which]
        else:
            self.fresh = missing
        if self._found is not None:
            self._found[where] = True
        return where

    def known(self, keys: Any) -> Where:
        """The slots of those of `keys` that have one."""
        where = self.index.find(keys)
        return where[where >= 0]

    def keys(self, where: Where) -> list[Any]:
        """The keys at these slots."""
        return self.index.keys(where)

    def everything(self) -> Where:
        """All slots in use, rising."""
        return np.flatnonzero(self.live)

    def where(self, selects: Callable[[npt.NDArray[np.uint64]], Mask]) -> Where:
        """The slots in use whose key's hash is selected."""
        live = self.everything()
        return live[selects(self._hashes[live])]

    def changes(self) -> tuple[Mask, list[Any]] | None:
        """The slots found since the last call, some of which may be free again, and the keys removed; None if that isn't known.

        It isn't at the first call, nor when more keys were removed than there are. A key may be among both, if it came back.
        """
        found, removed = self._found, self._removed
        self._found, self._removed = np.zeros(self.capacity, np.bool_), []
        return None if found is None else (found, removed)

    def in_use(self, those: Mask) -> Mask:
        """Those of the slots that a key has."""
        return those & self.live[: len(those)]

    def remove(self, where: Where) -> None:
        """Forget the keys at these slots."""
        if self._found is not None:
            self._removed += self.keys(where)
            if len(self._removed) > max(_FIRST, self.capacity):
                self._found, self._removed = None, []
        self.index.remove(where)
        self._free += where.tolist()
        self.live[where] = False

    def _take(self, count: int) -> Where:
        """So many slots, freed ones first."""
        again = self._free[max(0, len(self._free) - count) :]
        del self._free[len(self._free) - len(again) :]
        first, self._used = self._used, self._used + count - len(again)
        taken = np.concatenate([np.array(again[::-1], np.int64), np.arange(first, self._used)])
        more = max(_FIRST, self.capacity, self._used - self.capacity) if self._used > self.capacity else 0
        if more:
            self._hashes = np.concatenate([self._hashes, np.zeros(more, np.uint64)])
            self.live = np.concatenate([self.live, np.zeros(more, np.bool_)])
            if self._found is not None:
                self._found = np.concatenate([self._found, np.zeros(more, np.bool_)])
        return taken
