"""Times at which something is to be done for a key, the earliest first; of one time, in the order in which they were noted.

It is an index of what lies in the keys' records: who takes a time out of it asks the record whether it still stands. So a timer that was
cancelled, or whose key went to another worker, needs no search here.

>>> timers = Timers()
>>> timers.add(20, "a")
>>> timers.add(10, "b")
>>> timers.due(15, most=8), timers.pop(15, {"b": 1}), timers.pop(15, {"b": 1})
(['b'], (10, 'b'), None)
"""

from __future__ import annotations

from collections.abc import Container
from heapq import heappop, heappush
from itertools import count
from typing import Any


class Timers:
    """Times in microseconds."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Any]] = []
        self._numbers = count()

    def add(self, at: int, key: Any) -> None:
        """Note a time for a key."""
        heappush(self._heap, (at, next(self._numbers), key))

    def due(self, until: int, most: int) -> list[Any]:
        """The keys of the first `most` times up to `until`, each key once."""
        entries: list[tuple[int, int, Any]] = []
        while self._heap and self._heap[0][0] <= until and len(entries) < most:
            entries.append(heappop(self._heap))
        for entry in entries:
            heappush(self._heap, entry)
        return list(dict.fromkeys(key for _, _, key in entries))

    def pop(self, until: int, keys: Container[Any]) -> tuple[int, Any] | None:
        """Take out the first time up to `until` and its key; None if there is none, or if its key is not one of `keys`."""
        if not self._heap or self._heap[0][0] > until or self._heap[0][2] not in keys:
            return None
        at, _, key = heappop(self._heap)
        return at, key
