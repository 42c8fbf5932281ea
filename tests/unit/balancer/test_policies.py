"""The balancers that jobs use, each by its promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from load_snapshots import loads_after, snapshots

from evenflow.balancer.policies import POLICIES, named
from evenflow.balancer.snapshot import GroupLoad, KeyLoad, LoadSnapshot, imbalance
from evenflow.engine.errors import RequestError


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


@pytest.mark.parametrize("name", POLICIES)
@given(snapshots())
def test_no_placement_of_single_owners_is_better_than_the_floor(name, snapshot):
    assert named(name).plan(snapshot).imbalance_after >= snapshot.floor - 1e-9


def test_an_unknown_balancer_is_answered_with_the_known_ones():
    with pytest.raises(RequestError, match="'best' is not a balancer: use one of hotspot, lpt"):
        named("best")


def test_longest_first_keeps_grahams_bound_in_his_worst_case():
    loads = [5, 5, 4, 4, 3, 3, 3]
    plan = named("lpt").plan(LoadSnapshot(3, [GroupLoad(g, 0, float(load)) for g, load in enumerate(loads)]))
    assert plan.imbalance_after * sum(loads) / 3 == pytest.approx(11)
    assert pytest.approx(4 / 3 - 1 / 9) == 11 / 9


def test_longest_first_opens_a_group_that_is_hotter_than_a_worker_should_be():
    plan = named("lpt").plan(LoadSnapshot(2, [GroupLoad(0, 0, 4.0)], [KeyLoad("JFK", 0, 2.0)]))
    assert plan.imbalance_after == 1.0
