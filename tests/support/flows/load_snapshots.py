"""Load snapshots for tests of balancers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from evenflow.balancer.plan import BalancePlan
from evenflow.balancer.snapshot import GroupLoad, KeyLoad, LoadSnapshot


@st.composite
def snapshots(draw) -> LoadSnapshot:
    """Draw a snapshot of a few groups and hot keys."""
    workers = draw(st.integers(1, 6))
    worker = st.integers(0, workers - 1)
    groups, keys = [], []
    for group in draw(st.lists(st.integers(0, 63), unique=True, max_size=24)):
        load, size = draw(st.integers(0, 20)), draw(st.integers(0, 1000))
        groups.append(GroupLoad(group, draw(worker), float(load), size))
        if draw(st.booleans()):
            keys.append(KeyLoad(f"key {group}", group, load * 0.75, size // 2, draw(st.one_of(st.none(), worker))))
    return LoadSnapshot(workers, groups, keys)


def loads_after(snapshot: LoadSnapshot, plan: BalancePlan) -> list[float]:
    """Return the workers' loads after a plan, by the words of `BalanceMove`."""
    groups = {g.group: g.worker for g in snapshot.key_groups} | {m.group: m.target for m in plan.moves if m.group is not None}
    moved = {m.key: m.target for m in plan.moves if m.group is None}
    loads = np.zeros(snapshot.workers)
    for group in snapshot.key_groups:
        loads[groups[group.group]] += group.load
    for key, worker, home in zip(
        snapshot.hot_keys, snapshot.key_workers.tolist(), snapshot.group_workers[snapshot.key_at].tolist(), strict=True
    ):
        stays = groups[key.group] if worker == home else worker
        loads[groups[key.group]] -= key.load
        loads[moved.get(key.key, stays)] += key.load
    return loads.tolist()


def many(workers: int, groups: int) -> LoadSnapshot:
    """Return a snapshot of many groups with different loads."""
    loads = np.random.default_rng(3).lognormal(0, 0.5, groups).tolist()
    return LoadSnapshot(workers, [GroupLoad(g, g * workers // groups, load, 100) for g, load in enumerate(loads)])
