"""State in memory: a dict from keys to Python objects.

The user of `objects` changes it directly, and calls `before` while it is `watched`, and `note_new` for new keys.

>>> states = MemoryBackend(key_groups=4)
>>> states.put_many([1, 2], ["a", "b"], [{"n": 1}, {"n": 2}])
>>> states.get_many([1, 3], ["a", "c"]), states.keys_of(2)
([{'n': 1}, None], ['b'])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice, repeat
from typing import Any

from ..members import GroupMembers
from ..packing import pack_values
from .base import MOST_NOTED, SNAPSHOT_CHUNK, Chunk, Found, StateBackend
from .frozen_changes import FrozenChanges

Pack = Callable[[Sequence[Any], Sequence[Any]], list[bytes]]
"""(keys, values) -> the packed values; the keys are for error messages."""

KEY_BYTES = 200
"""An estimate of the bytes of a key and its state."""


class MemoryBackend(StateBackend):
    """`pack` packs the values of a snapshot."""

    def __init__(self, key_groups: int, pack: Pack | None = None) -> None:
        self.objects: dict[Any, Any] = {}
        self._members = GroupMembers(key_groups)
        self._key_groups = key_groups
        self._pack = pack if pack is not None else lambda _keys, values: list(pack_values(values))
        self._frozen: FrozenStates | FrozenChanges | None = None

    def get_many(self, groups: Sequence[int], keys: Sequence[Any]) -> list[Any]:
        return list(map(self.objects.get, keys))

    def put_many(self, groups: Sequence[int], keys: Sequence[Any], values: Sequence[Any]) -> None:
        self.before(keys)
        before = len(self.objects)
        if self.objects.keys().isdisjoint(keys):
            fresh, places = list(keys), list(groups)
        else:
            where = [place for place, key in enumerate(keys) if key not in self.objects]
            fresh, places = [keys[place] for place in where], [groups[place] for place in where]
        self.objects.update(zip(keys, values, strict=True))
        if len(self.objects) > before:
            self._members.add(fresh, places, self.objects)

    def delete_many(self, groups: Sequence[int], keys: Sequence[Any]) -> None:
        self.take_many(groups, keys)

    def take_many(self, groups: Sequence[int], keys: Sequence[Any]) -> list[Any]:
        self.before(keys)
        return list(map(self.objects.pop, keys, repeat(None)))  # one look into the dict, which is what costs with many keys

    def keys_of(self, group: int) -> list[Any]:
        return [key for key in self._members.of(group) if key in self.objects]

    def listed(self, group: int) -> list[Any]:
        return self._members.listed(group)

    @property
    def watched(self) -> bool:
        """Whether `before` must be called: a snapshot is in progress, or changes are noted."""
        return self._frozen is not None or self._noted is not None

    def before(self, keys: Collection[Any]) -> None:
        """Call this when the values of these keys are about to change, perhaps in place."""
        if self._noted is not None:
            self._noted.update(keys)
            if len(self._noted) > max(MOST_NOTED, len(self.objects)):
                self._noted = None  # keys that come and go: the set would be larger than all keys
        if self._frozen is not None:
            self._frozen.before(keys)
            if self._frozen.over:
                self._frozen = None

    def newest(self, count: int) -> list[Any]:
        """The last `count` keys that were added to the dict, newest first."""
        return list(islice(reversed(self.objects), count))

    def note_new(self, groups: Sequence[int], keys: Sequence[Any]) -> None:
        """Call this when these keys have been added to the dict."""
        self._members.add(list(keys), list(groups), self.objects)

    def snapshot(self) -> Iterator[Chunk]:
        self._frozen = frozen = FrozenStates(self.objects, self._members, self._key_groups, self._pack)
        return frozen

    def delta(self, changes: set[Any]) -> Iterator[Found]:
        self._frozen = frozen = FrozenChanges(changes, partial(_found, self.objects, self._pack), SNAPSHOT_CHUNK)
        return frozen

    def count(self) -> int:
        return len(self.objects)

    def nbytes(self) -> int:
        return KEY_BYTES * len(self.objects)

    def clear(self) -> None:
        self.before(list(self.objects))
        self.objects.clear()
        self._members = GroupMembers(self._key_groups)

    def close(self) -> None:
        self._frozen = None


class FrozenStates:
    """A snapshot of states, packed piece by piece while the stream changes them.

    Copy on write: a state is packed at the latest before the first record that could change it, because a user's function may change its
    value in place. All others are packed in the background, key group by key group.
    """

    def __init__(self, states: dict[Any, Any], members: GroupMembers, key_groups: int, pack: Pack) -> None:
        self._states, self._members, self._pack = states, members, pack
        self._groups = list(range(key_groups - 1, -1, -1))
        self._ready: list[Chunk] = []
        self._settled: set[Any] = set()
        """Keys that are packed already, or are newer than the snapshot."""
        self._rest: list[Any] = []

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        while not self.over:
            if self._ready:
                return self._ready.pop()
            while len(self._rest) < SNAPSHOT_CHUNK and self._groups:
                self._rest += self._members.of(self._groups.pop())
            taken, self._rest = self._rest[:SNAPSHOT_CHUNK], self._rest[SNAPSHOT_CHUNK:]
            found = [key for key in taken if key in self._states and key not in self._settled]
            if found:
                self._settled.update(found)
                return found, self._pack(found, [self._states[key] for key in found])
        raise StopIteration

    @property
    def over(self) -> bool:
        """Whether all chunks have been taken."""
        return not (self._ready or self._rest or self._groups)

    def before(self, keys: Collection[Any]) -> None:
        """Call this when values of these keys are about to be changed, added or forgotten."""
        new = set(keys).difference(self._settled)
        if new:
            self._settled |= new
            found = [key for key in new if key in self._states]
            if found:
                self._ready.append((found, self._pack(found, [self._states[key] for key in found])))


def _found(states: dict[Any, Any], pack: Pack, keys: set[Any]) -> Found:
    """The packed states of these keys, and None for those that have none any more."""
    here = [key for key in keys if key in states]
    gone = list(keys.difference(here))
    return [*here, *gone], [*pack(here, [states[key] for key in here]), *[None] * len(gone)]
