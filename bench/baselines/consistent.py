"""Consistent hashing with bounded loads: few groups move when workers come and go, and no worker is far over the mean.

Karger et al. (STOC 1997): workers and groups are points on a ring of 2**64, and a group belongs to the next worker. Mirrokni, Thorup and
Zadimoghaddam (SODA 2018): no worker takes more than (1 + epsilon) times the mean; a group whose worker is full goes to the next one.

>>> from ...balancer.snapshot import GroupLoad
>>> Consistent().plan(LoadSnapshot(4, [GroupLoad(group, 0, 1.0) for group in range(64)])).imbalance_after <= 1.25
True
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ...balancer.base import ANY_STATE, Balancer, Limits
from ...balancer.placement import plan_to
from ...balancer.plan import BalancePlan
from ...balancer.snapshot import LoadSnapshot, Workers
from ...state.hashing import mix

EPSILON = 0.25
"""The load over the mean that a worker may have. By the paper, a group tries on the order of 1 / EPSILON**2 workers."""

POINTS_EACH = 32
"""Points of a worker on the ring: it takes groups over from that many others."""

Points = npt.NDArray[np.uint64]
_SALT = np.uint64(0x6261_6C61_6E63_6572)


class Consistent(Balancer):
    """Places groups in the order of their points. A group that is too hot for every worker goes to the coldest one.

    Hot keys stay with their groups, because the rule has no routes for single keys.
    """

    name: ClassVar[str] = "consistent"

    def plan(self, snapshot: LoadSnapshot, limits: Limits = ANY_STATE) -> BalancePlan:
        groups = _placed(snapshot)
        reason = f"consistent hashing, no worker over {1 + EPSILON:g} times the mean load but for groups that fit nowhere"
        return plan_to(snapshot, groups, groups[snapshot.key_at], reason)


def group_points(groups: npt.NDArray[np.int64], choice: int = 0) -> Points:
    """Return a point for each group, a different one for each `choice`."""
    return mix(mix(groups.astype(np.uint64)) + np.uint64(choice))


def _placed(snapshot: LoadSnapshot) -> Workers:
    owners = mix(np.arange(snapshot.workers).astype(np.uint64) ^ _SALT)
    points = mix(owners[:, None] + np.arange(POINTS_EACH).astype(np.uint64)).ravel()
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
