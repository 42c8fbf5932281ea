"""Joining of the windows of an operator's workers to one load snapshot of the operator.

Invariant: a snapshot has one window of all workers. A worker that is more than `patience` windows behind counts with its last
window, because a worker that is too busy to report isn't idle.

>>> from ..engine.protocol.routing import even_table
>>> windows, table = OperatorWindows(length=1.0), even_table(2, 2)
>>> windows.add(WorkerLoad(0, 10.0, np.array([0]), np.array([0.75])))
>>> windows.take(table, 2)
>>> windows.add(WorkerLoad(1, 10.1, np.array([1]), np.array([0.25])))
>>> windows.take(table, 2).worker_loads().tolist()
[0.75, 0.25]
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..engine.protocol.routing import RoutingTable
from ..engine.protocol.split_route import Dealt
from ..state.hashing import group_of
from .snapshot import GroupColumns, KeyColumns, LoadSnapshot, SplitKey

Floats = npt.NDArray[np.float64]


def _none() -> npt.NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """The measurements of one worker in the window from `start` (seconds): parallel arrays, one entry per key group with load.

    `load` in useful seconds, or any unit that all workers share. `state_bytes` may be empty if unknown. `key_hashes` (hash64),
    `key_loads` and `key_bytes` (may be empty): the hottest keys; their load is part of `load`. `key_left` (may be empty): the
    part of each one's load that records from the left side of a join cause. `records`: the number behind the load.
    """

    worker: int
    start: float
    groups: npt.NDArray[np.int64]
    load: Floats
    state_bytes: npt.NDArray[np.int64] = field(default_factory=_none)
    key_hashes: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    key_loads: Floats = field(default_factory=lambda: np.zeros(0))
    key_bytes: npt.NDArray[np.int64] = field(default_factory=_none)
    key_left: Floats = field(default_factory=lambda: np.zeros(0))
    records: int = 0


class OperatorWindows:
    """The windows of an operator's workers, which become a snapshot per window, in order.

    `length`: seconds of a window; `dealable`: the sides of the operator whose rows may be dealt. `records`: the number behind the
    last snapshot.
    """

    def __init__(self, length: float, patience: int = 3, dealable: tuple[Dealt, ...] = ()) -> None:
        self.records = 0
        self._length, self._patience, self._dealable = length, patience, dealable
        self._newest: dict[int, int] = {}
        self._taken: int | None = None
        self._waiting: dict[int, dict[int, WorkerLoad]] = {}
        self._last: dict[int, WorkerLoad] = {}

    def add(self, load: WorkerLoad) -> None:
        """Add a worker's window; the workers' clocks may differ by half a window.

        A window that arrives after its snapshot only becomes the worker's last one.
        """
        index = round(load.start / self._length)
        if self._taken is not None and index <= self._taken:
            self._last[load.worker] = load
        else:
            self._waiting.setdefault(index, {})[load.worker] = load
        self._newest[load.worker] = max(index, self._newest.get(load.worker, index))

    def take(self, table: RoutingTable, workers: int) -> LoadSnapshot | None:
        """Return the snapshot of the oldest window that every worker has reported, or is too late for; None if there is none yet.

        `table`: the current routing table. The snapshot's hot keys are the reported ones and all with their own route, by hash64.
        While a worker has never reported, its windows are skipped.
        """
        if not self._waiting:
            return None
        index = min(self._waiting)
        late = [worker for worker in range(workers) if self._newest.get(worker, index - 1) < index]
        if late and max(self._newest.values()) - index < self._patience:
            return None
        self._taken = index
        self._last.update(self._waiting.pop(index))
        if any(worker not in self._last for worker in range(workers)):
            return None
        loads = [self._last[worker] for worker in range(workers)]
        self.records = sum(load.records for load in loads)
        return snapshot_of(loads, table, workers, self._dealable)


def snapshot_of(loads: list[WorkerLoad], table: RoutingTable, workers: int, dealable: tuple[Dealt, ...] = ()) -> LoadSnapshot:
    """Return one snapshot from a window of each worker.

    A group's load is the sum over the workers: during its move, two of them measure some. A routed key that no worker reported as
    hot gets the load that its worker measured for the key's group, because that group belongs to another worker. The load of a
    split key at each worker is counted separately, and not in its group.
    """
    by_group, by_bytes = np.zeros(len(table)), np.zeros(len(table), np.int64)
    np.add.at(by_group, np.concatenate([load.groups for load in loads]), np.concatenate([load.load for load in loads]))
    keys, key_bytes, lefts = dict.fromkeys(table.keys, 0.0), dict.fromkeys(table.keys, 0), dict[int, float]()
    parts: dict[int, dict[int, tuple[float, float]]] = {key: {} for key in table.splits}
    for load in loads:
        if len(load.state_bytes):
            np.add.at(by_bytes, load.groups, load.state_bytes)
        sizes = load.key_bytes if len(load.key_bytes) else np.zeros(len(load.key_hashes), np.int64)
        of_left = load.key_left if len(load.key_left) else np.zeros(len(load.key_hashes))
        for key, seconds, left, size in zip(
            load.key_hashes.tolist(), load.key_loads.tolist(), of_left.tolist(), sizes.tolist(), strict=True
        ):
            if key in parts:
                parts[key][load.worker] = seconds, left
            else:
                keys[key] = keys.get(key, 0.0) + seconds
                lefts[key] = lefts.get(key, 0.0) + left
                key_bytes[key] = key_bytes.get(key, 0) + size
    routed = bool(table.keys or table.splits)
    measured = {load.worker: dict(zip(load.groups.tolist(), load.load.tolist(), strict=True)) for load in loads if routed}
    splits = _split_keys(parts, measured, table, by_group)
    for key in table.splits:
        keys.pop(key, None)
    _add_unreported(keys, measured, table)
    names, seconds = list(keys), np.array(list(keys.values()), np.float64)
    homes = group_of(np.array(names, np.uint64), len(table)).astype(np.int64)
    sums = np.bincount(homes, seconds, len(table))
    fits = np.divide(by_group, sums, out=np.ones(len(table)), where=sums > by_group)[homes]
    if dealable:
        left = np.array([min(lefts.get(key, np.nan), keys[key]) for key in names], np.float64) * fits
    else:
        left = np.full(len(names), np.nan)
    sizes = np.array([key_bytes[key] for key in names], np.int64)
    of_keys = KeyColumns(list(names), homes, seconds * fits, sizes, [table.keys.get(key) for key in names], left)
    of_groups = GroupColumns(table.groups.astype(np.int64), by_group, by_bytes)
    return LoadSnapshot.of_columns(workers, of_groups, of_keys, splits, dealable)


def _split_keys(
    parts: dict[int, dict[int, tuple[float, float]]], measured: dict[int, dict[int, float]], table: RoutingTable, by_group: Floats
) -> list[SplitKey]:
    """Return the load of the split keys at each worker, subtracted from the measurements of their groups, and from `by_group`.

    `parts`: by key and worker the load, and the left side's. A worker that has not reported a key as hot has the load that it
    measured for the key's group, if another worker owns that, and next to nothing otherwise.
    """
    splits = []
    for key, route in table.splits.items():
        group = int(group_of(np.array([key], np.uint64), len(table))[0])
        loads, copied = [], []
        for worker in route.workers:
            there = measured.get(worker, {})
            seconds, left = parts[key].get(worker, (there.get(group, 0.0) if int(table.groups[group]) != worker else 0.0, None))
            seconds = min(seconds, there.get(group, 0.0))
            if left is not None:
                copied.append(min(seconds - left if route.dealt == "left" else left, seconds))
            there[group] = there.get(group, 0.0) - seconds
            loads.append(seconds)
        by_group[group] = max(float(by_group[group]) - sum(loads), 0.0)
        splits.append(SplitKey(key, group, route.dealt, route.workers, tuple(loads), max(float(np.mean(copied)), 0.0) if copied else 0.0))
    return splits


def _add_unreported(keys: dict[int, float], measured: dict[int, dict[int, float]], table: RoutingTable) -> None:
    """Give routed keys without a load the remaining load that their workers measured for their groups."""
    routed = {key: worker for key, worker in table.keys.items() if key not in table.splits}
    if not routed:
        return
    hashes = np.array(list(routed), np.uint64)
    homes = dict(zip(routed, group_of(hashes, len(table)).tolist(), strict=True))
    left: dict[tuple[int, int], float] = {}
    silent: dict[tuple[int, int], list[int]] = {}
    for key, worker in routed.items():
        place = worker, homes[key]
        left.setdefault(place, measured.get(worker, {}).get(homes[key], 0.0))
        left[place] -= keys[key]
        if keys[key] == 0:
            silent.setdefault(place, []).append(key)
    for place, quiet in silent.items():
        keys.update(dict.fromkeys(quiet, max(left[place], 0.0) / len(quiet)))
