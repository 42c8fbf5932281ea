"""A snapshot of states in memory, packed piece by piece while the stream changes them.

Copy on write: a state is packed before the first record that could change it, because a user's function may change its value in
place. All others are packed in the background, key group by key group, so a key whose group is complete costs nothing more.

>>> states, members = {"a": 1, "b": 2}, GroupMembers(4)
>>> members.add(["a", "b"], [0, 3], states)
>>> frozen = FrozenStates(states, members, 4, lambda keys, values: [b"%d" % value for value in values])
>>> frozen.before(["a", "c"], [0, 3]); states |= {"a": 7, "c": 8}
>>> list(frozen)
[(['a', 'b'], [b'1', b'2'])]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from ..members import GroupMembers
from .base import SNAPSHOT_CHUNK, Chunk

Pack = Callable[[Sequence[Any], Sequence[Any]], list[bytes]]
"""A function `(keys, values)` that packs values; the keys are for error messages."""

Groups = Sequence[int] | npt.NDArray[Any]
"""The key group of each key."""


class FrozenStates:
    """A snapshot of `states`, which are those of the keys that `members` lists."""

    def __init__(self, states: dict[Any, Any], members: GroupMembers, key_groups: int, pack: Pack) -> None:
        self._states, self._members, self._pack = states, members, pack
        self._exact = members.exact(states)
        self._groups = list(range(key_groups - 1, -1, -1))
        self._waiting = np.ones(key_groups, np.bool_)
        """Groups that are not through."""
        self._settled: set[Any] = set()
        """Keys of these that were packed before they changed, or are newer than the snapshot."""
        self._group, self._rest, self._begun = -1, list[Any](), set[Any]()
        """The group at hand, what is left of its keys, and those of them that are packed."""
        self._keys, self._values = list[Any](), list[bytes]()

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        while len(self._keys) < SNAPSHOT_CHUNK and (self._rest or self._groups):
            self._pack_more(SNAPSHOT_CHUNK - len(self._keys))
        if not self._keys:
            raise StopIteration
        chunk = self._keys[:SNAPSHOT_CHUNK], self._values[:SNAPSHOT_CHUNK]
        del self._keys[:SNAPSHOT_CHUNK], self._values[:SNAPSHOT_CHUNK]
        return chunk

    @property
    def over(self) -> bool:
        """True if all states are packed."""
        return not (self._rest or self._groups)

    def before(self, keys: Sequence[Any], groups: Groups) -> None:
        """Pack the values of these keys, which are about to be changed, added or deleted."""
        waiting = self._waiting[groups]
        if not np.any(waiting):
            return
        new = set(compress(keys, waiting.tolist())).difference(self._settled, self._begun)
        if new:
            self._settled |= new
            self._add([key for key in new if key in self._states])

    def before_all(self) -> None:
        while not self.over:
            self._pack_more(SNAPSHOT_CHUNK)

    def _pack_more(self, keys: int) -> None:
        """Pack more keys of the current group, or of the next."""
        if not self._rest:
            self._group = self._groups.pop()
            self._rest = self._members.listed(self._group) if self._exact else self._members.of(self._group)
            if self._settled:
                self._rest = [key for key in self._rest if key not in self._settled]
        taken, self._rest = self._rest[:keys], self._rest[keys:]
        if self._begun or self._rest:  # a key may change between two pieces of its group
            taken = [key for key in taken if key not in self._settled]
            self._begun.update(taken)
        self._add(taken if self._exact else [key for key in taken if key in self._states])
        if not self._rest:
            self._waiting[self._group] = False
            self._begun.clear()

    def _add(self, keys: list[Any]) -> None:
        self._keys += keys
        self._values += self._pack(keys, list(map(self._states.__getitem__, keys)))
