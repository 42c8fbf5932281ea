"""Routing tables and the moves between them: which worker owns which key.

A key belongs to the worker of its group, unless it has a route of its own. A hot key of a join may be split over several workers
(`split_route.py`). Moves are data: every participant gets the same moves and selects keys by them alone, so sender, old owner and
new owner can't disagree.

>>> table = even_table(8, 2)
>>> table.groups.tolist()
[0, 0, 0, 0, 1, 1, 1, 1]
>>> table.after([Move(0, 1, groups=(3,))]).groups.tolist()
[0, 0, 0, 1, 1, 1, 1, 1]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...state.hashing import group_of
from .split_route import Dealt, SplitRoute

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

Part = tuple[int, Dealt]
"""A split key by its hash64, and its dealt side."""


@dataclass(frozen=True, slots=True)
class Move:
    """The change of owner of key groups, and of single keys by their hash64, from worker `source` to worker `target`.

    `staying`: hashes of keys of these groups that don't move with their group: they have a route of their own, or get one to
    their present worker.

    `copies`: keys that the target begins to share. The source, their home, keeps its rows and sends a copy of the undealt ones.

    `returns`: keys that the source no longer shares. It sends its dealt rows to the target, their home, and drops its copies of
    the others.
    """

    source: int
    target: int
    groups: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    staying: tuple[int, ...] = ()
    copies: tuple[Part, ...] = ()
    returns: tuple[Part, ...] = ()

    def selects(self, hashes: Hashes, key_groups: int) -> Mask:
        """Return a mask of the keys that the source discards completely, shape (keys,)."""
        mask = self.brings(hashes, key_groups)
        return mask | among(self.returns, hashes) if self.returns else mask

    def touches(self, key_groups: int) -> set[int]:
        """Return the key groups that contain all keys that `selects` may select."""
        return {*self.groups, *(key % key_groups for key in self.keys), *(key % key_groups for key, _ in self.returns)}

    def brings(self, hashes: Hashes, key_groups: int) -> Mask:
        """Return a mask of the keys that get another owner, shape (keys,)."""
        mask: Mask = _mask_of(self.groups, key_groups)[group_of(hashes, key_groups)]
        if self.staying:
            mask &= ~np.isin(hashes, np.array(self.staying, np.uint64))
        if self.keys:
            mask |= np.isin(hashes, np.array(self.keys, np.uint64))
        return mask


@lru_cache(maxsize=64)
def _mask_of(groups: tuple[int, ...], key_groups: int) -> Mask:
    """Return a mask of the key groups that are among `groups`, shape (key_groups,)."""
    mask = np.zeros(key_groups, np.bool_)
    mask[list(groups)] = True
    return mask


def among(parts: Iterable[Part], hashes: Hashes, side: Dealt | None = None) -> Mask:
    """Return a mask of the hashes of split keys in `parts`, shape (hashes,); `side`: only of those that deal this side."""
    keys = [key for key, dealt in parts if side is None or dealt == side]
    return np.isin(hashes, np.array(keys, np.uint64)) if keys else np.zeros(len(hashes), np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class RoutingTable:
    """An immutable table of the worker that owns each key.

    `groups`: worker of each key group, uint16, shape (key_groups,). `keys`: hash64 -> worker, for keys with a route of their own.
    `splits`: hash64 -> the workers of a split key, whose home is its owner.

    Invariant: a route in `keys` leads away from the worker of the key's group; others are removed. A split key has the route to
    its home, whatever `keys` says. A split over the home alone is removed.
    """

    groups: npt.NDArray[np.uint16]
    keys: Mapping[int, int] = field(default_factory=dict)
    splits: Mapping[int, SplitRoute] = field(default_factory=dict)

    def __post_init__(self) -> None:
        routes = {**self.keys, **{key: split.home for key, split in self.splits.items()}}
        hashes = np.array(list(routes), np.uint64)
        homes = self.groups[group_of(hashes, len(self.groups))].tolist() if routes else ()
        away = {key: worker for (key, worker), home in zip(routes.items(), homes, strict=True) if worker != home}
        object.__setattr__(self, "keys", MappingProxyType(away))
        object.__setattr__(self, "splits", MappingProxyType({key: split for key, split in self.splits.items() if split.others}))

    def __len__(self) -> int:
        return len(self.groups)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RoutingTable):
            return False
        return np.array_equal(self.groups, other.groups) and self.keys == other.keys and self.splits == other.splits

    def __hash__(self) -> int:
        return hash((self.groups.tobytes(), tuple(sorted(self.keys.items())), tuple(sorted(self.splits))))

    def __reduce__(self) -> Any:
        return _unpickled, (
            self.groups.tobytes(),
            dict(self.keys),
            dict(self.splits),
        )  # the array is sent out of band: see actors/processes/packed_call.py

    @property
    def workers(self) -> set[int]:
        """The workers that own a key group, own a single key or share one."""
        shared = {worker for split in self.splits.values() for worker in split.workers}
        return {*self.groups.tolist(), *self.keys.values(), *shared}

    def owners(self, hashes: Hashes) -> npt.NDArray[np.uint16]:
        """Return the worker of each key, shape (keys,); for a split key, its home."""
        owners = self.groups[group_of(hashes, len(self.groups))]
        for key, worker in self.keys.items():
            owners[hashes == np.uint64(key)] = worker
        return owners

    def after(self, moves: Iterable[Move]) -> RoutingTable:
        """Return the table after the moves. A key that returns to its group's worker loses its own route."""
        groups, keys, splits = self.groups.copy(), dict(self.keys), dict(self.splits)
        for move in moves:
            groups[list(move.groups)] = move.target
            for key in move.staying:
                keys.setdefault(key, move.source)
            keys.update(dict.fromkeys(move.keys, move.target))
            for key, dealt in move.copies:
                splits[key] = splits.get(key, SplitRoute(move.source, (), dealt)).with_worker(move.target)
            for key, _ in move.returns:
                splits[key] = splits[key].without(move.source)
        return RoutingTable(groups, keys, splits)

    def moves_to(self, target: RoutingTable) -> list[Move]:
        """Return exactly the difference: one move per pair of workers, in order of the pairs.

        Raises ValueError if a key begins or ends to be split, and also gets another home or dealt side: that takes two steps.
        """
        if len(target) != len(self):
            raise ValueError(f"a table of {len(self)} key groups can't become one of {len(target)}")
        groups: dict[tuple[int, int], list[int]] = {}
        for group in np.flatnonzero(self.groups != target.groups).tolist():
            groups.setdefault((int(self.groups[group]), int(target.groups[group])), []).append(group)
        keys: dict[tuple[int, int], list[int]] = {}
        staying: dict[tuple[int, int], list[int]] = {}
        special = np.array(sorted({*self.keys, *target.keys, *self.splits, *target.splits}), np.uint64)
        homes = group_of(special, len(self)) if len(special) else np.zeros(0, np.uint16)
        paths = zip(self.owners(special).tolist(), target.owners(special).tolist(), strict=True)
        group_paths = zip(self.groups[homes].tolist(), target.groups[homes].tolist(), strict=True)
        for key, path, group_path in zip(special.tolist(), paths, group_paths, strict=True):
            if path == group_path:
                continue
            if group_path[0] != group_path[1]:
                staying.setdefault(group_path, []).append(key)
            if path[0] != path[1]:
                keys.setdefault(path, []).append(key)
        copies, returns = self._splits_to(target)
        return [
            Move(
                *pair,
                groups=tuple(groups.get(pair, ())),
                keys=tuple(keys.get(pair, ())),
                staying=tuple(staying.get(pair, ())),
                copies=tuple(copies.get(pair, ())),
                returns=tuple(returns.get(pair, ())),
            )
            for pair in sorted({*groups, *keys, *copies, *returns})
        ]

    def _splits_to(self, target: RoutingTable) -> tuple[_Parts, _Parts]:
        """Return, by (source, target), the keys that the target begins to share, and those that the source no longer shares."""
        copies, returns = _Parts(), _Parts()
        for key in sorted({*self.splits, *target.splits}):
            before, after = self.splits.get(key), target.splits.get(key)
            if before == after:
                continue
            known = before if before is not None else target.splits[key]
            if any(split is not None and split.dealt != known.dealt for split in (before, after)) or not self._is_home(target, key, known):
                raise ValueError(f"key {key} can't be split and get another home or dealt side in one step")
            here, there = (frozenset(split.others) if split is not None else frozenset() for split in (before, after))
            for worker in sorted(there - here):
                copies.setdefault((known.home, worker), []).append((key, known.dealt))
            for worker in sorted(here - there):
                returns.setdefault((worker, known.home), []).append((key, known.dealt))
        return copies, returns

    def _is_home(self, target: RoutingTable, key: int, split: SplitRoute) -> bool:
        hashes = np.array([key], np.uint64)
        return bool(self.owners(hashes)[0] == target.owners(hashes)[0] == split.home)


_Parts = dict[tuple[int, int], list[Part]]


def _unpickled(groups: bytes, keys: dict[int, int], splits: dict[int, SplitRoute]) -> RoutingTable:
    return RoutingTable(np.frombuffer(groups, np.uint16), keys, splits)


def even_table(key_groups: int, workers: int) -> RoutingTable:
    """Return the first routing table: contiguous ranges of groups, as even as possible."""
    return RoutingTable((np.arange(key_groups) * workers // key_groups).astype(np.uint16))
