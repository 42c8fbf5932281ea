"""Leaving workers lose all keys, joining workers get as many as the others, and no other keys move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.balancer.evacuation import evacuated, highest_worker, spread
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.state.hashing import group_of


@st.composite
def tables(draw, most=6):
    """Draw a table of 16 or 64 groups, with own routes for a few keys."""
    workers = draw(st.integers(1, most))
    count = draw(st.sampled_from((16, 64)))
    groups = draw(st.lists(st.integers(0, workers - 1), min_size=count, max_size=count))
    keys = draw(st.dictionaries(st.integers(0, 2**64 - 1), st.integers(0, workers - 1), max_size=5))
    return RoutingTable(np.array(groups, np.uint16), keys)


@given(tables(), st.integers(1, 5), st.data())
def test_workers_that_leave_own_nothing_and_those_that_stay_keep_all_they_had(table, workers, data):
    loads = np.array(data.draw(st.lists(st.floats(0, 10), min_size=len(table), max_size=len(table))))
    after = evacuated(table, workers, loads)
    staying = table.groups < workers
    assert highest_worker(after) < workers
    assert after.groups[staying].tolist() == table.groups[staying].tolist()
    assert all(after.owners(np.array([key], np.uint64))[0] == worker for key, worker in table.keys.items() if worker < workers)


@given(tables(), st.integers(1, 5), st.data())
def test_the_load_of_those_that_leave_is_shared_out_as_even_as_the_longest_first_rule_promises(table, workers, data):
    loads = np.array(data.draw(st.lists(st.floats(0, 10), min_size=len(table), max_size=len(table))))
    after = evacuated(table, workers, loads)
    leaving = table.groups >= workers
    weights = loads + max(loads.sum(), 1.0) / len(loads) * 1e-3
    before_held = np.bincount(table.groups[~leaving], weights[~leaving], minlength=workers)
    held = np.bincount(after.groups, weights, minlength=workers)
    largest = weights[leaving].max() if leaving.any() else 0.0
    assert held.max() <= max(before_held.max(), weights.sum() / workers + largest) + 1e-9


def test_groups_of_unknown_load_are_shared_out_by_number():
    table = RoutingTable(np.repeat(np.arange(4), 4).astype(np.uint16))
    after = evacuated(table, 2, np.zeros(16))
    assert np.bincount(after.groups).tolist() == [8, 8]


@given(tables(), st.integers(1, 9))
def test_spread_moves_groups_to_workers_that_have_too_few_and_no_more_than_they_need(table, more):
    workers = max(highest_worker(table) + 1, more)
    after = spread(table, workers)
    counts, before = np.bincount(after.groups, minlength=workers), np.bincount(table.groups, minlength=workers)
    least = len(table) // workers
    assert counts.min() >= least
    moved = table.groups != after.groups
    assert moved.sum() == np.maximum(least - before, 0).sum()
    assert all(before[worker] < least for worker in set(after.groups[moved].tolist()))


@given(tables())
def test_a_table_that_is_even_stays_as_it_is(table):
    even = spread(table, highest_worker(table) + 1)
    assert spread(even, highest_worker(table) + 1) == even


@pytest.mark.parametrize(("route", "highest"), [({}, 1), ({7: 3}, 3)])
def test_highest_worker_counts_keys_with_routes_of_their_own(route, highest):
    assert highest_worker(RoutingTable(np.array([0, 1, 0, 0], np.uint16), route)) == highest


def test_key_with_a_route_to_a_worker_that_leaves_goes_to_the_worker_of_its_group():
    table = RoutingTable(np.zeros(4, np.uint16), {7: 2, 8: 1})
    after = evacuated(table, 2, np.zeros(4))
    assert dict(after.keys) == {8: 1}
    assert after.owners(np.array([7], np.uint64)).tolist() == [after.groups[group_of(np.array([7], np.uint64), 4)[0]]]
