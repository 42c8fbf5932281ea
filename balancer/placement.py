"""Conversion of a placement (the worker of every group and hot key) to the plan that leads to it.

Invariant: the plan's moves are exactly the difference between the snapshot and the placement, and its predicted imbalance is that
of the placement, computed from the snapshot's own loads.

>>> from .snapshot import GroupLoad
>>> snapshot = LoadSnapshot(2, [GroupLoad(0, 0, 1.0, 10), GroupLoad(1, 0, 1.0, 20)])
>>> plan = plan_to(snapshot, np.array([0, 1]), snapshot.key_workers, "an example")
>>> plan.moves, plan.imbalance_before, plan.imbalance_after, plan.state_bytes
((BalanceMove(source=0, target=1, group=1, key=None),), 2.0, 1.0, 20)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .plan import BalanceMove, BalancePlan
from .snapshot import LoadSnapshot, Workers, imbalance


def plan_to(snapshot: LoadSnapshot, group_workers: Workers, key_workers: Workers, reason: str) -> BalancePlan:
    """Return the plan that puts group i of the snapshot on worker `group_workers[i]` and hot key i on `key_workers[i]`."""
    moved = key_workers != snapshot.key_workers
    return BalancePlan(
        (*_group_moves(snapshot, group_workers), *_key_moves(snapshot, group_workers, key_workers)),
        snapshot.imbalance,
        imbalance(snapshot.worker_loads(group_workers, key_workers)),
        snapshot.floor,
        _bytes_with_groups(snapshot, group_workers) + int(snapshot.key_bytes[moved].sum()),
        reason,
    )


def _bytes_with_groups(snapshot: LoadSnapshot, group_workers: Workers) -> int:
    """Return the bytes of state that move with the groups. A hot key's state is excluded: it counts where the key moves."""
    rest = snapshot.group_bytes.copy()
    np.subtract.at(rest, snapshot.key_at, snapshot.key_bytes)
    return int(np.maximum(rest, 0)[group_workers != snapshot.group_workers].sum())


def _group_moves(snapshot: LoadSnapshot, group_workers: Workers) -> Iterator[BalanceMove]:
    """Yield a move for each group whose worker changes."""
    for at in np.flatnonzero(group_workers != snapshot.group_workers).tolist():
        yield BalanceMove(int(snapshot.group_workers[at]), int(group_workers[at]), group=int(snapshot.group_ids[at]))


def _key_moves(snapshot: LoadSnapshot, group_workers: Workers, key_workers: Workers) -> Iterator[BalanceMove]:
    """Yield a move for each hot key that needs one: not for keys that move with their group, nor for routed keys that stay."""
    home, new_home = snapshot.group_workers[snapshot.key_at], group_workers[snapshot.key_at]
    with_group = (snapshot.key_workers == home) & (key_workers == new_home)
    stays_routed = (key_workers == snapshot.key_workers) & (snapshot.key_workers != home)
    for at in np.flatnonzero(~with_group & ~stays_routed).tolist():
        yield BalanceMove(int(snapshot.key_workers[at]), int(key_workers[at]), key=snapshot.hot_keys[at].key)
