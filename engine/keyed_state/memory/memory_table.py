"""The state of running aggregates in memory: a row per key, with a fast look-up of a batch's keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....state.frozen_rows import LastSnapshot
from ....state.growing import longer
from ....state.slots import Mask
from ....state.words import Where
from ...aggregates.base import Parts
from ...aggregates.partial_aggregates import Carry, PartialAggregates, PartialAggregator
from ...batch import Batch
from ...keys.slots import KeySlots
from ...protocol.routing import Move
from ...snapshots.chain import changed
from ...snapshots.changes import Changes, SlotChanges
from ..base import KeyTransfer, StateTransfer
from ..table import AggregateTable
from .part_slots import clear, grown, merge_into, new_slots

CHUNK = 16_384
"""The keys of a chunk of a snapshot."""


class MemoryTable(AggregateTable):
    """A table in memory, whose rows are slots of growing arrays."""

    def __init__(self, aggregator: PartialAggregator, key_groups: int) -> None:
        self.aggregator, self._key_groups = aggregator, key_groups
        self._frozen = LastSnapshot[PartialAggregates]()
        self._forget()
        aggregator.when_rebound(self._carry_over)

    @property
    def nbytes(self) -> int:
        parts = sum(a.nbytes(p) for a, p in zip(self.aggregator.accumulators, self._parts, strict=False))
        return parts + self._rows.nbytes + self._slots.nbytes

    @property
    def key_types(self) -> Sequence[pa.DataType]:
        return self._slots.types.types

    def merge(self, partial: PartialAggregates) -> PartialAggregates:
        where = self._slots.of(partial.keys)
        self._frozen.before(where)
        self._grow()
        fresh = self._slots.fresh
        if len(fresh):
            self._rows[fresh] = 0
            for accumulator, parts in zip(self.aggregator.accumulators, self._parts, strict=True):
                for column, value in zip(parts, accumulator.empty(len(fresh)), strict=True):
                    column[fresh] = value
        self._rows[where] += partial.rows
        merged = []
        for accumulator, parts, new in zip(self.aggregator.accumulators, self._parts, partial.parts, strict=True):
            merged.append(merge_into(accumulator, parts, where, new))
        return PartialAggregates(partial.keys, self._rows[where], tuple(merged))

    def known(self, keys: Sequence[pa.Array]) -> tuple[npt.NDArray[np.intp], PartialAggregates]:
        where = self._slots.places(keys)
        places = np.flatnonzero(where >= 0)
        slots = where[places]
        parts = tuple(tuple(column[slots] for column in parts) for parts in self._parts)
        return places, PartialAggregates((), self._rows[slots], parts)

    def remove(self, keys: Sequence[pa.Array]) -> None:
        self._drop(self._slots.known(keys))

    def everything(self) -> Iterator[PartialAggregates]:
        if len(self._slots):
            yield self._at(self._slots.everything())

    @property
    def by_key(self) -> bool:
        return True

    def reserve(self, keys: int) -> None:
        self._slots.reserve(keys)
        self._grow()

    def unnoted(self) -> AbstractContextManager[None]:
        return self._slots.unnoted()

    def snapshot(self) -> Iterator[Batch]:
        return self._chunks(self._slots.live)

    def changes(self) -> Changes | None:
        return SlotChanges.of(self._slots)

    def delta(self, changes: Changes) -> Iterator[Batch]:
        assert isinstance(changes, SlotChanges)
        return changed(self.aggregator.keys, changes.removed, self._chunks(self._slots.in_use(changes.those)), CHUNK)

    def _chunks(self, those: Mask) -> Iterator[Batch]:
        """Return a snapshot of the rows at these slots."""
        aggregator, binding = self.aggregator, self.aggregator.binding
        return (aggregator.to_batch(partial, None, None, binding) for partial in self._frozen.begin(those, self._at, CHUNK))

    def depart(self, move: Move) -> StateTransfer:
        keys = self._slots.keys(self._slots.leaving(move, self._key_groups))
        return KeyTransfer(keys, self._take)

    def _carry_over(self, carry: Carry) -> None:
        """Rebuild the table, at the cost of merging all its keys once."""
        self._frozen.before(self._slots.everything())
        kept = list(self.everything())
        self._forget()
        for partial in kept:
            self.merge(carry(partial))

    def _take(self, keys: Sequence[pa.Array]) -> Batch | None:
        """Remove and return the rows of the keys that are still here."""
        where = self._slots.known(keys)
        if not len(where):
            return None
        partial = self._at(where)
        self._drop(where)
        return self.aggregator.to_batch(partial, None, None)

    def _drop(self, where: Where) -> None:
        self._frozen.before(where)
        self._slots.remove(where)
        clear(self._parts, where)

    def _forget(self) -> None:
        self._slots = KeySlots(self.aggregator.operator, self.aggregator.keys)
        self._rows = np.zeros(0, np.int64)
        self._parts: tuple[Parts, ...] = ()

    def _at(self, where: Where) -> PartialAggregates:
        return PartialAggregates(
            tuple(self._slots.keys(where)), self._rows[where], tuple(tuple(column[where] for column in parts) for parts in self._parts)
        )

    def _grow(self) -> None:
        more = self._slots.capacity - len(self._rows)
        if more <= 0 and self._parts:
            return
        self._rows = longer(self._rows, np.zeros(more, np.int64))
        accumulators = self.aggregator.accumulators
        self._parts = grown(accumulators, self._parts or new_slots(accumulators, 0, merged_into=True), more)
