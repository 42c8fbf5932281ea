"""The state of running aggregates in memory: a row per key, with a fast look-up of a batch's keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from ...state.frozen_rows import FrozenRows
from ...state.slots import Mask
from ...state.words import Where
from ..aggregates.base import Parts
from ..aggregates.partial_aggregates import Carry, PartialAggregates, PartialAggregator
from ..batch import Batch
from ..keys.slots import KeySlots
from ..protocol.routing import Move
from ..snapshots.chain import removed, replacing
from ..snapshots.changes import Changes, SlotChanges
from .base import StateTransfer
from .keys_left import KeysLeft
from .part_slots import clear, grown, merge_into, new_slots
from .table import Table

CHUNK = 16_384
"""Keys of a chunk of a snapshot."""


class MemoryTable(Table):
    """Rows are slots of growing arrays."""

    def __init__(self, aggregator: PartialAggregator, key_groups: int) -> None:
        self._aggregator, self._key_groups = aggregator, key_groups
        self._frozen: FrozenRows[PartialAggregates] | None = None
        self._forget()
        aggregator.when_rebound(self._carry_over)

    @property
    def nbytes(self) -> int:
        parts = sum(a.nbytes(p) for a, p in zip(self._aggregator.accumulators, self._parts, strict=False))
        return parts + self._rows.nbytes + self._slots.nbytes

    def merge(self, partial: PartialAggregates) -> PartialAggregates:
        where = self._slots.of(partial.keys)
        self._before(where)
        self._grow()
        fresh = self._slots.fresh
        if len(fresh):
            self._rows[fresh] = 0
            for accumulator, parts in zip(self._aggregator.accumulators, self._parts, strict=True):
                for column, value in zip(parts, accumulator.empty(len(fresh)), strict=True):
                    column[fresh] = value
        self._rows[where] += partial.rows
        merged = []
        for accumulator, parts, new in zip(self._aggregator.accumulators, self._parts, partial.parts, strict=True):
            merged.append(merge_into(accumulator, parts, where, new))
        return PartialAggregates(partial.keys, self._rows[where], tuple(merged))

    def install(self, chunk: Batch) -> None:
        partial, _ = self._aggregator.from_batch(chunk)
        self.merge(partial)

    def everything(self) -> Iterator[PartialAggregates]:
        if len(self._slots):
            yield self._at(self._slots.everything())

    def snapshot(self) -> Iterator[Batch]:
        binding = self._aggregator.binding
        return (self._aggregator.to_batch(partial, None, None, binding) for partial in self._freeze(self._slots.live))

    def changes(self) -> Changes | None:
        noted = self._slots.changes()
        return None if noted is None else SlotChanges(*noted)

    def delta(self, changes: Changes) -> Iterator[Batch]:
        assert isinstance(changes, SlotChanges)
        names, aggregator, binding = self._aggregator.keys, self._aggregator, self._aggregator.binding
        there = self._freeze(self._slots.in_use(changes.those))
        return chain(
            removed(names, changes.removed, CHUNK),
            (Batch(replacing(aggregator.to_batch(partial, None, None, binding).rows, names)) for partial in there),
        )

    def _freeze(self, those: Mask) -> Iterator[PartialAggregates]:
        """A snapshot of the rows at these slots. It ends the previous one."""
        self._frozen = FrozenRows(those, self._at, CHUNK)
        return self._frozen

    def _before(self, where: Where) -> None:
        """Copy the rows at these slots for the snapshot, because they are about to change."""
        if self._frozen is not None:
            self._frozen.before(where)
            if self._frozen.over:
                self._frozen = None

    def depart(self, move: Move) -> StateTransfer:
        keys = self._slots.keys(self._slots.where(lambda hashes: move.selects(hashes, self._key_groups)))
        return _RowTransfer(self, self._aggregator, keys)

    def _carry_over(self, carry: Carry) -> None:
        """Rebuilds the table, at the cost of merging all its keys once."""
        self._before(self._slots.everything())
        kept = list(self.everything())
        self._forget()
        for partial in kept:
            self.merge(carry(partial))

    def take(self, keys: Sequence[pa.Array]) -> PartialAggregates | None:
        """Remove and return the rows of the keys, as far as they are here."""
        where = self._slots.known(keys)
        if not len(where):
            return None
        self._before(where)
        partial = self._at(where)
        self._slots.remove(where)
        clear(self._parts, where)
        return partial

    def _forget(self) -> None:
        self._slots = KeySlots(self._aggregator.operator)
        self._rows = np.zeros(0, np.int64)
        self._parts: tuple[Parts, ...] = ()

    def _at(self, where: Where) -> PartialAggregates:
        return PartialAggregates(
            tuple(self._slots.keys(where)), self._rows[where], tuple(tuple(column[where] for column in parts) for parts in self._parts)
        )

    def _grow(self) -> None:
        more = self._slots.capacity - len(self._rows)
        if more <= 0:
            return
        self._rows = np.concatenate([self._rows, np.zeros(more, np.int64)])
        accumulators = self._aggregator.accumulators
        self._parts = grown(accumulators, self._parts or new_slots(accumulators, 0, merged_into=True), more)


class _RowTransfer(StateTransfer):
    """A transfer that removes rows from the table chunk by chunk."""

    def __init__(self, table: MemoryTable, aggregator: PartialAggregator, keys: list[pa.Array]) -> None:
        self._table, self._aggregator, self._left = table, aggregator, KeysLeft(keys)

    def next_chunk(self, keys: int) -> Batch | None:
        while self._left:
            batch = self._take(self._left.take(keys))
            if batch is not None:
                return batch
        return None

    def fetch(self, columns: Sequence[pa.Array]) -> Sequence[Batch]:
        batch = self._take(columns)
        return () if batch is None else (batch,)

    def _take(self, keys: Sequence[pa.Array]) -> Batch | None:
        partial = self._table.take(keys)
        return None if partial is None else self._aggregator.to_batch(partial, None, None)
