"""Routing tables for another number of workers: they reassign keys of leaving workers, and give keys to joining ones.

Pure. No keys move between remaining workers, so as little as possible moves.

>>> table = RoutingTable(np.array([0, 0, 1, 1, 2, 2], np.uint16))
>>> evacuated(table, 2, np.array([4.0, 1.0, 1.0, 1.0, 3.0, 1.0])).groups.tolist()
[0, 0, 1, 1, 1, 0]
>>> spread(table, 3).groups.tolist(), spread(table, 6).groups.tolist()
([0, 0, 1, 1, 2, 2], [3, 0, 4, 1, 5, 2])
"""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..engine.protocol.routing import RoutingTable


def evacuated(table: RoutingTable, workers: int, loads: npt.NDArray[np.float64]) -> RoutingTable:
    """Return the table without workers `workers` and above. `loads`: load of each key group, in any unit, shape (key_groups,).

    The hottest groups go first, each to the coldest remaining worker (longest processing time first; Graham, 1969). Keys with
    their own route to a leaving worker go to the worker of their group. A split key is shared by its remaining workers, and no
    longer split if its home leaves.
    """
    groups = table.groups.copy()
    weights = loads + max(float(loads.sum()), 1.0) / len(loads) * 1e-3  # groups without load are distributed evenly too
    held = np.bincount(groups[groups < workers], weights[groups < workers], minlength=workers)
    coldest = [(load, worker) for worker, load in enumerate(held.tolist())]
    heapq.heapify(coldest)
    leaving = np.flatnonzero(groups >= workers)
    for group in leaving[np.argsort(-weights[leaving], kind="stable")].tolist():
        load, worker = heapq.heappop(coldest)
        groups[group] = worker
        heapq.heappush(coldest, (load + float(weights[group]), worker))
    splits = {
        key: replace(split, others=tuple(worker for worker in split.others if worker < workers))
        for key, split in table.splits.items()
        if split.home < workers
    }
    return RoutingTable(groups, {key: worker for key, worker in table.keys.items() if worker < workers}, splits)


def spread(table: RoutingTable, workers: int) -> RoutingTable:
    """Return the table with the same number of groups for every worker if possible, for an operator without a measured load."""
    groups = table.groups.copy()
    counts = np.bincount(groups, minlength=workers)
    least = len(groups) // workers
    owned = [iter(part) for part in np.split(np.argsort(groups, kind="stable"), np.cumsum(counts)[:-1])]
    richest = [(-count, worker) for worker, count in enumerate(counts.tolist()) if count > least]
    heapq.heapify(richest)
    for worker in np.flatnonzero(counts < least).tolist():
        for _ in range(least - int(counts[worker])):
            negative, giver = richest[0]
            groups[next(owned[giver])] = worker
            heapq.heapreplace(richest, (negative + 1, giver))
    return RoutingTable(groups, table.keys, table.splits)


def highest_worker(table: RoutingTable) -> int:
    """Return the highest index of a worker that owns groups or keys."""
    hashes = np.array(list(table.keys), np.uint64)
    routed = int(table.owners(hashes).max()) if len(hashes) else 0
    sharing = max((worker for split in table.splits.values() for worker in split.workers), default=0)
    return max(int(table.groups.max()), routed, sharing)
