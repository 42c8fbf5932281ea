"""Routing tables and the moves between them: which worker owns which key.

A key belongs to the worker of its group, unless it has a route of its own. Moves are data: every participant gets the same moves and
selects keys by them alone, so sender, old owner and new owner can't disagree.

>>> table = even_table(8, 2)
>>> table.groups.tolist()
[0, 0, 0, 0, 1, 1, 1, 1]
>>> table.after([Move(0, 1, groups=(3,))]).groups.tolist()
[0, 0, 0, 1, 1, 1, 1, 1]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...state.hashing import group_of

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Move:
    """Key groups, and single keys by their hash64, go from worker `source` to worker `target`.

    `staying`: hashes of keys of these groups that don't move with their group: they have a route of their own, or get one to their present
    worker.
    """

    source: int
    target: int
    groups: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    staying: tuple[int, ...] = ()

    def selects(self, hashes: Hashes, key_groups: int) -> npt.NDArray[np.bool_]:
        """Which of the keys with these hashes move, shape (keys,)."""
        moving = np.zeros(key_groups, np.bool_)
        moving[list(self.groups)] = True
        mask: npt.NDArray[np.bool_] = moving[group_of(hashes, key_groups)]
        if self.staying:
            mask &= ~np.isin(hashes, np.array(self.staying, np.uint64))
        if self.keys:
            mask |= np.isin(hashes, np.array(self.keys, np.uint64))
        return mask


@dataclass(frozen=True, slots=True, eq=False)
class RoutingTable:
    """`groups`: worker of each key group, uint16, shape (key_groups,). `keys`: hash64 -> worker, for keys with a route of their own.

    Invariant: such a route leads away from the worker of the key's group; one that doesn't is left out.
    """

    groups: npt.NDArray[np.uint16]
    keys: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        hashes = np.array(list(self.keys), np.uint64)
        homes = self.groups[group_of(hashes, len(self.groups))].tolist() if self.keys else ()
        away = {key: worker for (key, worker), home in zip(self.keys.items(), homes, strict=True) if worker != home}
        object.__setattr__(self, "keys", MappingProxyType(away))

    def __len__(self) -> int:
        return len(self.groups)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RoutingTable) and np.array_equal(self.groups, other.groups) and dict(self.keys) == dict(other.keys)

    def __hash__(self) -> int:
        return hash((self.groups.tobytes(), tuple(sorted(self.keys.items()))))

    def __reduce__(self) -> Any:
        return _unpickled, (self.groups.tobytes(), dict(self.keys))  # an array would lie beside the pickle: see actors/sent.py

    def owners(self, hashes: Hashes) -> npt.NDArray[np.uint16]:
        """The worker of each key, shape (keys,)."""
        owners = self.groups[group_of(hashes, len(self.groups))]
        for key, worker in self.keys.items():
            owners[hashes == np.uint64(key)] = worker
        return owners

    def after(self, moves: Iterable[Move]) -> RoutingTable:
        """The table once the moves are made. A key that comes back to its group's worker loses its own route."""
        groups, keys = self.groups.copy(), dict(self.keys)
        for move in moves:
            groups[list(move.groups)] = move.target
            for key in move.staying:
                keys.setdefault(key, move.source)
            keys.update(dict.fromkeys(move.keys, move.target))
        return RoutingTable(groups, keys)

    def moves_to(self, target: RoutingTable) -> list[Move]:
        """Exactly the difference: one move per pair of workers, in order of the pairs."""
        if len(target) != len(self):
            raise ValueError(f"a table of {len(self)} key groups can't become one of {len(target)}")
        groups: dict[tuple[int, int], list[int]] = {}
        for group in np.flatnonzero(self.groups != target.groups).tolist():
            groups.setdefault((int(self.groups[group]), int(target.groups[group])), []).append(group)
        keys: dict[tuple[int, int], list[int]] = {}
        staying: dict[tuple[int, int], list[int]] = {}
        special = np.array(sorted({*self.keys, *target.keys}), np.uint64)
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
        return [
            Move(*pair, tuple(groups.get(pair, ())), tuple(keys.get(pair, ())), tuple(staying.get(pair, ())))
            for pair in sorted({*groups, *keys})
        ]


def _unpickled(groups: bytes, keys: dict[int, int]) -> RoutingTable:
    return RoutingTable(np.frombuffer(groups, np.uint16), keys)


def even_table(key_groups: int, workers: int) -> RoutingTable:
    """The first routing table: contiguous ranges of groups, as even as they can be."""
    return RoutingTable((np.arange(key_groups) * workers // key_groups).astype(np.uint16))
