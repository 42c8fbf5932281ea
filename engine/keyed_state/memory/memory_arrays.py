"""State in arrays in memory: every key has a slot in growing arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....state.frozen_rows import LastSnapshot
from ....state.growing import longer
from ...batch import Batch
from ...context import Context
from ...keys.slots import KeySlots
from ...protocol.routing import Move
from ...snapshots.chain import changed
from ...snapshots.changes import Changes, SlotChanges
from ...types.arrays import Array
from ..arrays import StateArrays, arrays_of, batch_of
from ..base import KeyTransfer, StateTransfer

CHUNK = 16_384
"""The keys of a chunk of a snapshot."""


class MemoryArrays(StateArrays):
    """State arrays in memory. `keys` names the key columns, `state` the state's with their types."""

    def __init__(self, context: Context, keys: tuple[str, ...], state: Mapping[str, np.dtype[Any]]) -> None:
        self._context, self._keys, self.types = context, keys, state
        self._slots = KeySlots(context.name, keys)
        self._arrays = {name: np.zeros(0, dtype) for name, dtype in state.items()}
        self._where, self._fresh = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._frozen = LastSnapshot[Batch]()

    def read(self, columns: Sequence[pa.Array]) -> dict[str, Array]:
        self._where, self._fresh = self._find(columns), self._slots.fresh
        self._frozen.before(self._where)
        return {name: array[self._where] for name, array in self._arrays.items()}

    def write(self, state: Mapping[str, Array]) -> None:
        fitting = {n: np.broadcast_to(np.asarray(state[n], array.dtype), self._where.shape) for n, array in self._arrays.items()}
        for name, values in fitting.items():
            self._arrays[name][self._where] = values

    def undo(self) -> None:
        self._slots.remove(self._fresh)

    def sweep(self, part: int, parts: int, expired: Callable[[Mapping[str, Array]], npt.NDArray[np.bool_]]) -> None:
        first, end = self._slots.capacity * part // parts, self._slots.capacity * (part + 1) // parts
        where = first + np.flatnonzero(self._slots.live[first:end])
        gone = where[expired({name: array[where] for name, array in self._arrays.items()})]
        self._frozen.before(gone)
        self._slots.remove(gone)

    def install(self, chunk: Batch) -> None:
        where = self._find([chunk.rows.column(key) for key in self._keys])
        self._frozen.before(where)
        for name, values in arrays_of(chunk, list(self._arrays)).items():
            self._arrays[name][where] = values

    @property
    def by_key(self) -> bool:
        return True

    def reserve(self, keys: int) -> None:
        self._slots.reserve(keys)

    def unnoted(self) -> AbstractContextManager[None]:
        return self._slots.unnoted()

    def snapshot(self) -> Iterator[Batch]:
        return self._frozen.begin(self._slots.live, self._at, CHUNK)

    def changes(self) -> Changes | None:
        return SlotChanges.of(self._slots)

    def delta(self, changes: Changes) -> Iterator[Batch]:
        assert isinstance(changes, SlotChanges)
        there = self._frozen.begin(self._slots.in_use(changes.those), self._at, CHUNK)
        return changed(self._keys, changes.removed, there, CHUNK)

    def depart(self, move: Move) -> StateTransfer:
        where = self._slots.leaving(move, self._context.key_groups)
        return KeyTransfer(self._slots.keys(where), self._take)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values()) + self._slots.nbytes

    def _take(self, keys: Sequence[pa.Array]) -> Batch | None:
        """Remove and return the states of the keys that are still here."""
        where = self._slots.known(keys)
        if not len(where):
            return None
        self._frozen.before(where)
        batch = self._at(where)
        self._slots.remove(where)
        return batch

    def _find(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """Return the slots of the keys' states; new keys get a slot with zeros."""
        where = self._slots.of(columns)
        for name, array in self._arrays.items():
            if self._slots.capacity > len(array):
                self._arrays[name] = longer(array, np.zeros(self._slots.capacity - len(array), array.dtype))
            self._arrays[name][self._slots.fresh] = 0
        return where

    def _at(self, where: npt.NDArray[np.int64]) -> Batch:
        return batch_of(self._keys, self._slots.keys(where), {name: array[where] for name, array in self._arrays.items()})
