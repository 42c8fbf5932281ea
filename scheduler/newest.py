"""A history: what has happened to a job, numbered from 0, of which the newest is kept: a job that runs for months must not grow by it.

>>> history = Newest[str](kept=2)
>>> for event in ("a", "b", "c"):
...     history.append(event)
>>> len(history), list(history), history[1], history[-1]
(3, ['b', 'c'], 'b', 'c')
>>> history[0]
Traceback (most recent call last):
    ...
IndexError: number 0 is not among those that are kept, 1 to 2
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

KEPT = 100

T = TypeVar("T")


class Newest(Generic[T]):
    """`len` is how many there have ever been, which is the next one's number; whoever iterates gets those that are kept, oldest first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._items: deque[T] = deque(maxlen=kept)
        self._count = 0

    def append(self, item: T) -> None:
        """The next number is this one's."""
        self._items.append(item)
        self._count += 1

    @property
    def first(self) -> int:
        """The lowest number that is kept."""
        return self._count - len(self._items)

    def __getitem__(self, number: int) -> T:
        place = number - self.first if number >= 0 else len(self._items) + number
        if not 0 <= place < len(self._items):
            raise IndexError(f"number {number} is not among those that are kept, {self.first} to {self._count - 1}")
        return self._items[place]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __len__(self) -> int:
        return self._count
