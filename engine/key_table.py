"""A table with a row per key: the state of running aggregates, with a fast look-up of the keys that a batch changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..state.slots import Slots, Where
from .aggregates.base import Parts
from .keys import KeyTypes, key_hashes, key_values
from .routing import Move
from .summary import Summariser, Summary


class KeyTable:
    """Rows are slots of growing arrays; a dict finds a key's slot (about 60 ns a key)."""

    def __init__(self, summariser: Summariser) -> None:
        self._summariser = summariser
        self._slots = Slots()
        self._types = KeyTypes()
        self._rows = np.zeros(0, np.int64)
        self._parts: tuple[Parts, ...] = ()

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        """Estimate of its bytes."""
        parts = sum(a.nbytes(p) for a, p in zip(self._summariser.accumulators, self._parts, strict=False))
        return parts + self._rows.nbytes + self._slots.nbytes

    def merge(self, summary: Summary) -> Summary:
        """Add a summary with every key once; returns the new rows of these keys."""
        self._types.learn(summary.keys)
        where = self._slots.find(key_values(summary.keys), lambda fresh: self._hashes(summary.keys, fresh))
        self._grow()
        fresh = self._slots.fresh
        if len(fresh):
            self._rows[fresh] = 0
            for accumulator, parts in zip(self._summariser.accumulators, self._parts, strict=True):
                for column, value in zip(parts, accumulator.empty(len(fresh)), strict=True):
                    column[fresh] = value
        self._rows[where] += summary.rows
        merged = []
        for accumulator, parts, new in zip(self._summariser.accumulators, self._parts, summary.parts, strict=True):
            values = accumulator.merge(tuple(column[where] for column in parts), new)
            for column, value in zip(parts, values, strict=True):
                column[where] = value
            merged.append(values)
        return Summary(summary.keys, self._rows[where], tuple(merged))

    def everything(self) -> Summary:
        """All keys."""
        return self._at(self._slots.everything())

    def frozen(self, chunk: int) -> Iterator[Summary]:
        """All keys as they are now, about `chunk` at a time; the call copies, the iteration does the rest."""
        where = self._slots.everything()
        keys = self._slots.keys(where)
        rows, parts = self._rows[where], tuple(tuple(column[where] for column in part) for part in self._parts)

        def chunks() -> Iterator[Summary]:
            for first in range(0, len(keys), chunk):
                piece = slice(first, first + chunk)
                columns = tuple(self._types.columns(keys[piece]))
                yield Summary(columns, rows[piece], tuple(tuple(column[piece] for column in part) for part in parts))

        return chunks()

    def moving(self, move: Move, key_groups: int) -> list[Any]:
        """The keys that `move` selects."""
        return self._slots.keys(self._slots.where(lambda hashes: move.selects(hashes, key_groups)))

    def take(self, keys: list[Any]) -> Summary | None:
        """The rows of those of the keys that are here, which are gone after it."""
        where = self._slots.known(keys)
        if not len(where):
            return None
        summary = self._at(where)
        self._slots.remove(where)
        return summary

    def _at(self, where: Where) -> Summary:
        keys = self._types.columns(self._slots.keys(where))
        return Summary(tuple(keys), self._rows[where], tuple(tuple(column[where] for column in parts) for parts in self._parts))

    def _hashes(self, columns: Sequence[pa.Array], places: Where) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        where = pa.array(places)
        return key_hashes([column.take(where) for column in columns], self._summariser.operator)

    def _grow(self) -> None:
        more = self._slots.capacity - len(self._rows)
        if more <= 0:
            return
        self._rows = np.concatenate([self._rows, np.zeros(more, np.int64)])
        accumulators = self._summariser.accumulators
        before = self._parts or tuple(a.empty(0) for a in accumulators)
        self._parts = tuple(
            tuple(np.concatenate([old, new]) for old, new in zip(olds, a.empty(more), strict=True))
            for olds, a in zip(before, accumulators, strict=True)
        )
