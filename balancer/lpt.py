"""Longest processing time first, from scratch: the best balance of a simple rule, at the cost of moving nearly all state.

Graham (Bounds on Multiprocessing Timing Anomalies, 1969): by descending load, each piece goes to the least loaded worker; the
hottest worker then has at most 4/3 - 1/(3 workers) times the least possible.

>>> from .snapshot import GroupLoad
>>> groups = [GroupLoad(group, 0, load) for group, load in enumerate([5.0, 5.0, 4.0, 4.0, 3.0, 3.0])]
>>> LongestFirst().plan(LoadSnapshot(2, groups)).imbalance_after
1.0
"""

from __future__ import annotations

from heapq import heapify, heapreplace
from typing import ClassVar

import numpy as np

from .base import ANY_STATE, Balancer, Limits
from .placement import plan_to
from .plan import BalancePlan
from .snapshot import LoadSnapshot


class LongestFirst(Balancer):
    """A balancer whose pieces are the key groups; those hotter than a worker's mean are opened, and their hot keys are pieces too.

    Groups without load stay in place. Ties go to the worker with the lowest number.
    """

    name: ClassVar[str] = "lpt"

    def plan(self, snapshot: LoadSnapshot, limits: Limits = ANY_STATE) -> BalancePlan:
        mean = snapshot.mean
        opened = snapshot.group_loads[snapshot.key_at] > mean
        of_opened = np.bincount(snapshot.key_at[opened], snapshot.key_loads[opened], len(snapshot.key_groups))
        loads = np.concatenate([np.maximum(snapshot.group_loads - of_opened, 0.0), np.where(opened, snapshot.key_loads, 0.0)])
        placed = np.concatenate([snapshot.group_workers, snapshot.key_workers])
        coldest = [(load, worker) for worker, load in enumerate(snapshot.split_loads.tolist())]
        heapify(coldest)
        for piece in np.argsort(-loads, kind="stable").tolist():
            if loads[piece] <= 0:
                break
            load, worker = coldest[0]
            placed[piece] = worker
            heapreplace(coldest, (load + float(loads[piece]), worker))
        groups, keys = placed[: len(snapshot.key_groups)], placed[len(snapshot.key_groups) :]
        reason = "longest processing time first, from scratch, however much moves"
        return plan_to(snapshot, groups, np.where(opened, keys, groups[snapshot.key_at]), reason)
