from __future__ import annotations

import pytest

from evenflow.bench.scaling_hot import Hot
from evenflow.bench.scaling_hot import verdicts as verdicts_on_ray
from evenflow.bench.scaling_skew import SHARES, Skewed, simulate, verdicts


@pytest.mark.parametrize(("share", "need"), [(0.2, 2.6), (0.5, 1.8), (0.7, 1.3)])
def test_the_balancer_reaches_a_target_that_ds2_alone_misses(share, need):
    assert simulate(share, need, balance=False) < 0.95
    assert simulate(share, need, balance=True) == pytest.approx(1.0)


def test_above_the_floor_the_hot_keys_worker_is_the_limit():
    assert not Skewed(0.5, 2.6, 0.6, 0.8).allowed
    assert simulate(0.5, 2.6, balance=True) == pytest.approx(1 / (0.5 * 2.6), abs=0.01)


def test_streams_above_the_floor_count_for_no_target():
    within = [Skewed(share, 1.0, 0.8, 1.0) for share in SHARES]
    above = [Skewed(share, 9.0, 0.1, 0.2) for share in SHARES]
    assert all(verdict.met for verdict in verdicts([*within, *above]))


def test_a_share_at_which_ds2_alone_reaches_all_targets_misses_the_first_one():
    streams = [Skewed(share, 1.0, 1.0 if share == 0.5 else 0.8, 1.0) for share in SHARES]
    assert [verdict.met for verdict in verdicts(streams)] == [False, True]


def test_on_ray_the_worst_of_the_shares_decides():
    good, bad = Hot(0.8, 1.0, (2, 2), 10, (), 0.0), Hot(0.99, 0.9, (2, 2), 10, (), 0.0)
    assert [verdict.measured for verdict in verdicts_on_ray({0.2: good, 0.5: bad})] == [0.99, 0.9]
