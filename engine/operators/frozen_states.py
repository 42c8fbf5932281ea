"""The states of `stateful_map` as they were at one moment, packed little by little while the stream goes on changing them.

Copy on write: a state is packed at the latest before the first record that could change it, since a user's function may change its
value in place. Everything else is packed in the background, key group by key group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ...state.members import GroupMembers
from ..batch import Batch

CHUNK = 2_048
"""Keys of a chunk: it delays the batches behind it by 1 to 2 ms."""


class FrozenStates:
    """An iterator of chunks; `before` must be told of every key that is about to be given to the user's function or forgotten."""

    def __init__(self, states: Mapping[Any, Any], members: GroupMembers, key_groups: int, pack: Callable[[dict[Any, Any]], Batch]) -> None:
        self._states, self._members, self._pack = states, members, pack
        self._groups = list(range(key_groups - 1, -1, -1))
        self._ready: list[Batch] = []
        self._settled: set[Any] = set()
        """Keys that are packed already or did not exist at the moment."""
        self._rest: list[Any] = []

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        while not self.over:
            if self._ready:
                return self._ready.pop()
            while len(self._rest) < CHUNK and self._groups:
                self._rest += self._members.of(self._groups.pop())
            taken, self._rest = self._rest[:CHUNK], self._rest[CHUNK:]
            found = {key: self._states[key] for key in taken if key in self._states and key not in self._settled}
            if found:
                self._settled.update(found)
                return self._pack(found)
        raise StopIteration

    @property
    def over(self) -> bool:
        """Whether everything has been given out."""
        return not (self._ready or self._rest or self._groups)

    def before(self, keys: Collection[Any]) -> None:
        """Records of these keys come next."""
        new = set(keys).difference(self._settled)
        if new:
            self._settled |= new
            found = {key: self._states[key] for key in new if key in self._states}
            if found:
                self._ready.append(self._pack(found))
