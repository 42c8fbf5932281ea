"""The state of sessions and count windows in memory: rows are slots of growing arrays, and the rows of a key are linked.

Invariant: a key has a slot in `_slots` if it has rows; `_heads` leads to its first row, and `_next` from row to row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ....state.frozen_rows import LastSnapshot
from ....state.slots import Mask
from ....state.words import Where
from ...aggregates.base import Parts
from ...aggregates.partial_aggregates import Carry, PartialAggregates, PartialAggregator
from ...batch import Batch
from ...context import Context
from ...keys.slots import KeySlots
from ...protocol.elements import MAX_TIME
from ...protocol.routing import Move
from ...snapshots.chain import changed
from ...snapshots.changes import Changes, SlotChanges
from ..base import KeyTransfer, StateTransfer
from ..series import NOWHERE, Codes, FoundRows, Positions, Series, SeriesRows
from .part_slots import clear, grown, new_slots

CHUNK = 16_384
"""The rows of a chunk of a snapshot."""

_NONE = -1
_Piece = tuple[PartialAggregates, Positions]


class MemorySeries(Series):
    """Series in memory. A batch costs as much as the series of its keys, independent of the number of all keys."""

    def __init__(self, aggregator: PartialAggregator, context: Context) -> None:
        self.aggregator, self._context = aggregator, context
        self._slots = KeySlots(context.name)
        self._heads = np.zeros(0, np.int64)
        self._next = np.zeros(0, np.int64)
        self._keys = np.zeros(0, np.int64)
        """The slot of each row's key."""
        self._positions = np.zeros(0, np.int64)
        self._rows = np.zeros(0, np.int64)
        self._parts: tuple[Parts, ...] = ()
        self._live: Mask = np.zeros(0, np.bool_)
        self._free = np.zeros(0, np.int64)
        """The free slots of rows are the first `_frees` of these."""
        self._frees = 0
        self._lowest = MAX_TIME
        """A lower bound of the positions of all rows."""
        self._frozen = LastSnapshot[_Piece]()
        self._read: tuple[Where, Codes, Where] = NOWHERE, NOWHERE, NOWHERE
        """The slots of the keys that were read; of their rows, the places of their keys among these, and the slots."""

    @property
    def nbytes(self) -> int:
        parts = sum(a.nbytes(p) for a, p in zip(self.aggregator.accumulators, self._parts, strict=False))
        return parts + 33 * len(self._live) + self._heads.nbytes + self._slots.nbytes

    def read(self, keys: Sequence[pa.Array]) -> FoundRows:
        of = self._slots.of(keys)
        more = self._slots.capacity - len(self._heads)
        if more > 0:
            self._heads = np.concatenate([self._heads, np.full(more, _NONE)])
        self._heads[self._slots.fresh] = _NONE
        codes, where = self._linked(of)
        self._read = of, codes, where
        return FoundRows(codes, self._positions[where], lambda places: self._partial(where[places]))

    def write(self, rows: SeriesRows, kept: Where = NOWHERE) -> None:
        of, codes, where = self._read
        if len(where) and not len(kept):
            others = self._replace(rows, of)
            numbers = np.cumsum(others) - 1
            left = np.flatnonzero(others[rows.codes])
            rows = SeriesRows(numbers[rows.codes[left]], rows.positions[left], rows.partial.take(left))
            of, where = of[others], where[others[codes]]
        self._remove(np.delete(where, kept))
        self._link(np.concatenate([where[kept], self._add(of, rows)]), of)
        self._forget(of[self._heads[of] == _NONE])

    def _replace(self, rows: SeriesRows, of: Where) -> Mask:
        """Replace the row of each key that had one row and has one now. Return a mask of the other keys."""
        heads = self._heads[of]
        once = (heads != _NONE) & (self._next[heads] == _NONE) & (np.bincount(rows.codes, minlength=len(of)) == 1)
        mine = np.flatnonzero(once[rows.codes])
        where = heads[rows.codes[mine]]
        self._frozen.before(where)
        self._fill(where, rows.positions[mine], rows.partial.take(mine))
        others: Mask = ~once
        return others

    def take_before(self, position: int) -> Iterator[_Piece]:
        if self._lowest >= position:
            return
        where = np.flatnonzero(self._live & (self._positions < position))
        if len(where):
            keys = np.unique(self._keys[where])
            self._slots.note(keys)
            _, rows = self._linked(keys)
            staying = rows[self._positions[rows] >= position]
            taken = self._at(where)
            self._remove(where)
            self._link(staying, keys)
            self._forget(keys[self._heads[keys] == _NONE])
            yield taken
        left = self._positions[self._live]
        self._lowest = int(left.min()) if len(left) else MAX_TIME

    def snapshot(self) -> Iterator[Batch]:
        return self._chunks(self._live)

    def changes(self) -> Changes | None:
        return SlotChanges.of(self._slots)

    def delta(self, changes: Changes) -> Iterator[Batch]:
        assert isinstance(changes, SlotChanges)
        keys, those, there = self._slots.in_use(changes.those), np.zeros(len(self._live), np.bool_), np.flatnonzero(self._live)
        known = there[self._keys[there] < len(keys)]
        those[known] = keys[self._keys[known]]
        return changed(self.aggregator.keys, changes.removed, self._chunks(those), CHUNK)

    def depart(self, move: Move) -> StateTransfer:
        """Cut the keys out at once, so that the other series can continue."""
        away = MemorySeries(self.aggregator, self._context)
        found = self._cut_out(self._slots.leaving(move, self._context.key_groups))
        if found is not None:
            away.add(*found)
        aggregator, binding = self.aggregator, self.aggregator.binding

        def take(keys: Sequence[pa.Array]) -> Batch | None:
            leaving = away._cut_out(away._slots.known(keys))
            return None if leaving is None else aggregator.to_batch(leaving[0], None, leaving[1], binding)

        return KeyTransfer(away._slots.keys(away._slots.everything()), take)

    def _cut_out(self, of: Where) -> _Piece | None:
        """Remove and return the series of the keys at these slots."""
        if not len(of):
            return None
        _, where = self._linked(of)
        found = self._at(where)
        self._remove(where)
        self._forget(of)
        return found

    def _linked(self, of: Where) -> tuple[Codes, Where]:
        """Return the rows of the keys at these slots, and for each row the index of its key in `of`."""
        codes, found = [np.arange(len(of))], [self._heads[of]]
        while True:
            there = found[-1] != _NONE
            codes[-1], found[-1] = codes[-1][there], found[-1][there]
            if not len(found[-1]):
                return np.concatenate(codes), np.concatenate(found)
            codes.append(codes[-1])
            found.append(self._next[found[-1]])

    def _add(self, of: Where, rows: SeriesRows) -> Where:
        """Add rows of the keys at the slots `of`, not linked yet. Return their slots."""
        if not len(rows.codes):
            return NOWHERE
        where = self._take_free(len(rows.codes))
        self._keys[where], self._live[where] = of[rows.codes], True
        self._fill(where, rows.positions, rows.partial)
        return where

    def _fill(self, where: Where, positions: Positions, partial: PartialAggregates) -> None:
        """Write rows into these slots."""
        if not len(where):
            return
        self._positions[where], self._rows[where] = positions, partial.rows
        for columns, values in zip(self._parts, partial.parts, strict=True):
            for column, value in zip(columns, values, strict=True):
                column[where] = value
        self._lowest = min(self._lowest, int(positions.min()))

    def _link(self, where: Where, keys: Where) -> None:
        """Link these rows, all rows of the keys at the slots `keys`; those of a key in this order."""
        self._heads[keys] = _NONE
        while len(where):
            of = self._keys[where]
            behind = self._heads[of]
            self._heads[of] = where
            last = self._heads[of] == where  # the last remaining row of each key
            self._next[where[last]] = behind[last]
            where = where[~last]

    def _remove(self, where: Where) -> None:
        """Remove rows; the links to them stay."""
        self._frozen.before(where)
        self._live[where] = False
        clear(self._parts, where)
        self._free[self._frees : self._frees + len(where)] = where
        self._frees += len(where)

    def _forget(self, keys: Where) -> None:
        if len(keys):
            self._slots.remove(keys)

    def _take_free(self, count: int) -> Where:
        if count > self._frees:
            self._grow(count - self._frees)
        self._frees -= count
        return self._free[self._frees : self._frees + count].copy()

    def _grow(self, least: int) -> None:
        size = len(self._live)
        more = max(1024, size, least)
        self._next, self._keys, self._positions, self._rows = (
            np.concatenate([column, np.zeros(more, np.int64)]) for column in (self._next, self._keys, self._positions, self._rows)
        )
        self._live = np.concatenate([self._live, np.zeros(more, np.bool_)])
        self._free = np.concatenate(
            [np.arange(size + more - 1, size - 1, -1), self._free[: self._frees], np.zeros(size - self._frees, np.int64)]
        )
        self._frees += more
        accumulators = self.aggregator.accumulators
        self._parts = grown(accumulators, self._parts or new_slots(accumulators, 0), more)

    def _partial(self, where: Where, keys: tuple[pa.Array, ...] = ()) -> PartialAggregates:
        return PartialAggregates(keys, self._rows[where], tuple(tuple(column[where] for column in parts) for parts in self._parts))

    def _at(self, where: Where) -> _Piece:
        return self._partial(where, tuple(self._slots.keys(self._keys[where]))), self._positions[where]

    def _chunks(self, those: Mask) -> Iterator[Batch]:
        """Return a snapshot of these rows."""
        aggregator, binding, pieces = self.aggregator, self.aggregator.binding, self._frozen.begin(those, self._at, CHUNK)
        return (aggregator.to_batch(partial, None, positions, binding) for partial, positions in pieces)

    def carry_over(self, carry: Carry) -> None:
        """Convert the content to a new binding."""
        where = np.flatnonzero(self._live)
        self._frozen.before(where)
        kept = carry(self._partial(where))
        self._parts = new_slots(self.aggregator.accumulators, len(self._live))
        for columns, values in zip(self._parts, kept.parts, strict=True):
            for column, value in zip(columns, values, strict=True):
                column[where] = value
