"""The balancing rules that no job uses, each by its promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from load_snapshots import loads_after, many, snapshots

from evenflow.balancer.snapshot import GroupLoad, KeyLoad, LoadSnapshot, imbalance
from evenflow.bench.baselines.consistent import EPSILON, Consistent
from evenflow.bench.baselines.two_choices import two_choices


@given(snapshots())
def test_a_plan_of_consistent_hashing_predicts_its_imbalance_and_respects_the_floor(snapshot):
    plan = Consistent().plan(snapshot)
    assert plan.imbalance_after == pytest.approx(imbalance(np.array(loads_after(snapshot, plan))), abs=1e-6)
    assert plan.imbalance_after >= snapshot.floor - 1e-9


def test_consistent_hashing_keeps_its_bound():
    assert Consistent().plan(many(16, 1024)).imbalance_after <= 1 + EPSILON


def test_consistent_hashing_moves_few_groups_when_a_worker_joins():
    before, after = many(16, 1024), many(17, 1024)
    placed, moved = ({m.group: m.target for m in Consistent().plan(snapshot).moves} for snapshot in (before, after))
    changed = sum(
        placed.get(old.group, old.worker) != moved.get(new.group, new.worker)
        for old, new in zip(before.key_groups, after.key_groups, strict=True)
    )
    assert changed < 1024 / 4


def test_a_group_hotter_than_the_bound_goes_to_the_coldest_worker():
    plan = Consistent().plan(LoadSnapshot(2, [GroupLoad(0, 0, 9.0), GroupLoad(1, 0, 1.0)]))
    assert plan.imbalance_after <= 2.0


@given(snapshots())
def test_two_choices_place_all_load(snapshot):
    placed = two_choices(snapshot)
    assert all(sum(shares.values()) == pytest.approx(1.0) and len(shares) <= 2 for shares in placed.shares)
    loads = np.zeros(snapshot.workers)
    for group, worker in zip(snapshot.key_groups, placed.groups.tolist(), strict=True):
        loads[worker] += group.load - sum(key.load for key in snapshot.hot_keys if key.group == group.group)
    for key, shares in zip(snapshot.hot_keys, placed.shares, strict=True):
        for worker, share in shares.items():
            loads[worker] += key.load * share
    assert placed.imbalance == pytest.approx(imbalance(loads), abs=1e-6)


def test_two_choices_split_a_key_that_no_single_owner_can_bear():
    groups = [*(GroupLoad(g, g, 1.0, 10) for g in range(3)), GroupLoad(3, 3, 20.0, 10)]
    hot = LoadSnapshot(4, groups, [KeyLoad("JFK", 3, 19.0, 8)])
    placed = two_choices(hot)
    assert placed.imbalance < hot.floor
    assert len(placed.shares[0]) == 2


def test_two_choices_are_better_than_one():
    snapshot = LoadSnapshot(32, [GroupLoad(g, 0, 1.0) for g in range(1024)])
    random = LoadSnapshot(32, [GroupLoad(g, int(w), 1.0) for g, w in enumerate(np.random.default_rng(1).integers(0, 32, 1024))])
    assert two_choices(snapshot).imbalance < random.imbalance
