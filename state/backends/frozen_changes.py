"""The values of changed keys as of a checkpoint, read piece by piece while they change again.

>>> values = {"a": 1, "b": 2}
>>> changes = FrozenChanges({"a", "c"}, lambda keys: (sorted(keys), [values.get(key) for key in sorted(keys)]), chunk=10)
>>> changes.before(["a", "b"]); values["a"] = 7
>>> list(changes)
[(['a', 'c'], [1, None])]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from .base import Found


class FrozenChanges:
    """A snapshot of changed keys' values.

    `keys`: in any form, not changed from now on; `read` returns the values of some of them, `chunk` at a time.
    """

    def __init__(self, keys: set[Any], read: Callable[[set[Any]], Found], chunk: int) -> None:
        self._changed, self._read, self._chunk = keys, read, chunk
        self._in_turn = iter(keys)
        self._taken = set[Any]()
        self._keys, self._values = list[Any](), list[bytes | None]()

    def __iter__(self) -> Iterator[Found]:
        return self

    def __next__(self) -> Found:
        while len(self._keys) < self._chunk and not self.over:
            self._take(set(islice(self._in_turn, self._chunk - len(self._keys))) - self._taken)
        if not self._keys:
            raise StopIteration
        found = self._keys[: self._chunk], self._values[: self._chunk]
        del self._keys[: self._chunk], self._values[: self._chunk]
        return found

    @property
    def over(self) -> bool:
        """True if everything has been read."""
        return len(self._taken) == len(self._changed)

    def before(self, keys: Iterable[Any]) -> None:
        """Read the values of these keys, which are about to be changed, added or deleted."""
        if not self.over:
            self._take(self._changed & set(keys) - self._taken)

    def before_all(self) -> None:
        """Read everything that is left."""
        self._take(self._changed - self._taken)

    def _take(self, keys: set[Any]) -> None:
        if keys:
            self._taken |= keys
            found, values = self._read(keys)
            self._keys += found
            self._values += values
