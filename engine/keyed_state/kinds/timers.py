"""An index of times and keys, the earliest time first, and equal times in the order in which they were added.

The keys' records are authoritative: the caller compares a time that it takes out with the record. So a cancelled timer, or one
whose key moved away, needs no search here; `crowded` tells when a clean-up is worthwhile.

>>> timers = Timers()
>>> timers.add(20, "a")
>>> timers.add(10, "b")
>>> timers.due(15, most=8), timers.pop(15, {"b": 1}), timers.pop(15, {"b": 1})
(['b'], (10, 'b'), None)
"""

from __future__ import annotations

from collections.abc import Callable, Container
from heapq import heappop, heappush
from itertools import count
from typing import Any

MOST_VOID = 1_024
"""The number of times below which a clean-up is not worthwhile."""


class Timers:
    """An index of times in microseconds."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Any]] = []
        self._numbers = count()
        self._limit = MOST_VOID

    def add(self, at: int, key: Any) -> None:
        """Add a time for a key."""
        heappush(self._heap, (at, next(self._numbers), key))

    def due(self, until: int, most: int) -> list[Any]:
        """Return the keys of the first `most` times up to `until`, each key once."""
        entries: list[tuple[int, int, Any]] = []
        while self._heap and self._heap[0][0] <= until and len(entries) < most:
            entries.append(heappop(self._heap))
        for entry in entries:
            heappush(self._heap, entry)
        return list(dict.fromkeys(key for _, _, key in entries))

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def crowded(self) -> bool:
        """True if there are twice as many times as after the last `retain`, so that most may be obsolete."""
        return len(self._heap) > self._limit

    def keys(self) -> list[Any]:
        """Return all keys, each once."""
        return list(dict.fromkeys(key for _, _, key in self._heap))

    def retain(self, stands: Callable[[int, Any], bool]) -> None:
        """Remove the times for which `stands` is false, and repeated entries of a key with one time but the first."""
        kept: dict[tuple[int, Any], tuple[int, int, Any]] = {}
        for entry in sorted(self._heap, key=_order):
            if stands(entry[0], entry[2]):
                kept.setdefault((entry[0], entry[2]), entry)
        self._heap = list(kept.values())  # sorted, as a heap may be
        self._limit = max(MOST_VOID, 2 * len(self._heap))

    def pop(self, until: int, keys: Container[Any]) -> tuple[int, Any] | None:
        """Remove and return the first time up to `until` with its key; None if there is none, or its key is not one of `keys`."""
        if not self._heap or self._heap[0][0] > until or self._heap[0][2] not in keys:
            return None
        at, _, key = heappop(self._heap)
        return at, key


def _order(entry: tuple[int, int, Any]) -> tuple[int, int]:
    return entry[:2]
