"""Conversion of a plan to JSON and to a routing table."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.balancer.plan import BalanceMove, BalancePlan
from evenflow.balancer.policies import named
from evenflow.balancer.snapshot import GroupLoad, KeyLoad, LoadSnapshot
from evenflow.engine.protocol.routing import RoutingTable


def plan_of(*moves: BalanceMove) -> BalancePlan:
    return BalancePlan(moves, 2.5, 1.25, 1.2, 4160, "worker 1 is hot")


def test_json_is_as_documented():
    plan = plan_of(BalanceMove(1, 3, group=0), BalanceMove(1, 2, key="JFK"))
    assert json.loads(plan.to_json()) == {
        "moves": [{"group": 0, "source": 1, "target": 3}, {"key": "JFK", "source": 1, "target": 2}],
        "imbalance_before": 2.5,
        "imbalance_after": 1.25,
        "floor": 1.2,
        "state_bytes": 4160,
        "reason": "worker 1 is hot",
    }


def test_a_composite_key_is_a_list_in_json():
    assert json.loads(plan_of(BalanceMove(1, 2, key=("JFK", 3))).to_json())["moves"] == [{"key": ["JFK", 3], "source": 1, "target": 2}]


def test_a_null_key_moves_as_a_key():
    assert json.loads(plan_of(BalanceMove(1, 2, key=None)).to_json())["moves"] == [{"key": None, "source": 1, "target": 2}]


def test_a_key_whose_source_is_its_target_stays_when_its_group_goes():
    current = RoutingTable(np.array([0, 1], np.uint16))
    table = plan_of(BalanceMove(0, 1, group=0), BalanceMove(0, 0, key=2)).table(current, hash)
    assert table == RoutingTable(np.array([1, 1], np.uint16), {2: 0})


@given(
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
    st.dictionaries(st.integers(0, 31), st.integers(0, 3), max_size=6),
    st.lists(st.integers(0, 50), min_size=32, max_size=32),
)
def test_the_table_of_a_plan_has_the_load_that_the_plan_predicts(groups, routes, loads):
    current = RoutingTable(np.array(groups, np.uint16), routes)
    of_groups = [float(sum(loads[key] for key in range(group, 32, 8))) for group in range(8)]
    keys = sorted({*current.keys, *range(0, 32, 5)})
    snapshot = LoadSnapshot(
        4,
        [GroupLoad(group, worker, of_groups[group]) for group, worker in enumerate(groups)],
        [KeyLoad(key, key % 8, float(loads[key]), 0, current.keys.get(key)) for key in keys],
    )
    plan = named("hotspot").plan(snapshot)
    owners = plan.table(current, hash).owners(np.arange(32).astype(np.uint64))
    by_worker = np.bincount(owners, np.array(loads, float), 4)
    assert np.isclose(by_worker.max(), plan.imbalance_after * by_worker.mean()) or not by_worker.any()
