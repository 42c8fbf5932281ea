"""Consistent hashing with bounded loads: few groups move when workers join or leave, and no worker is far over the mean.

Karger et al. (STOC 1997): workers and groups are points on a ring, and a group belongs to the next worker. Mirrokni, Thorup and
Zadimoghaddam (SODA 2018): no worker takes more than (1 + epsilon) times the mean; a group whose worker is full tries the next
one.

>>> from .snapshot import GroupLoad
>>> Consistent().plan(LoadSnapshot(4, [GroupLoad(group, 0, 1.0) for group in range(64)])).imbalance_after <= 1.25
True
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from .base import ANY_STATE, Balancer, Limits
from .placement import plan_to, with_their_groups
from .plan import BalancePlan
from .ring import group_points, worker_points
from .snapshot import LoadSnapshot, Workers

EPSILON = 0.25
"""The excess over the mean allowed for a worker. By the paper, a group tries on the order of 1 / EPSILON**2 workers."""

POINTS_EACH = 32
"""The points of a worker on the ring: it takes over groups from that many others."""


class Consistent(Balancer):
    """A balancer that places groups in the order of their points. A group that is too hot for every worker goes to the coldest one.

    Hot keys stay with their groups: the rule has no routes for single keys.
    """

    name: ClassVar[str] = "consistent"

    def plan(self, snapshot: LoadSnapshot, limits: Limits = ANY_STATE) -> BalancePlan:
        groups = _placed(snapshot)
        reason = f"consistent hashing, no worker over {1 + EPSILON:g} times the mean load except for groups that fit nowhere"
        return plan_to(snapshot, groups, with_their_groups(snapshot, groups), reason)


def _placed(snapshot: LoadSnapshot) -> Workers:
    points = worker_points(snapshot.workers, POINTS_EACH).ravel()
    order = np.argsort(points, kind="stable")
    ring = (order // POINTS_EACH).tolist()
    wanted = group_points(snapshot.group_ids)
    starts = (np.searchsorted(points[order], wanted) % len(ring)).tolist()
    capacity = (1 + EPSILON) * snapshot.mean
    loads, placed = snapshot.split_loads.tolist(), np.zeros(len(snapshot.key_groups), np.int64)
    for at in np.argsort(wanted, kind="stable").tolist():
        load, start = float(snapshot.group_loads[at]), starts[at]
        onward = (ring[point % len(ring)] for point in range(start, start + len(ring)))
        fits = (worker for worker in onward if loads[worker] + load <= capacity)
        worker = next(fits, None) if load <= capacity else None
        placed[at] = worker = int(np.argmin(loads)) if worker is None else worker
        loads[worker] += load
    return placed
