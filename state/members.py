"""Which keys a key group has: kept as keys come, so that giving a group away costs what the group holds and no more.

It costs a key something only when the key is new; a key that was forgotten stays listed until the lists are made anew.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


class GroupMembers:
    """Keys by group; a key may be listed more than once, and one that no longer exists too."""

    def __init__(self, key_groups: int) -> None:
        self._groups: list[list[Any]] = [[] for _ in range(key_groups)]
        self._listed = 0

    def add(self, keys: list[Any], groups: list[int], existing: Collection[Any]) -> None:
        """List new keys, each in its group. When most of what is listed is no longer among `existing`, the lists are made anew."""
        for key, group in zip(keys, groups, strict=True):
            self._groups[group].append(key)
        self._listed += len(keys)
        if self._listed > 2 * len(existing) + 1024:
            self._groups = [[key for key in dict.fromkeys(group) if key in existing] for group in self._groups]
            self._listed = sum(map(len, self._groups))

    def of(self, group: int) -> list[Any]:
        """The keys listed in a group, each once."""
        return list(dict.fromkeys(self._groups[group]))
