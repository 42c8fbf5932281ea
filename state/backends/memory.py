"""State in memory: a dict from keys to Python objects.

The user of `objects` changes it directly, and calls `before` while it is `watched`, and `note_new` for new keys.

>>> states = MemoryBackend(key_groups=4)
>>> states.put_many([1, 2], ["a", "b"], [{"n": 1}, {"n": 2}])
>>> states.get_many([1, 3], ["a", "c"]), states.keys_of(2)
([{'n': 1}, None], ['b'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, repeat
from typing import Any

from ..members import GroupMembers
from ..packing import pack_values
from .base import MOST_NOTED, SNAPSHOT_CHUNK, Chunk, Found, StateBackend
from .frozen_changes import FrozenChanges
from .frozen_states import FrozenStates, Groups, Pack

KEY_BYTES = 200
"""An estimate of the bytes of a key and its state."""


class MemoryBackend(StateBackend):
    """A backend that keeps Python objects in a dict. `pack` packs the values of a snapshot."""

    def __init__(self, key_groups: int, pack: Pack | None = None) -> None:
        self.objects: dict[Any, Any] = {}
        self._members = GroupMembers(key_groups)
        self._key_groups = key_groups
        self._pack = pack if pack is not None else lambda _keys, values: list(pack_values(values))
        self._frozen: FrozenStates | FrozenChanges | None = None

    def get_many(self, groups: Sequence[int], keys: Sequence[Any]) -> list[Any]:
        return list(map(self.objects.get, keys))

    def put_many(self, groups: Sequence[int], keys: Sequence[Any], values: Sequence[Any]) -> None:
        self.before(keys, lambda: groups)
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
        self.before(keys, lambda: groups)
        return list(map(self.objects.pop, keys, repeat(None)))  # one dict operation per key, which dominates the cost with many keys

    def keys_of(self, group: int) -> list[Any]:
        return [key for key in self._members.of(group) if key in self.objects]

    def listed(self, group: int) -> list[Any]:
        return self._members.listed(group)

    @property
    def watched(self) -> bool:
        """True if `before` must be called: a snapshot is in progress, or changes are noted."""
        return self._frozen is not None or self._noted is not None

    def before(self, keys: Sequence[Any], groups: Callable[[], Groups]) -> None:
        """Prepare for changes, perhaps in place, of these keys' values. `groups` is called if their groups are needed."""
        if self._noted is not None:
            self._noted.update(keys)
            if len(self._noted) > max(MOST_NOTED, len(self.objects)):
                self._noted = None  # short-lived keys: the set would be larger than all keys
        if isinstance(self._frozen, FrozenStates):
            self._frozen.before(keys, groups())
        elif self._frozen is not None:
            self._frozen.before(keys)
        self._end_frozen()

    def newest(self, count: int) -> list[Any]:
        """Return the last `count` keys that were added to the dict, newest first."""
        return list(islice(reversed(self.objects), count))

    def note_new(self, groups: Sequence[int], keys: Sequence[Any]) -> None:
        """Note keys that were added to the dict."""
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
        if self._noted is not None:
            self._noted.update(self.objects)
        if self._frozen is not None:
            self._frozen.before_all()
        self._end_frozen()
        self.objects.clear()
        self._members = GroupMembers(self._key_groups)

    def close(self) -> None:
        self._frozen = None
        self.objects.clear()  # at once: the garbage collector takes four times as long to find out that millions are free
        self._members = GroupMembers(self._key_groups)

    def _end_frozen(self) -> None:
        """Drop a snapshot that no longer needs the states."""
        if self._frozen is not None and self._frozen.over:
            self._frozen = None


def _found(states: dict[Any, Any], pack: Pack, keys: set[Any]) -> Found:
    """Return the packed states of these keys, and None for those without one."""
    here = [key for key in keys if key in states]
    gone = list(keys.difference(here))
    return [*here, *gone], [*pack(here, [states[key] for key in here]), *[None] * len(gone)]
