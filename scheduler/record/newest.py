"""A numbered history of a job's events that keeps only the newest, so that a job can run for months without growing.

>>> history = Newest[str](kept=2)
>>> for event in ("a", "b", "c"):
...     history.append(event)
>>> len(history), list(history), history[1], history.newest
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
    """`len` is the number of all items so far, which is also the next item's number. Iteration yields the retained items, oldest
    first.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._items: deque[T] = deque(maxlen=kept)
        self._count = 0

    @property
    def newest(self) -> T | None:
        """The last item, None before the first."""
        return self._items[-1] if self._items else None

    def append(self, item: T) -> None:
        """Append an item, which gets the next number."""
        self._items.append(item)
        self._count += 1

    @property
    def first(self) -> int:
        """The number of the oldest retained item."""
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
