"""Joins the windows of an operator's workers into one load snapshot of the operator.

Invariant: a snapshot has one window of all workers. A worker that is more than `patience` windows behind counts with its last window,
because a worker that is too busy to report isn't idle.

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
from ..state.hashing import group_of
from .snapshot import GroupLoad, KeyLoad, LoadSnapshot

Floats = npt.NDArray[np.float64]


def _none() -> npt.NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """The measurements of one worker in the window from `start` (seconds): parallel arrays, one entry per key group with load.

    `load` in useful seconds, or any unit that all workers share. `state_bytes` may be empty if it isn't known. `key_hashes` (hash64),
    `key_loads` and `key_bytes` (may be empty): the hottest keys; their load is part of `load`.
    """

    worker: int
    start: float
    groups: npt.NDArray[np.int64]
    load: Floats
    state_bytes: npt.NDArray[np.int64] = field(default_factory=_none)
    key_hashes: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    key_loads: Floats = field(default_factory=lambda: np.zeros(0))
    key_bytes: npt.NDArray[np.int64] = field(default_factory=_none)


class OperatorWindows:
    """Takes the workers' windows as they arrive, and gives a snapshot per window, in order. `length`: seconds of a window."""

    def __init__(self, length: float, patience: int = 3) -> None:
        self._length, self._patience = length, patience
        self._newest: dict[int, int] = {}
        self._taken: int | None = None
        self._waiting: dict[int, dict[int, WorkerLoad]] = {}
        self._last: dict[int, WorkerLoad] = {}

    def add(self, load: WorkerLoad) -> None:
        """Add a worker's window; the workers' clocks may differ by half a window. A window that comes after its snapshot only becomes the
        worker's last one.
        """
        index = round(load.start / self._length)
        if self._taken is not None and index <= self._taken:
            self._last[load.worker] = load
        else:
            self._waiting.setdefault(index, {})[load.worker] = load
        self._newest[load.worker] = max(index, self._newest.get(load.worker, index))

    def take(self, table: RoutingTable, workers: int) -> LoadSnapshot | None:
        """The snapshot of the oldest window that every worker has reported, or is too late for; None if there is none yet.

        `table`: the current routing table. The snapshot's hot keys are the reported ones and all with a route of their own, by hash64.
        While some worker has never reported, its windows are skipped.
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
        return snapshot_of([self._last[worker] for worker in range(workers)], table, workers)


def snapshot_of(loads: list[WorkerLoad], table: RoutingTable, workers: int) -> LoadSnapshot:
    """One snapshot from a window of each worker.

    A group's load is the sum over the workers: while it moves, two of them measure some. A routed key that no worker reported as hot gets
    the load that its worker measured for the key's group, because that group belongs to another worker. The
    load of split keys is left out: no move of a balancer changes it.
    """
    by_group, by_bytes = np.zeros(len(table)), np.zeros(len(table), np.int64)
    keys = dict.fromkeys(table.keys, 0.0)
    key_bytes = dict.fromkeys(table.keys, 0)
    for load in loads:
        np.add.at(by_group, load.groups, load.load)
        if len(load.state_bytes):
            np.add.at(by_bytes, load.groups, load.state_bytes)
        sizes = load.key_bytes if len(load.key_bytes) else np.zeros(len(load.key_hashes), np.int64)
        for key, seconds, size in zip(load.key_hashes.tolist(), load.key_loads.tolist(), sizes.tolist(), strict=True):
            keys[key] = keys.get(key, 0.0) + seconds
            key_bytes[key] = key_bytes.get(key, 0) + size
    _add_unreported(keys, loads, table)
    for key in table.splits:
        key_bytes.pop(key, None)
        by_group[group_of(np.array([key], np.uint64), len(table))] -= keys.pop(key, 0.0)
    by_group = np.maximum(by_group, 0.0)
    hashes = np.array(list(keys), np.uint64)
    homes = group_of(hashes, len(table)).astype(np.int64)
    of_keys = np.bincount(homes, list(keys.values()), len(table))
    fits = np.divide(by_group, of_keys, out=np.ones(len(table)), where=of_keys > by_group)
    rows = zip(range(len(table)), table.groups.tolist(), by_group.tolist(), by_bytes.tolist(), strict=True)
    return LoadSnapshot(
        workers,
        [GroupLoad(*row) for row in rows],
        [
            KeyLoad(key, home, keys[key] * fit, key_bytes[key], table.keys.get(key))
            for key, home, fit in zip(keys, homes.tolist(), fits[homes].tolist(), strict=True)
        ],
    )


def _add_unreported(keys: dict[int, float], loads: list[WorkerLoad], table: RoutingTable) -> None:
    """Give routed keys without a load the rest of the load that their workers measured for their groups."""
    if not table.keys:
        return
    hashes = np.array(list(table.keys), np.uint64)
    homes = dict(zip(table.keys, group_of(hashes, len(table)).tolist(), strict=True))
    measured = {load.worker: dict(zip(load.groups.tolist(), load.load.tolist(), strict=True)) for load in loads}
    left: dict[tuple[int, int], float] = {}
    silent: dict[tuple[int, int], list[int]] = {}
    for key, worker in table.keys.items():
        place = worker, homes[key]
        left.setdefault(place, measured.get(worker, {}).get(homes[key], 0.0))
        left[place] -= keys[key]
        if keys[key] == 0:
            silent.setdefault(place, []).append(key)
    for place, quiet in silent.items():
        keys.update(dict.fromkeys(quiet, max(left[place], 0.0) / len(quiet)))
