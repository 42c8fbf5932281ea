from __future__ import annotations

import numpy as np
import pytest

from evenflow.balancer.canary import canary, emptied, turned
from evenflow.engine.protocol.routing import RoutingTable, even_table
from evenflow.engine.protocol.split_route import SplitRoute


def share(table, workers, loads):
    taken = np.isin(table.groups, workers)
    return float(loads[taken].sum() / loads.sum())


@pytest.mark.parametrize("wanted", [0.01, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("skew", [0.0, 1.0, 1.5])
def test_the_new_workers_get_about_the_share_of_the_load(wanted, skew):
    random = np.random.default_rng(7)
    loads = random.permutation(1.0 / np.arange(1, 1025) ** skew)
    table = canary(even_table(1024, 4), [4], wanted, loads)
    mean = loads.mean() / loads.sum()
    assert abs(share(table, [4], loads) - wanted) <= max(0.25 * wanted, 2 * mean)


def test_several_new_workers_get_groups_in_turn():
    loads = np.ones(64)
    table = canary(even_table(64, 2), [2, 3], 0.25, loads)
    assert np.bincount(table.groups)[2:].tolist() == [8, 8]


def test_at_least_one_group_moves_though_each_is_more_than_the_share():
    loads = np.array([10.0, 30.0])
    assert canary(even_table(2, 2), [2], 0.01, loads).groups.tolist() == [2, 1]
    assert np.count_nonzero(canary(even_table(8, 2), [2], 0.05, np.zeros(8)).groups == 2) == 1


@pytest.mark.parametrize(("loads", "group"), [([0, 9, 0, 4, 0, 5], 3), ([0, 1, 0, 0, 0, 1], 1), ([0, 6, 0, 0, 0, 4], 5)])
def test_the_least_of_a_few_hot_groups_is_the_canary(loads, group):
    after = canary(even_table(6, 2), [2], 0.01, np.array(loads, float)).groups
    assert [g for g in np.flatnonzero(after == 2) if loads[g]] == [group]


def test_a_group_with_most_of_the_load_is_no_canary():
    after = canary(even_table(6, 2), [2], 0.01, np.array([0.0, 9, 0, 0, 0, 0])).groups
    assert after[1] != 2


def test_keys_with_a_route_of_their_own_and_split_keys_stay():
    table = RoutingTable(np.zeros(8, np.uint16), {3: 1}, {5: SplitRoute(0, (1,), "left")})
    after = canary(table, [2], 0.9, np.ones(8))
    assert after.keys[3] == 1
    assert after.splits[5].workers == (0, 1)


def test_an_emptied_worker_owns_nothing_and_shares_nothing():
    table = RoutingTable(
        np.array([0, 1, 2, 0], np.uint16), {9: 0, 10: 2}, {5: SplitRoute(1, (0, 2), "left"), 8: SplitRoute(0, (1,), "left")}
    )
    after = emptied(table, 0, 3)
    assert 0 not in after.workers
    assert after.splits[5].workers == (1, 2)
    assert 8 not in after.splits
    assert emptied(table, 0, 3).groups.tolist() == [3, 1, 2, 3]


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_load_is_as_even_as_before_when_all_workers_have_been_replaced_in_turn(workers):
    random = np.random.default_rng(3)
    before = RoutingTable(random.integers(0, workers, 64).astype(np.uint16), {5: 0, 9: workers - 1})
    table = canary(before, [workers], 0.2, random.random(64))
    for worker in range(workers):
        table = emptied(table, worker, worker - 1 if worker else workers)
    after = turned(table, before, workers)
    assert after.groups.tolist() == [(owner - 1) % workers for owner in before.groups.tolist()]
    hashes = np.array([5, 9], np.uint64)
    assert after.owners(hashes).tolist() == [(owner - 1) % workers for owner in before.owners(hashes).tolist()]
