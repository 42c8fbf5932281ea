"""Saved state that a restored worker has read and not installed yet, so that it takes records before all of it is in place.

To install a key's state takes several times as long as to read it. So the rows of a checkpoint wait here, found by the hashes of their
keys. A key's state is installed right before its first record is processed, and the rest in slices between batches. Invariants: each
row is installed once; a key's state is installed before any record, read, move or full snapshot that needs it; and what is
installed is not among the state's changes, because it is as in the checkpoint.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...state.slots import Mask
from ..batch import Batch
from ..protocol.routing import Hashes, Move
from ..snapshots.saved_rows import Rows, SavedRows
from .base import KeyedState

SLICE = 4_096
"""The rows that are installed at a time between two batches, in 1 to 3 ms."""

MOSTLY = 0.5
"""The part of a chunk's rows that must be this worker's state, so that the chunk is kept as it is."""


class PendingState:
    """The state of one operator in one worker that is still to be installed into `state`; `operator` is for errors."""

    def __init__(self, state: KeyedState, operator: str) -> None:
        self._state, self._operator = state, operator
        self._clear()

    def _clear(self) -> None:
        self.left = 0
        """The number of rows to install."""
        self._rows = SavedRows()
        self._hashes: list[Hashes] = []
        """The hashes of each chunk's keys."""
        self._own: list[Mask] = []
        """The rows of each chunk that are this worker's state."""
        self._waiting: Mask = np.zeros(0, np.bool_)
        """True for each row to install."""
        self._next = 0
        """The first row that `some` has not looked at."""
        self._low = np.uint64(0)
        self._order: Hashes = np.zeros(0, np.uint64)
        """The high bits of each row's hash and, in the bits `_low`, its number, ascending."""

    @property
    def nbytes(self) -> int:
        """An estimate of the bytes that it holds."""
        return self._rows.nbytes + 2 * self._order.nbytes + len(self._waiting)

    def add(self, chunk: pa.RecordBatch, hashes: Hashes, own: Mask | None = None) -> None:
        """Add a chunk, and the hashes of its keys, shape (rows,); before `begin`. `own`: the rows that are this worker's state, if not all.

        Raises RecordError at once, as `restore` does, if it is not state of this kind.
        """
        if own is not None and np.count_nonzero(own) < MOSTLY * len(own):  # to keep the others would take more than a copy of these
            chunk, hashes, own = chunk.filter(pa.array(own)), hashes[own], None
        if self._rows.add(chunk):
            self._state.restore(Batch(chunk.slice(0, 0)), self._operator)
        self._hashes.append(hashes)
        self._own.append(np.ones(len(hashes), np.bool_) if own is None else own)

    def begin(self) -> None:
        """Sort the rows by hash: all chunks are here."""
        self._rows.close()
        rows = len(self._rows)
        if not rows:
            return
        self._waiting, self._own = np.concatenate(self._own), []
        self.left = int(np.count_nonzero(self._waiting))
        self._low = np.uint64((1 << rows.bit_length()) - 1)
        self._order, first = np.empty(rows, np.uint64), 0
        for hashes in self._hashes:
            numbers = np.arange(first, first + len(hashes), dtype=np.uint64)
            self._order[first : first + len(hashes)] = (hashes & ~self._low) | numbers
            first += len(hashes)
        self._order.sort()
        self._state.reserve(self.left)

    def need(self, hashes: Hashes) -> None:
        """Install the state of the keys with these hashes, shape (keys,)."""
        if not self.left or not len(hashes):
            return
        wanted = np.sort(hashes & ~self._low)
        wanted = wanted[np.append(True, wanted[1:] != wanted[:-1])]
        places, found = np.searchsorted(self._order, wanted), list[Rows]()
        while len(places):  # once more for each further row of a key
            there = places < len(self._order)
            entries = self._order[places[there]]
            same = (entries & ~self._low) == wanted[there]
            rows = (entries[same] & self._low).astype(np.int64)
            found.append(rows[self._waiting[rows]])
            places, wanted = places[there][same] + 1, wanted[there][same]
        self._install(np.sort(np.concatenate(found)))

    def leave(self, move: Move, key_groups: int) -> None:
        """Install the state of the keys that `move` selects, which is about to depart."""
        if self.left:
            leaving = np.concatenate([move.selects(hashes, key_groups) for hashes in self._hashes])
            self._install(np.flatnonzero(self._waiting & leaving))

    def some(self) -> None:
        """Install a slice of the rest."""
        while self.left:
            rows = self._next + np.flatnonzero(self._waiting[self._next : self._next + SLICE])
            self._next += SLICE
            if len(rows):
                self._install(rows)
                self._rows.free(self._next)
                return

    def everything(self) -> None:
        """Install all that is left."""
        while self.left:
            self.some()

    def _install(self, rows: Rows) -> None:
        if not len(rows):
            return
        self._waiting[rows] = False
        with self._state.unnoted():
            for chunk in self._rows.take(rows):
                self._state.restore(Batch(chunk), self._operator)
        self.left -= len(rows)
        if not self.left:
            self._clear()
