"""The floor of an operator's imbalance with its hottest key split: the next hottest key is what one worker must take."""

from __future__ import annotations

import pytest

from evenflow.scheduler.load.metrics import OperatorLoad

WORKERS = {"join-0": 0.75, "join-1": 0.25, "join-2": 0.0, "join-3": 0.0}


def load(*hot_keys, can_split=True):
    return OperatorLoad(WORKERS, {}, hot_keys, 100, can_split)


def test_next_hottest_key_makes_the_floor():
    found = load(("JFK", 60), ("LAX", 30))
    assert (found.floor, found.floor_with_split) == pytest.approx((2.4, 1.2))
    assert "floor 2.40, 1.20 with the hottest key split" in str(found)


@pytest.mark.parametrize("hot_keys", [(("JFK", 60),), (("JFK", 60), ("LAX", 10))], ids=["alone", "beside a cold one"])
def test_without_another_hot_key_all_can_be_even(hot_keys):
    assert load(*hot_keys).floor_with_split == 1.0


def test_operator_whose_keys_can_not_be_split_has_one_floor():
    found = load(("JFK", 60), ("LAX", 30), can_split=False)
    assert found.floor_with_split == found.floor
    assert "split" not in str(found)
