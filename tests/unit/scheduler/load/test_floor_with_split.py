"""The floor of an operator's imbalance with its hottest key split: it depends on the next hottest key."""

from __future__ import annotations

import pytest

from evenflow.scheduler.load.metrics import JobMetrics, OperatorLoad
from evenflow.scheduler.load.window import WorkerWindow

WORKERS = {"join-0": 0.75, "join-1": 0.25, "join-2": 0.0, "join-3": 0.0}


def load(*hot_keys, can_split=True):
    return OperatorLoad(WORKERS, {}, hot_keys, 100, can_split)


def test_next_hottest_key_makes_the_floor():
    found = load(("JFK", 60), ("LAX", 30))
    assert (found.floor, found.floor_with_split) == pytest.approx((2.4, 1.2))
    assert "floor 2.40, 1.20 with the hottest key split" in str(found)


def test_load_says_which_part_of_a_hot_key_came_from_the_left():
    found = OperatorLoad(WORKERS, {}, (("JFK", 60), ("LAX", 30)), 100, can_split=True, hot_left=(50, 0))
    assert "'JFK' 60.0% (50.0% from the left), 'LAX' 30.0% (0.0% from the left)" in str(found)


@pytest.mark.parametrize("windows", [1, 2])
def test_metrics_add_up_what_came_from_the_left(windows):
    metrics = JobMetrics({"join-0": "join"})
    for start in range(2):
        metrics.add(WorkerWindow("join-0", float(start), 1.0, keyed_records=10, hot_keys=(("JFK", 6), ("LAX", 2)), hot_left=(5, 0)))
    found = metrics.load("join", windows)
    assert found.hot_keys == (("JFK", 6 * windows), ("LAX", 2 * windows))
    assert found.hot_left == (5 * windows, 0)


@pytest.mark.parametrize("hot_keys", [(("JFK", 60),), (("JFK", 60), ("LAX", 10))], ids=["alone", "with a cold one"])
def test_without_another_hot_key_all_can_be_even(hot_keys):
    assert load(*hot_keys).floor_with_split == 1.0


def test_key_that_is_split_makes_no_floor():
    found = OperatorLoad(WORKERS, {}, (("JFK", 60), ("LAX", 30)), 100, can_split=True, split=("JFK",))
    assert (found.floor, found.floor_with_split) == pytest.approx((1.2, 1.0))
    assert "'JFK' 60.0%, split" in str(found)


def test_operator_whose_keys_can_not_be_split_has_one_floor():
    found = load(("JFK", 60), ("LAX", 30), can_split=False)
    assert found.floor_with_split == found.floor
    assert "split" not in str(found)
