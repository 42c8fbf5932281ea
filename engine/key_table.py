"""A table with a row per key: the state of running aggregates, with a fast look-up of the keys that a batch changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .aggregates.base import Parts
from .summary import Summariser, Summary

_FIRST = 1024


class KeyTable:
    """Rows are slots of growing arrays; a dict finds a key's slot (about 60 ns a key)."""

    def __init__(self, summariser: Summariser) -> None:
        self._summariser = summariser
        self._slots: dict[Any, int] = {}
        self._keys: list[tuple[pa.Array, ...]] = []
        self._rows = np.zeros(0, np.int64)
        self._parts: tuple[Parts, ...] = ()

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        """Estimate of its bytes."""
        parts = sum(a.nbytes(p) for a, p in zip(self._summariser.accumulators, self._parts, strict=False))
        return parts + self._rows.nbytes + 100 * len(self._slots)

    def merge(self, keys: list[Any], summary: Summary) -> Summary:
        """Add a summary with every key once (`keys` are its keys as Python values); returns the new rows of these keys."""
        slots, known = self._slots, len(self._slots)
        found = [slots.setdefault(key, len(slots)) for key in keys]
        where = np.array(found, np.int64)
        if len(slots) > known:
            fresh = pa.array(np.flatnonzero(where >= known))
            self._keys.append(tuple(column.take(fresh) for column in summary.keys))
            self._grow(len(slots))
        self._rows[where] += summary.rows
        merged = []
        for accumulator, parts, new in zip(self._summariser.accumulators, self._parts, summary.parts, strict=True):
            values = accumulator.merge(tuple(column[where] for column in parts), new)
            for column, value in zip(parts, values, strict=True):
                column[where] = value
            merged.append(values)
        return Summary(summary.keys, self._rows[where], tuple(merged))

    def everything(self) -> Summary:
        """All keys, in the order in which they came."""
        n = len(self._slots)
        if len(self._keys) > 1:
            columns = [pa.concat_arrays([keys[i] for keys in self._keys]) for i in range(len(self._keys[0]))]
            self._keys = [tuple(columns)]
        return Summary(self._keys[0], self._rows[:n], tuple(tuple(column[:n] for column in parts) for parts in self._parts))

    def _grow(self, size: int) -> None:
        capacity = len(self._rows)
        if size <= capacity:
            return
        more = max(_FIRST, 2 * capacity, size) - capacity
        self._rows = np.concatenate([self._rows, np.zeros(more, np.int64)])
        empty = [a.empty(more) for a in self._summariser.accumulators]
        before = self._parts or tuple(a.empty(0) for a in self._summariser.accumulators)
        self._parts = tuple(
            tuple(np.concatenate([old, new]) for old, new in zip(olds, news, strict=True)) for olds, news in zip(before, empty, strict=True)
        )
