"""Operators with one worker as the bottleneck at enough total capacity."""

from __future__ import annotations

import pytest

from evenflow.scheduler.policies.dataflow.figures import InstanceFigures, OperatorFigures
from evenflow.scheduler.policies.dataflow.skew import hot_operators, hottest_share
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot


def test_load_is_useful_time_not_records():
    slow, fast = InstanceFigures(50, observed_processing_rate=50), InstanceFigures(200, observed_processing_rate=50)
    assert hottest_share(OperatorFigures.summed("o", [slow, fast])) == pytest.approx(0.8)


@pytest.mark.parametrize("instances", [[InstanceFigures(50, observed_processing_rate=50)], [InstanceFigures()] * 2])
def test_one_instance_or_unknown_ones_have_no_skew(instances):
    assert hottest_share(OperatorFigures.summed("o", instances)) is None


@pytest.mark.parametrize("keyed", [True, False])
def test_only_operators_with_keys_are_rebalanced(keyed):
    hot, cold = InstanceFigures(100, observed_processing_rate=90), InstanceFigures(100, observed_processing_rate=30)
    snapshot = DataflowSnapshot((OperatorFigures.summed("o", [hot, cold], keyed=keyed),))
    assert bool(hot_operators(snapshot, {"o": 1.6}, tolerance=1.1)) == keyed
