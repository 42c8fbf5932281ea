"""Rows of a table as they were at one moment, given out little by little while the table goes on changing.

Copy on write: a row is copied at the latest right before it is changed, so that the moment itself costs next to nothing however many
rows there are. Invariant: every row is given out once, with what it held at the moment.

>>> column = np.array([10, 20, 30, 40])
>>> frozen = FrozenRows(np.arange(4), len(column), lambda where: column[where].tolist(), chunk=2)
>>> frozen.before(np.array([3])); column[3] = 41
>>> list(frozen)
[[40], [10, 20], [30]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np

from .key_index import Where

Rows = TypeVar("Rows")


class FrozenRows(Generic[Rows]):
    """`where`: the slots, each once, of a table with room for `capacity`; `read` copies rows out of it, `chunk` at a time."""

    def __init__(self, where: Where, capacity: int, read: Callable[[Where], Rows], chunk: int) -> None:
        self._where, self._read, self._chunk = where, read, chunk
        self._waiting = np.zeros(capacity, np.bool_)
        self._waiting[where] = True
        self._next = 0
        self._copied: list[Rows] = []

    def __iter__(self) -> Iterator[Rows]:
        return self

    def __next__(self) -> Rows:
        while not self.over:
            if self._copied:
                return self._copied.pop()
            piece = self._where[self._next : self._next + self._chunk]
            self._next += self._chunk
            rows = self._take(piece)
            if rows is not None:
                return rows
        raise StopIteration

    @property
    def over(self) -> bool:
        """Whether everything has been given out."""
        return not self._copied and self._next >= len(self._where)

    def before(self, where: Where) -> None:
        """The rows at these slots, each named once, are about to be changed, or their slots given up."""
        rows = self._take(where[where < len(self._waiting)])
        if rows is not None:
            self._copied.append(rows)

    def _take(self, where: Where) -> Rows | None:
        found = where[self._waiting[where]]
        if not len(found):
            return None
        self._waiting[found] = False
        return self._read(found)
