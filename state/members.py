"""The keys of each key group, recorded as keys are added, so that a move of a group costs only as much as its keys.

Only new keys cost time. A deleted key stays listed until the lists are rebuilt.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


class GroupMembers:
    """Keys by group. A key may be listed more than once, also after it is deleted."""

    def __init__(self, key_groups: int) -> None:
        self._groups: list[list[Any]] = [[] for _ in range(key_groups)]
        self._listed = 0

    def add(self, keys: list[Any], groups: list[int], existing: Collection[Any]) -> None:
        """List new keys, each in its group. When most listed keys are no longer among `existing`, the lists are rebuilt."""
        for key, group in zip(keys, groups, strict=True):
            self._groups[group].append(key)
        self._listed += len(keys)
        if self._listed > 2 * len(existing) + 1024:
            self._groups = [[key for key in dict.fromkeys(group) if key in existing] for group in self._groups]
            self._listed = sum(map(len, self._groups))

    def exact(self, existing: Collection[Any]) -> bool:
        """Return True if exactly the keys of `existing` are listed, each once."""
        return self._listed == len(existing)

    def listed(self, group: int) -> list[Any]:
        """Return the keys listed in a group, perhaps more than once."""
        return self._groups[group].copy()

    def of(self, group: int) -> list[Any]:
        """Return the keys listed in a group, each once."""
        return list(dict.fromkeys(self._groups[group]))
