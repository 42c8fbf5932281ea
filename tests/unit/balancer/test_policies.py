"""The baselines for `hotspot`, each with the properties of its rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.balancer.consistent import EPSILON
from evenflow.balancer.plan import BalancePlan
from evenflow.balancer.policies import POLICIES, named
from evenflow.balancer.snapshot import GroupLoad, KeyLoad, LoadSnapshot, imbalance
from evenflow.engine.errors import RequestError
from evenflow.engine.protocol.routing import even_table


@st.composite
def snapshots(draw) -> LoadSnapshot:
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
    """Return the workers' loads by the documentation of `BalanceMove`, shares of keys included."""
    groups = {g.group: g.worker for g in snapshot.key_groups} | {m.group: m.target for m in plan.moves if m.group is not None}
    loads = np.zeros(snapshot.workers)
    for group in snapshot.key_groups:
        loads[groups[group.group]] += group.load
    for key, worker, home in zip(
        snapshot.hot_keys, snapshot.key_workers.tolist(), snapshot.group_workers[snapshot.key_at].tolist(), strict=True
    ):
        shares = {move.target: move.share for move in plan.moves if move.group is None and move.key == key.key}
        stays = groups[key.group] if worker == home and not shares else worker
        shares[stays] = shares.get(stays, 0.0) + 1 - sum(shares.values())
        loads[groups[key.group]] -= key.load
        for target, share in shares.items():
            loads[target] += key.load * share
    return loads.tolist()


def many(workers: int, groups: int) -> LoadSnapshot:
    loads = np.random.default_rng(3).lognormal(0, 0.5, groups).tolist()
    return LoadSnapshot(workers, [GroupLoad(g, g * workers // groups, load, 100) for g, load in enumerate(loads)])


@pytest.mark.parametrize("name", POLICIES)
@given(snapshots())
def test_a_plan_leads_where_it_says(name, snapshot):
    plan = named(name).plan(snapshot)
    assert plan.imbalance_before == snapshot.imbalance
    assert plan.imbalance_after == pytest.approx(imbalance(np.array(loads_after(snapshot, plan))), abs=1e-6)


@pytest.mark.parametrize("name", POLICIES)
@given(snapshots())
def test_equal_snapshots_give_equal_plans(name, snapshot):
    assert named(name).plan(snapshot) == named(name).plan(LoadSnapshot(snapshot.workers, snapshot.key_groups, snapshot.hot_keys))


@pytest.mark.parametrize("name", POLICIES)
@given(snapshots())
def test_no_group_moves_twice_or_to_where_it_is(name, snapshot):
    moves = [move for move in named(name).plan(snapshot).moves if move.group is not None]
    assert len({move.group for move in moves}) == len(moves)
    assert all(move.source != move.target for move in moves)


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"two_choices"}))
@given(snapshots())
def test_no_placement_of_single_owners_is_better_than_the_floor(name, snapshot):
    assert named(name).plan(snapshot).imbalance_after >= snapshot.floor - 1e-9


def test_an_unknown_balancer_is_answered_with_the_known_ones():
    with pytest.raises(RequestError, match="'best' is not a balancer: use one of hotspot, static, consistent, two_choices, lpt"):
        named("best")


def test_static_is_the_first_routing_table():
    assert named("static").plan(many(8, 64)).moves == ()
    plan = named("static").plan(LoadSnapshot(4, [GroupLoad(g, 0, 1.0) for g in range(16)]))
    assert {move.group: move.target for move in plan.moves} == {g: w for g, w in enumerate(even_table(16, 4).groups.tolist()) if w}


def test_static_brings_keys_home():
    plan = named("static").plan(LoadSnapshot(2, [GroupLoad(0, 0, 1.0), GroupLoad(1, 1, 1.0)], [KeyLoad("JFK", 0, 0.5, worker=1)]))
    assert [(move.key, move.source, move.target) for move in plan.moves] == [("JFK", 1, 0)]


def test_consistent_hashing_keeps_its_bound():
    assert named("consistent").plan(many(16, 1024)).imbalance_after <= 1 + EPSILON


def test_consistent_hashing_moves_few_groups_when_a_worker_comes():
    before, after = many(16, 1024), many(17, 1024)
    placed = {m.group: m.target for m in named("consistent").plan(before).moves}
    placed = {g.group: placed.get(g.group, g.worker) for g in before.key_groups}
    moved = {m.group: m.target for m in named("consistent").plan(after).moves}
    moved = {g.group: moved.get(g.group, g.worker) for g in after.key_groups}
    assert sum(placed[group] != moved[group] for group in placed) < 1024 / 4


def test_a_group_hotter_than_the_bound_goes_to_the_coldest_worker():
    plan = named("consistent").plan(LoadSnapshot(2, [GroupLoad(0, 0, 9.0), GroupLoad(1, 0, 1.0)]))
    assert plan.imbalance_after <= 2.0


def test_two_choices_split_a_key_that_no_single_owner_can_bear():
    snapshot = LoadSnapshot(4, [GroupLoad(g, g % 4, 1.0, 10) for g in range(8)], [KeyLoad("JFK", 3, 0.5)])
    hot = LoadSnapshot(4, [*snapshot.key_groups[:3], GroupLoad(3, 3, 20.0, 10)], [KeyLoad("JFK", 3, 19.0, 8)])
    plan = named("two_choices").plan(hot)
    shares = [move.share for move in plan.moves if move.key == "JFK"]
    assert plan.imbalance_after < plan.floor
    assert all(0 < share < 1 for share in shares)
    assert sum(shares) <= 1 + 1e-9


def test_a_split_key_is_no_routing_table():
    plan = named("two_choices").plan(LoadSnapshot(2, [GroupLoad(0, 0, 1.0)], [KeyLoad("JFK", 0, 1.0)]))
    with pytest.raises(RequestError, match="a share of key 'JFK'"):
        plan.table(even_table(2, 2), hash)


def test_two_choices_are_better_than_one():
    snapshot = LoadSnapshot(32, [GroupLoad(g, 0, 1.0) for g in range(1024)])
    random = LoadSnapshot(32, [GroupLoad(g, int(w), 1.0) for g, w in enumerate(np.random.default_rng(1).integers(0, 32, 1024))])
    assert named("two_choices").plan(snapshot).imbalance_after < random.imbalance


def test_longest_first_keeps_grahams_bound_in_his_worst_case():
    loads = [5, 5, 4, 4, 3, 3, 3]
    plan = named("lpt").plan(LoadSnapshot(3, [GroupLoad(g, 0, float(load)) for g, load in enumerate(loads)]))
    assert plan.imbalance_after * sum(loads) / 3 == pytest.approx(11)
    assert pytest.approx(4 / 3 - 1 / 9) == 11 / 9


def test_longest_first_opens_a_group_that_is_hotter_than_a_worker_should_be():
    plan = named("lpt").plan(LoadSnapshot(2, [GroupLoad(0, 0, 4.0)], [KeyLoad("JFK", 0, 2.0)]))
    assert plan.imbalance_after == 1.0
