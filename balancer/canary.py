"""A routing table that gives new workers a share of an operator's load, to try something on a part of its keys.

>>> table = RoutingTable(np.array([0, 0, 1, 1], np.uint16))
>>> canary(table, [2], 0.3, np.array([5.0, 3.0, 1.0, 1.0])).groups.tolist()
[0, 2, 1, 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..engine.protocol.routing import RoutingTable

MOST = 0.5
"""The largest part of an operator's load that a canary gets when a smaller one is not possible."""


def canary(table: RoutingTable, workers: Sequence[int], share: float, loads: npt.NDArray[np.float64]) -> RoutingTable:
    """Return the table in which `workers` own key groups with about `share` of the load, at least one group.

    `loads`: load of each key group, in any unit, shape (key_groups,). Groups of ordinary load are taken first, since they show more than a
    single hot one; keys with a route of their own keep it. If each group with load has more than the share, the one with the least is
    taken, up to `MOST` of all load: code that gets no rows shows nothing.
    """
    groups = table.groups.copy()
    weights = loads + max(float(loads.sum()), 1.0) / len(loads) * 1e-3  # groups without load count a little
    room = share * float(weights.sum())
    mean = float(weights.mean())
    taken = 0
    for group in np.argsort(np.abs(weights - mean), kind="stable").tolist():
        if weights[group] <= room or (not taken and weights[group] <= 2 * max(room, mean)):
            groups[group] = workers[taken % len(workers)]
            room -= float(weights[group])
            taken += 1
        if room <= 0:
            break
    if not taken:
        groups[int(np.argmin(weights))] = workers[0]
    loaded = np.flatnonzero(loads > 0)
    if len(loaded) and not (groups[loaded] != table.groups[loaded]).any():
        least = loaded[np.argmin(loads[loaded])]
        if loads[least] <= MOST * loads.sum():
            groups[least] = workers[taken % len(workers)]
    return RoutingTable(groups, table.keys, table.splits)


def emptied(table: RoutingTable, worker: int, to: int) -> RoutingTable:
    """Return the table in which worker `to` owns everything that `worker` owns. A split key is no longer shared by `worker`.

    >>> emptied(RoutingTable(np.array([0, 1], np.uint16), {7: 0}), 0, 2).groups.tolist()
    [2, 1]
    """
    groups = np.where(table.groups == worker, np.uint16(to), table.groups).astype(np.uint16)
    keys = {key: to if owner == worker else owner for key, owner in table.keys.items()}
    splits = {key: split.without(worker) for key, split in table.splits.items() if split.home != worker}
    return RoutingTable(groups, keys, splits)


def turned(table: RoutingTable, before: RoutingTable, workers: int) -> RoutingTable:
    """Return the table without workers `workers` and above: their keys go to the left neighbour of the owner that they had `before`.

    So the load is as even as it was, once the keys of all other workers have moved to the left as well.

    >>> before = RoutingTable(np.array([0, 0, 1, 1], np.uint16))
    >>> turned(RoutingTable(np.array([2, 2, 0, 2], np.uint16)), before, 2).groups.tolist()
    [1, 1, 0, 0]
    """
    left = (before.groups.astype(np.int64) - 1) % workers
    groups = np.where(table.groups >= workers, left, table.groups).astype(np.uint16)
    keys = dict(table.keys)
    for key in [key for key, owner in keys.items() if owner >= workers]:
        keys[key] = (int(before.owners(np.array([key], np.uint64))[0]) - 1) % workers
    splits = {
        key: replace(split, others=tuple(worker for worker in split.others if worker < workers))
        for key, split in table.splits.items()
        if split.home < workers
    }
    return RoutingTable(groups, keys, splits)
