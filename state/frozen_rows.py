"""A snapshot of a table's rows, read piece by piece while the table changes.

Copy on write: a row is copied right before it changes, so beginning a snapshot is cheap for any number of rows. Invariant: every
row is read once, with its content at the time of the snapshot.

>>> column = np.array([10, 20, 30, 40])
>>> frozen = FrozenRows(np.ones(4, np.bool_), lambda where: column[where].tolist(), chunk=2)
>>> frozen.before(np.array([3])); column[3] = 41
>>> list(frozen)
[[40], [10, 20], [30]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np

from .slots import Mask
from .words import Where

Rows = TypeVar("Rows")


class LastSnapshot(Generic[Rows]):
    """The newest snapshot of a table's rows, until all of it has been taken; it ends the previous one."""

    def __init__(self) -> None:
        self._rows: FrozenRows[Rows] | None = None

    def begin(self, those: Mask, read: Callable[[Where], Rows], chunk: int) -> Iterator[Rows]:
        """Begin a snapshot, with the arguments of `FrozenRows`."""
        self._rows = FrozenRows(those, read, chunk)
        return self._rows

    def before(self, where: Where) -> None:
        """Copy the rows at these slots, as `FrozenRows.before` does."""
        if self._rows is not None:
            self._rows.before(where)
            if self._rows.over:
                self._rows = None


class FrozenRows(Generic[Rows]):
    """A snapshot of the rows in the slots `those`. `read` copies rows out of the table, about `chunk` at a time."""

    def __init__(self, those: Mask, read: Callable[[Where], Rows], chunk: int) -> None:
        self._waiting, self._read, self._chunk = those.copy(), read, chunk
        self._span = max(1, chunk * len(those) // max(1, int(np.count_nonzero(those))))
        """Slots that are examined for one chunk."""
        self._next = 0
        self._found: list[Where] = []
        self._copied: list[Rows] = []

    def __iter__(self) -> Iterator[Rows]:
        return self

    def __next__(self) -> Rows:
        while not self.over:
            if self._copied:
                return self._copied.pop()
            if self._found:
                rows = self._take(self._found.pop())
                if rows is not None:
                    return rows
            else:
                found = np.flatnonzero(self._waiting[self._next : self._next + self._span]) + self._next
                self._found = [found[i : i + self._chunk] for i in reversed(range(0, len(found), self._chunk))]
                self._next += self._span
        raise StopIteration

    @property
    def over(self) -> bool:
        """True if all chunks have been taken."""
        return not self._copied and not self._found and self._next >= len(self._waiting)

    def before(self, where: Where) -> None:
        """Copy the rows at these distinct slots, which are about to change or to be freed."""
        rows = self._take(where[where < len(self._waiting)])
        if rows is not None:
            self._copied.append(rows)

    def _take(self, where: Where) -> Rows | None:
        found = where[self._waiting[where]]
        if not len(found):
            return None
        self._waiting[found] = False
        return self._read(found)
