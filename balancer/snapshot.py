"""The load of one operator at one time: the input of every balancer.

Invariant: every snapshot is consistent: loads are finite and not negative, workers and groups are in range, every group and every
key occurs once, and the hot keys of a group are not hotter than the group.

>>> snapshot = LoadSnapshot(2, [GroupLoad(0, 0, 3.0), GroupLoad(1, 1, 1.0)], [KeyLoad("JFK", 0, 2.5)])
>>> snapshot.worker_loads().tolist(), snapshot.imbalance, snapshot.floor
([3.0, 1.0], 1.5, 1.25)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from ..engine.errors import SnapshotError
from ..engine.protocol.split_route import Dealt
from ..engine.shown import Shown
from ..state.hashing import MAX_GROUPS
from .outside_json import shown

Workers = npt.NDArray[np.int64]
"""A worker's index per group or per key."""

Loads = npt.NDArray[np.float64]
"""A load per group, key or worker, in any unit: useful seconds, records, a share."""

MAX_WORKERS = 65_535
"""The most workers that a routing table can name."""

MOST = 1e18
"""The largest valid load, rate or time. Sums and ratios of valid ones stay finite."""

LEAST = 1e-18
"""A smaller value counts as 0, so that ratios don't overflow."""

_ROUNDING = 1e-6
_SHOWN = 32


class GroupLoad(NamedTuple):
    """A key group: its worker, the load of all its keys, and the bytes of all their state."""

    group: int
    worker: int
    load: float
    state_bytes: int = 0


class KeyLoad(NamedTuple):
    """A hot key. Its load is part of its group's load, and its state of its group's state, on any worker.

    `worker`: the key's worker if it has its own route; None, or the group's worker, if it goes with its group. `left`: the part
    of its load that records from the left side of a join cause; None if unknown.
    """

    key: Hashable
    group: int
    load: float
    state_bytes: int = 0
    worker: int | None = None
    left: float | None = None


class SplitKey(NamedTuple):
    """A hot key of a join that several workers share. Its load is not part of its group's load.

    `workers`: those that share it, its home first; `loads`: the part of the key's load at each of them. `dealt`: the side whose
    rows are dealt; `copied`: the load that the rows of the other side cause at each of the workers.
    """

    key: Hashable
    group: int
    dealt: Dealt
    workers: tuple[int, ...]
    loads: tuple[float, ...]
    copied: float = 0.0

    @property
    def dealt_load(self) -> float:
        """The load of the dealt rows, at all workers together."""
        return max(sum(self.loads) - len(self.loads) * self.copied, 0.0)

    @property
    def whole_load(self) -> float:
        """The load of the key if its home had it alone."""
        return self.dealt_load + self.copied


class GroupColumns(NamedTuple):
    """All key groups by columns, in the order of their numbers: worker, load and bytes of state of each, shape (groups,)."""

    workers: Workers
    loads: Loads
    state_bytes: Workers


class KeyColumns(NamedTuple):
    """Hot keys by columns: the fields of `KeyLoad`. `left`: NaN if unknown."""

    keys: list[Hashable]
    groups: Workers
    loads: Loads
    state_bytes: Workers
    workers: list[int | None]
    left: Loads

    def rows(self) -> list[KeyLoad]:
        """Return a row for each key."""
        left = (None if value != value else value for value in self.left.tolist())  # noqa: PLR0124 -- NaN
        columns = (self.keys, self.groups.tolist(), self.loads.tolist(), self.state_bytes.tolist(), self.workers, left)
        return list(map(KeyLoad, *columns))


@dataclass(frozen=True, slots=True)
class LoadSnapshot(Shown):
    """The load of one operator at one time. `workers`: their number, including idle ones. Unlisted groups have no load. Loads are
    in any one unit.

    `split_keys`: keys that several workers share; no plan moves their home. `dealable`: the sides of the operator, a join, whose
    rows may be dealt over several workers; empty if its keys can't be split.

    The arrays have the same content by columns: `group_*` have shape (groups,), `key_*` have shape (keys,). `key_at` is the
    position of a key's group in `key_groups`; `key_workers` is the key's worker, by its own route or its group's. `split_loads`
    is the load of the split keys at each worker, shape (workers,).

    `of_columns` makes a snapshot whose rows, `key_groups` and `hot_keys`, are made when they are first read: most windows of a wide
    operator lead to no plan.

    Raises SnapshotError, naming the field, for an inconsistent snapshot.
    """

    workers: int
    key_groups: tuple[GroupLoad, ...]
    hot_keys: tuple[KeyLoad, ...] = ()
    split_keys: tuple[SplitKey, ...] = ()
    dealable: tuple[Dealt, ...] = ()
    group_ids: Workers = field(init=False, repr=False, compare=False)
    group_workers: Workers = field(init=False, repr=False, compare=False)
    group_loads: Loads = field(init=False, repr=False, compare=False)
    group_bytes: Workers = field(init=False, repr=False, compare=False)
    key_at: Workers = field(init=False, repr=False, compare=False)
    key_workers: Workers = field(init=False, repr=False, compare=False)
    key_loads: Loads = field(init=False, repr=False, compare=False)
    key_bytes: Workers = field(init=False, repr=False, compare=False)
    split_loads: Loads = field(init=False, repr=False, compare=False)
    _key_columns: KeyColumns | None = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        workers: int,
        key_groups: Iterable[GroupLoad],
        hot_keys: Iterable[KeyLoad] = (),
        split_keys: Iterable[SplitKey] = (),
        dealable: Iterable[Dealt] = (),
    ) -> None:
        groups, keys, splits = tuple(key_groups), tuple(hot_keys), tuple(split_keys)
        _whole([workers], lambda _: "workers", 1, MAX_WORKERS)
        ids = _whole([g.group for g in groups], lambda i: f"key_groups[{i}].group", 0, MAX_GROUPS - 1)
        positions = _positions(ids)
        homes = _whole([k.group for k in keys], lambda i: f"hot_keys[{i}].group", 0, MAX_GROUPS - 1)
        key_at = positions[homes]
        if (missing := np.flatnonzero(key_at < 0)).size:
            raise SnapshotError(
                f"hot_keys[{missing[0]}].group is {homes[missing[0]]}, which is not among the key_groups: list it there too"
            )
        group_workers = _whole([g.worker for g in groups], lambda i: f"key_groups[{i}].worker", 0, workers - 1)
        routed = [int(group_workers[at]) if key.worker is None else key.worker for key, at in zip(keys, key_at, strict=True)]
        values: dict[str, Any] = {
            "workers": workers,
            "key_groups": groups,
            "hot_keys": keys,
            "split_keys": splits,
            "dealable": tuple(dealable),
            "group_ids": ids,
            "group_workers": group_workers,
            "group_loads": _loads([g.load for g in groups], lambda i: f"key_groups[{i}].load"),
            "group_bytes": _whole([g.state_bytes for g in groups], lambda i: f"key_groups[{i}].state_bytes", 0, 2**53),
            "key_at": key_at,
            "key_workers": _whole(routed, lambda i: f"hot_keys[{i}].worker", 0, workers - 1),
            "key_loads": _loads([k.load for k in keys], lambda i: f"hot_keys[{i}].load"),
            "key_bytes": _whole([k.state_bytes for k in keys], lambda i: f"hot_keys[{i}].state_bytes", 0, 2**53),
            "split_loads": _split_loads(splits, positions, workers),
            "_key_columns": None,
        }
        lefts = _loads([0.0 if k.left is None else k.left for k in keys], lambda i: f"hot_keys[{i}].left")
        if (wrong := np.flatnonzero(lefts > values["key_loads"] * (1 + _ROUNDING))).size:
            at = int(wrong[0])
            raise SnapshotError(f"hot_keys[{at}].left is {lefts[at]:g}, which is more than all of the key's load, {keys[at].load:g}")
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_keys()

    @staticmethod
    def of_columns(
        workers: int, groups: GroupColumns, keys: KeyColumns, split_keys: Iterable[SplitKey] = (), dealable: Iterable[Dealt] = ()
    ) -> LoadSnapshot:
        """Return a snapshot of all key groups. Raises SnapshotError as the constructor does."""
        ids, splits = np.arange(len(groups.loads)), tuple(split_keys)
        values: dict[str, Any] = {
            "workers": workers,
            "split_keys": splits,
            "dealable": tuple(dealable),
            "group_ids": ids,
            "group_workers": groups.workers,
            "group_loads": np.where(groups.loads < LEAST, 0.0, groups.loads),
            "group_bytes": groups.state_bytes,
            "key_at": keys.groups,
            "key_workers": _routed(keys, groups.workers),
            "key_loads": np.where(keys.loads < LEAST, 0.0, keys.loads),
            "key_bytes": keys.state_bytes,
            "_key_columns": keys,
        }
        if not _consistent(workers, groups, keys, values) or {split.key for split in splits}.intersection(keys.keys):
            rows = zip(ids.tolist(), *(column.tolist() for column in groups), strict=True)
            return LoadSnapshot(workers, [GroupLoad(*row) for row in rows], keys.rows(), splits, dealable)
        values["split_loads"] = _split_loads(splits, _positions(ids), workers) if splits else np.zeros(workers)
        made = object.__new__(LoadSnapshot)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def __getattr__(self, name: str) -> Any:
        """Make the rows of a snapshot of columns: called for an attribute that isn't there yet."""
        rows: tuple[Any, ...]
        if name == "key_groups":
            columns = (self.group_ids, self.group_workers, self.group_loads, self.group_bytes)
            rows = tuple(map(GroupLoad, *(column.tolist() for column in columns)))
        elif name == "hot_keys":
            assert self._key_columns is not None
            rows = tuple(self._key_columns.rows())
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, rows)
        return rows

    def worker_loads(self, group_workers: Workers | None = None, key_workers: Workers | None = None) -> Loads:
        """Return the load of each worker, shape (workers,), for the present placement or the given one."""
        of_groups = self.group_workers if group_workers is None else group_workers
        of_keys = self.key_workers if key_workers is None else key_workers
        loads = np.bincount(of_groups, self.group_loads, self.workers)
        home = of_groups[self.key_at]
        away = of_keys != home
        loads -= np.bincount(home[away], self.key_loads[away], self.workers)
        loads += np.bincount(of_keys[away], self.key_loads[away], self.workers)
        return np.maximum(loads, 0.0) + self.split_loads

    @property
    def mean(self) -> float:
        """The mean load of a worker."""
        return float(self.group_loads.sum() + self.split_loads.sum()) / self.workers

    def __str__(self) -> str:
        splits = f", {len(self.split_keys)} split keys" if self.split_keys else ""
        what = f"{self.workers} workers, {len(self.key_groups)} key groups with load, {len(self.hot_keys)} hot keys{splits}"
        loads = ", ".join(f"{load:.3g}" for load in self.worker_loads()[:_SHOWN])
        more = f" and {self.workers - _SHOWN} more" if self.workers > _SHOWN else ""
        return f"{what}: imbalance {self.imbalance:.2f}, floor {self.floor:.2f}; loads of the workers: {loads}{more}"

    @property
    def imbalance(self) -> float:
        """max / mean of the workers' loads: 1 is even. The slowest worker makes the stream this much slower than necessary."""
        return imbalance(self.worker_loads())

    @property
    def floor(self) -> float:
        """The least imbalance of any placement, with the keys that are split: `max(1, workers * p1)`, p1 the hottest key's share."""
        hottest = max(float(self.key_loads.max(initial=0.0)), float(self.split_loads.max()))
        return max(1.0, hottest / self.mean) if self.mean else 1.0

    def _check_keys(self) -> None:
        seen = set[Hashable]()
        for index, key in enumerate(self.hot_keys):
            if key.key in seen:
                raise SnapshotError(f"hot_keys[{index}].key is {shown(key.key)}, which is listed twice")
            seen.add(key.key)
        for index, split in enumerate(self.split_keys):
            if split.key in seen:
                raise SnapshotError(f"split_keys[{index}].key is {shown(split.key)}, which is listed twice: a key is split or whole")
            seen.add(split.key)
        if wrong := [side for side in self.dealable if side not in get_args(Dealt)]:
            raise SnapshotError(f"dealable has {shown(wrong[0])}: the sides of a join are left and right")
        of_keys = np.bincount(self.key_at, self.key_loads, len(self.key_groups))
        hotter = np.flatnonzero(of_keys > self.group_loads * (1 + _ROUNDING))
        if hotter.size:
            at = int(hotter[0])
            names = ", ".join(repr(key.key) for key, home in zip(self.hot_keys, self.key_at, strict=True) if home == at)
            raise SnapshotError(
                f"hot_keys {names} have a load of {of_keys[at]:g}, their group {self.group_ids[at]} one of {self.group_loads[at]:g}: a hot "
                "key's load is part of its group's load"
            )


def _routed(keys: KeyColumns, group_workers: Workers) -> Workers:
    """Return the worker of each key: by its own route, or its group's."""
    routed = group_workers[keys.groups]
    for at, worker in enumerate(keys.workers):
        if worker is not None:
            routed[at] = worker
    return routed


def _consistent(workers: int, groups: GroupColumns, keys: KeyColumns, values: dict[str, Any]) -> bool:
    """Return True if columns keep the invariant of snapshots, except for split keys."""
    loads, key_loads, left = values["group_loads"], values["key_loads"], keys.left[~np.isnan(keys.left)]
    placed = np.concatenate([groups.workers, values["key_workers"]])
    measured = np.concatenate([groups.loads, keys.loads, left, groups.state_bytes, keys.state_bytes])
    return bool(
        1 <= workers <= MAX_WORKERS
        and 0 < len(loads) <= MAX_GROUPS
        and placed.min() >= 0
        and placed.max() < workers
        and ((measured >= 0) & (measured <= 2**53)).all()
        and len(set(keys.keys)) == len(keys.keys)
        and (np.bincount(keys.groups, key_loads, len(loads)) <= loads * (1 + _ROUNDING)).all()
        and (left <= keys.loads[~np.isnan(keys.left)] * (1 + _ROUNDING)).all()
    )


def imbalance(loads: Loads) -> float:
    """Return max / mean of loads, shape (workers,); 1 without load."""
    mean = float(loads.mean())
    return float(loads.max()) / mean if mean > 0 else 1.0


def _positions(ids: Workers) -> Workers:
    """Return the position of each key group in `ids`, -1 if it isn't there, shape (MAX_GROUPS,)."""
    counts = np.bincount(ids)
    if (twice := np.flatnonzero(counts > 1)).size:
        raise SnapshotError(f"key_groups has group {twice[0]} {counts[twice[0]]} times: a group is on one worker, list it once")
    positions = np.full(MAX_GROUPS, -1, np.int64)
    positions[ids] = np.arange(len(ids))
    return positions


def _split_loads(splits: tuple[SplitKey, ...], positions: Workers, workers: int) -> Loads:
    """Return the load of the split keys at each worker, shape (workers,)."""
    loads = np.zeros(workers)
    for index, split in enumerate(splits):
        _add_split(loads, split, f"split_keys[{index}]", positions)
    return loads


def _add_split(loads: Loads, split: SplitKey, where: str, positions: Workers) -> None:
    group = _whole([split.group], lambda _: f"{where}.group", 0, MAX_GROUPS - 1)
    if positions[group[0]] < 0:
        raise SnapshotError(f"{where}.group is {split.group}, which is not among the key_groups: list it there too")
    if split.dealt not in get_args(Dealt):
        raise SnapshotError(f"{where}.dealt is {shown(split.dealt)}: the sides of a join are left and right")
    sharing = _whole(list(split.workers), lambda i: f"{where}.workers[{i}]", 0, len(loads) - 1)
    if not len(sharing) or len(set(split.workers)) != len(sharing) or len(sharing) != len(split.loads):
        raise SnapshotError(f"{where} has workers {list(split.workers)} and {len(split.loads)} loads: list each worker once, with a load")
    loads[sharing] += _loads(list(split.loads), lambda i: f"{where}.loads[{i}]")
    _loads([split.copied], lambda _: f"{where}.copied")


def _whole(values: list[Any], name: Callable[[int], str], low: int, high: int) -> Workers:
    if set(map(type, values)) == {int} and low <= min(values) and max(values) <= high:
        return np.array(values, np.int64)
    for index, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
            raise SnapshotError(f"{name(index)} is {shown(value)}: it must be a whole number from {low} to {high}")
    return np.array(values, np.int64)


def _loads(values: list[Any], name: Callable[[int], str]) -> Loads:
    if set(map(type, values)) == {float}:
        loads = np.array(values, np.float64)
        if ((loads >= 0) & (loads <= MOST)).all():
            return np.where(loads < LEAST, 0.0, loads)
    for index, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value <= MOST:
            raise SnapshotError(f"{name(index)} is {shown(value)}: it must be a number, from 0 to {MOST:g}")
    loads = np.array(values, np.float64)
    return np.where(loads < LEAST, 0.0, loads)
