"""Hotspot-diminishing: load leaves the hottest worker, little state moves, and no move is useless."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.balancer.base import Limits
from evenflow.balancer.plan import BalancePlan
from evenflow.balancer.policies import named
from evenflow.balancer.snapshot import GroupLoad, KeyLoad, LoadSnapshot
from evenflow.engine.errors import FlowError
from evenflow.state.hashing import mix

HOTSPOT, LPT = named("hotspot"), named("lpt")


@st.composite
def snapshots(draw) -> LoadSnapshot:
    """Draw groups on any worker, some with hot keys with or without own routes, whose state is part of their group's."""
    workers = draw(st.integers(1, 6))
    worker = st.integers(0, workers - 1)
    loads = st.one_of(st.just(0), st.integers(1, 20), st.integers(100, 200))
    groups, keys = [], []
    for group in draw(st.lists(st.integers(0, 63), unique=True, max_size=24)):
        load, size = draw(loads), draw(st.integers(0, 1000))
        groups.append(GroupLoad(group, draw(worker), float(load), size))
        for index, part in enumerate(draw(st.lists(st.sampled_from([0.1, 0.3, 0.6]), max_size=2, unique=True))):
            own = draw(st.one_of(st.none(), worker))
            keys.append(KeyLoad(f"{group}/{index}", group, load * part, int(size * part), own))
    return LoadSnapshot(workers, groups, keys)


def carried_out(snapshot: LoadSnapshot, plan: BalancePlan) -> LoadSnapshot:
    """Return the snapshot after the plan, by the documentation of `BalanceMove` alone."""
    to_group = {move.group: move for move in plan.moves if move.group is not None}
    to_key = {move.key: move for move in plan.moves if move.group is None}
    assert len(to_group) + len(to_key) == len(plan.moves), "each group and each key at most once"
    groups, homes = [], {group.group: group.worker for group in snapshot.key_groups}
    for group in snapshot.key_groups:
        move = to_group.get(group.group)
        assert move is None or (move.source == group.worker != move.target)
        groups.append(group if move is None else group._replace(worker=move.target))
    keys = []
    for key, now in zip(snapshot.hot_keys, snapshot.key_workers.tolist(), strict=True):
        move = to_key.get(key.key)
        assert move is None or move.source == now
        routed = now != homes[key.group]
        keys.append(key._replace(worker=move.target if move is not None else now if routed else None))
    return LoadSnapshot(snapshot.workers, groups, keys)


def zipf(workers: int, key_groups: int, keys: int, exponent: float, hot: int = 64) -> LoadSnapshot:
    """Return keys by Zipf's law, hashed to groups, in the first routing table, with 64 bytes of state per key."""
    shares = 1 / np.arange(1, keys + 1) ** exponent
    shares /= shares.sum()
    homes = (mix(np.arange(keys).astype(np.uint64)) & np.uint64(key_groups - 1)).astype(np.int64)
    loads, sizes = np.bincount(homes, shares, key_groups).tolist(), np.bincount(homes, minlength=key_groups).tolist()
    groups = [GroupLoad(g, g * workers // key_groups, loads[g], 64 * sizes[g]) for g in range(key_groups)]
    return LoadSnapshot(workers, groups, [KeyLoad(key, int(homes[key]), float(shares[key]), 64) for key in range(hot)])


def groups_of(*loads_by_worker: tuple[float, ...], state_bytes: int = 100) -> list[GroupLoad]:
    loads = [(worker, load) for worker, loads in enumerate(loads_by_worker) for load in loads]
    return [GroupLoad(group, worker, load, state_bytes) for group, (worker, load) in enumerate(loads)]


def moves(plan: BalancePlan) -> list[tuple[object, int, int]]:
    return [(move.key if move.group is None else move.group, move.source, move.target) for move in plan.moves]


@given(snapshots())
def test_a_plan_leads_where_it_says(snapshot):
    plan = HOTSPOT.plan(snapshot)
    assert plan.imbalance_before == snapshot.imbalance
    assert plan.imbalance_after == pytest.approx(carried_out(snapshot, plan).imbalance)
    assert plan.floor == snapshot.floor


@given(snapshots())
def test_it_is_never_worse_than_before(snapshot):
    plan = HOTSPOT.plan(snapshot)
    assert plan.imbalance_after < plan.imbalance_before or not plan.moves


@given(snapshots())
def test_nothing_moves_twice_in_a_row(snapshot):
    once = carried_out(snapshot, HOTSPOT.plan(snapshot))
    if once.imbalance <= 1.05 * once.floor:
        assert HOTSPOT.plan(once).moves == ()


@given(snapshots())
def test_equal_snapshots_give_equal_plans(snapshot):
    again = LoadSnapshot(snapshot.workers, snapshot.key_groups, snapshot.hot_keys)
    assert HOTSPOT.plan(snapshot) == HOTSPOT.plan(again)


@given(snapshots(), st.integers(0, 2000))
def test_a_plan_keeps_to_its_bytes(snapshot, most):
    plan = HOTSPOT.plan(snapshot, Limits(max_bytes=most))
    assert plan.state_bytes <= most


@given(snapshots(), st.data())
def test_keys_that_must_not_move_stay(snapshot, data):
    groups = frozenset(group.group for group in snapshot.key_groups if data.draw(st.booleans()))
    keys = frozenset(key.key for key in snapshot.hot_keys if data.draw(st.booleans()))
    plan = HOTSPOT.plan(snapshot, Limits(fixed_groups=groups, fixed_keys=keys))
    routed = {
        key.key
        for key, away in zip(snapshot.hot_keys, snapshot.key_workers != snapshot.group_workers[snapshot.key_at], strict=True)
        if away
    }
    with_group = {key.key for key in snapshot.hot_keys if key.group in groups} - routed
    assert not groups & {move.group for move in plan.moves}
    assert not (keys | with_group) & {move.key for move in plan.moves if move.group is None}


def test_it_does_nothing_when_even():
    plan = HOTSPOT.plan(LoadSnapshot(3, groups_of((1, 1), (1, 1), (1, 1.02))))
    assert plan.moves == ()
    assert plan.reason == "worker 2 has 1.01 times the mean load, which is within 1.05 times the floor of 1.00"


def test_it_does_nothing_without_load_or_with_one_worker():
    assert HOTSPOT.plan(LoadSnapshot(3, groups_of((0, 0), (0,)))).moves == ()
    assert HOTSPOT.plan(LoadSnapshot(1, groups_of((5, 1)))).moves == ()
    assert HOTSPOT.plan(LoadSnapshot(3, [])).moves == ()


def test_it_does_not_move_the_hotspot_itself():
    plan = HOTSPOT.plan(LoadSnapshot(3, groups_of((9,), (1,), (1,))))
    assert plan.moves == ()
    assert plan.reason.endswith("lowers the load of worker 0 further, where group 0 alone has 2.45 times the mean")


def test_it_leaves_a_group_that_alone_is_hotter_than_the_gap_and_moves_its_neighbours():
    plan = HOTSPOT.plan(LoadSnapshot(3, groups_of((9, 1, 2), (3,), (3,))))
    assert {move.group for move in plan.moves} == {1, 2}
    assert plan.imbalance_after == pytest.approx(9 / 6)


def test_it_gives_a_hot_key_its_own_route():
    groups = [GroupLoad(0, 0, 10.0, 1000), GroupLoad(1, 1, 2.0, 1000)]
    plan = HOTSPOT.plan(LoadSnapshot(2, groups, [KeyLoad("JFK", 0, 5.5, 8)]), Limits(tolerance=1.3))
    assert moves(plan) == [("JFK", 0, 1)]
    assert plan.state_bytes == 8


def test_a_hot_key_that_fits_nowhere_stays_and_the_rest_of_its_group_goes():
    groups = [GroupLoad(0, 0, 10.0, 1000), GroupLoad(1, 1, 4.0, 1000)]
    plan = HOTSPOT.plan(LoadSnapshot(2, groups, [KeyLoad("JFK", 0, 7.0, 900)]))
    assert moves(plan) == [(0, 0, 1), ("JFK", 0, 0)]
    assert plan.imbalance_after == plan.floor == 1.0
    assert plan.state_bytes == 100


def test_a_key_with_a_route_of_its_own_moves_on_or_home():
    groups = groups_of((1.0, 1.0), (4.0,), (4.0,))
    snapshot = LoadSnapshot(3, [*groups, GroupLoad(9, 0, 6.0, 500)], [KeyLoad("JFK", 9, 5.0, 8, worker=1)])
    plan = HOTSPOT.plan(snapshot)
    assert ("JFK", 1, 0) in moves(plan)
    assert plan.imbalance_after < plan.imbalance_before


def test_it_takes_the_group_with_less_state_for_the_same_relief():
    groups = [GroupLoad(0, 0, 2.0, 1000), GroupLoad(1, 0, 2.0, 10), GroupLoad(2, 0, 2.0, 1000), GroupLoad(3, 1, 2.0, 0)]
    assert moves(HOTSPOT.plan(LoadSnapshot(2, groups))) == [(1, 0, 1)]


def test_it_swaps_where_no_single_move_helps():
    plan = HOTSPOT.plan(LoadSnapshot(2, groups_of((5, 5), (3, 3))))
    assert len(plan.moves) == 2
    assert plan.imbalance_after == 1.0


def test_it_stops_at_the_tolerance():
    snapshot = LoadSnapshot(2, groups_of((1,) * 12, (1,) * 8))
    assert HOTSPOT.plan(snapshot, Limits(tolerance=1.2)).moves == ()
    assert len(HOTSPOT.plan(snapshot, Limits(tolerance=1.1)).moves) == 1
    assert len(HOTSPOT.plan(snapshot, Limits(tolerance=1.0)).moves) == 2


def test_it_says_when_the_bytes_are_too_few():
    plan = HOTSPOT.plan(LoadSnapshot(2, groups_of((1, 1, 1, 1), ())), Limits(max_bytes=100))
    assert len(plan.moves) == 1
    assert plan.reason.endswith("max_bytes allows no further move")


def test_a_new_worker_takes_the_heat():
    plan = HOTSPOT.plan(LoadSnapshot(3, groups_of((4, 4, 1), (1, 1, 1), ())))
    assert {move.source for move in plan.moves if move.group in {0, 1}} == {0}
    assert plan.imbalance_after <= 1.05


@pytest.mark.parametrize(
    ("workers", "key_groups", "exponent"),
    [(4, 256, 0.8), (4, 1024, 1.0), (16, 64, 1.0), (16, 1024, 0.8), (16, 1024, 1.0), (16, 1024, 1.2), (64, 1024, 0.6), (100, 4096, 1.0)],
)
def test_it_comes_near_the_floor_for_at_most_half_of_the_state_that_starting_over_moves(workers, key_groups, exponent):
    snapshot = zipf(workers, key_groups, 100_000, exponent)
    plan, from_scratch = HOTSPOT.plan(snapshot), LPT.plan(snapshot)
    assert plan.imbalance_after <= 1.05 * max(plan.floor, from_scratch.imbalance_after)
    assert plan.state_bytes <= from_scratch.state_bytes / 2


def test_it_reaches_the_floor_of_the_published_case():
    plan = HOTSPOT.plan(zipf(16, 1024, 100_000, 1.0), Limits(tolerance=1.001))
    assert plan.floor == pytest.approx(1.32, abs=0.005)
    assert plan.imbalance_after <= 1.325


def test_it_plans_for_a_thousand_workers():
    plan = HOTSPOT.plan(zipf(1000, 32_768, 200_000, 0.5, 1000))
    assert plan.imbalance_after <= 1.05 * plan.floor


@pytest.mark.parametrize(("field", "value"), [("tolerance", 0.9), ("tolerance", float("nan")), ("max_bytes", -1)])
def test_impossible_limits_are_refused(field, value):
    with pytest.raises(FlowError, match=f"{field} is {value}"):
        Limits(**{field: value})


def test_keys_whose_heat_is_gone_lose_their_routes_with_the_next_plan():
    """Every round another key of the same group is hot; the others are silent."""
    routes: dict[str, int] = {}
    for turn in range(20):
        hot = f"key-{turn}"
        keys = [KeyLoad(key, 0, 0.0, 8, worker) for key, worker in routes.items()]
        groups = [GroupLoad(0, 0, 3.0, 100), GroupLoad(1, 0, 1.0, 100), GroupLoad(2, 1, 1.0, 100)]
        snapshot = LoadSnapshot(2, groups, [*keys, KeyLoad(hot, 0, 2.0, 8)])
        plan = HOTSPOT.plan(snapshot)
        assert plan.imbalance_after < plan.imbalance_before
        routes = {key.key: key.worker for key in carried_out(snapshot, plan).hot_keys if key.worker not in (None, 0)}
        assert len(routes) <= 1
