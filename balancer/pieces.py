"""The pieces that `hotspot` can move, key groups and hot keys, with the worker of each.

Invariant: a worker's load is the sum of its pieces and of its fixed groups and keys. Its pieces are sorted by load per byte of
state to move, descending, then by load.
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from .base import Limits
from .snapshot import LoadSnapshot, Workers

Entry = tuple[float, float, int]
"""Load per byte, negative; load, negative; the piece."""


class Pieces:
    """The pieces of a snapshot: 0..groups-1 are its key groups, less their opened keys; the others are its hot keys, in its order.

    A hot key is a piece once it is opened; those with their own route are from the start. `loads`: by worker, shape (workers,).
    """

    def __init__(self, snapshot: LoadSnapshot, limits: Limits) -> None:
        self.groups, self._key_at = len(snapshot.key_groups), snapshot.key_at.tolist()
        self.load: list[float] = [*snapshot.group_loads.tolist(), *snapshot.key_loads.tolist()]
        self.state_bytes: list[int] = [*snapshot.group_bytes.tolist(), *snapshot.key_bytes.tolist()]
        self.worker: list[int] = [*snapshot.group_workers.tolist(), *snapshot.key_workers.tolist()]
        self.home = tuple(self.worker)
        self.loads = snapshot.worker_loads()
        self.opened = snapshot.key_workers != snapshot.group_workers[snapshot.key_at]
        self._openable: dict[int, list[int]] = {}
        self._left = limits.max_bytes
        self._snapshot = snapshot
        fixed_keys = [key.key in limits.fixed_keys for key in snapshot.hot_keys]
        fixed = [group.group in limits.fixed_groups for group in snapshot.key_groups] + fixed_keys
        self._by_worker: list[list[Entry]] = [[] for _ in range(snapshot.workers)]
        for key, at in enumerate(self._key_at):
            if self.opened[key]:
                self._take_out(key)
            elif not (fixed[at] or fixed_keys[key]):
                self._openable.setdefault(at, []).append(key)
        for piece, load in enumerate(self.load):
            if load > 0 and not fixed[piece] and (piece < self.groups or self.opened[piece - self.groups]):
                self._by_worker[self.worker[piece]].append(self._entry(piece))
        for entries in self._by_worker:
            entries.sort()

    def of(self, worker: int) -> list[Entry]:
        """Return the pieces of a worker that may move."""
        return self._by_worker[worker]

    def cost(self, piece: int, target: int) -> int:
        """Return the additional bytes that the plan moves if `piece` goes to `target`; a piece that moves already costs nothing
        more.
        """
        if target == self.home[piece]:
            return -self.state_bytes[piece]
        return self.state_bytes[piece] if self.worker[piece] == self.home[piece] else 0

    def affordable(self, cost: int) -> bool:
        """Return True if the limit on the bytes to move allows `cost` more."""
        return self._left is None or cost <= self._left

    def move(self, piece: int, target: int) -> None:
        """Move a piece to another worker."""
        if self._left is not None:
            self._left -= self.cost(piece, target)
        self._remove(piece)
        self.loads[self.worker[piece]] -= self.load[piece]
        self.loads[target] += self.load[piece]
        self.worker[piece] = target
        insort(self._by_worker[target], self._entry(piece))

    def open_heat(self, part_of_group: float, least: float) -> None:
        """Open the groups with a key of at least this part of the group's load and of at least the load `least`."""
        for at, keys in list(self._openable.items()):
            hottest = max(self.load[self.groups + key] for key in keys)
            if hottest >= max(part_of_group * self.load[at], least):
                self._open(at)

    def open_hottest(self, worker: int) -> bool:
        """Open the worker's hottest group with known hot keys. Returns True if there was one."""
        for _, _, piece in sorted(self._by_worker[worker], key=lambda entry: entry[1:]):
            if piece in self._openable:
                self._open(piece)
                return True
        return False

    def heaviest(self, worker: int) -> str:
        """Return a text with the name and load of a piece that is at least half of the worker's load; empty if there is none."""
        piece = min(self._by_worker[worker], key=lambda entry: entry[1:], default=(0.0, 0.0, -1))[2]
        if piece < 0 or self.load[piece] < self.loads[worker] / 2:
            return ""
        group, key = self._snapshot.key_groups, self._snapshot.hot_keys
        name = f"group {group[piece].group}" if piece < self.groups else f"hot key {key[piece - self.groups].key!r}"
        return f", where {name} alone has {self.load[piece] / self.loads.mean():.2f} times the mean"

    def key_workers(self) -> Workers:
        """Return the worker of each hot key: its own if it is opened, else its group's."""
        placed = np.array(self.worker, np.int64)
        return np.where(self.opened, placed[self.groups :], placed[: self.groups][self._key_at])

    def group_workers(self) -> Workers:
        """Return the worker of each key group."""
        return np.array(self.worker[: self.groups], np.int64)

    def _open(self, at: int) -> None:
        """Make the hot keys of group `at` separate pieces, on the group's worker."""
        self._remove(at)
        for key in self._openable.pop(at):
            self.opened[key] = True
            self._take_out(key)
            piece = self.groups + key
            self.worker[piece] = self.worker[at]
            if self.load[piece] > 0:
                insort(self._by_worker[self.worker[piece]], self._entry(piece))
        if self.load[at] > 0:
            insort(self._by_worker[self.worker[at]], self._entry(at))

    def _take_out(self, key: int) -> None:
        at, piece = self._key_at[key], self.groups + key
        self.load[at] = max(self.load[at] - self.load[piece], 0.0)
        self.state_bytes[at] = max(self.state_bytes[at] - self.state_bytes[piece], 0)

    def _entry(self, piece: int) -> Entry:
        cost = self.state_bytes[piece] if self.worker[piece] == self.home[piece] else 0
        return -self.load[piece] / (cost + 1), -self.load[piece], piece

    def _remove(self, piece: int) -> None:
        entries, entry = self._by_worker[self.worker[piece]], self._entry(piece)
        at = bisect_left(entries, entry)
        if at < len(entries) and entries[at] == entry:
            del entries[at]
