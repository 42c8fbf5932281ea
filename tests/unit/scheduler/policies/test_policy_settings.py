"""Settings of scaling that can't work are refused when they are made."""

from __future__ import annotations

import math

import pytest

from evenflow.engine.errors import FlowError
from evenflow.scheduler.policies.dataflow.settings import PolicySettings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_parallelism": 0}, "min_parallelism is 0: it must be a whole number, 1 or more"),
        ({"min_parallelism": 8, "max_parallelism": 4}, "max_parallelism is 4, below min_parallelism, which is 8"),
        ({"activation_window": 1.5}, "activation_window is 1.5"),
        ({"slots": True}, "slots is True"),
        ({"latency_target_ms": 0}, "latency_target_ms is 0: it must be more"),
        ({"interval_s": math.nan}, "interval_s is nan"),
        ({"catch_up_s": -1}, "catch_up_s is -1"),
        ({"target_utilisation": 1.2}, "target_utilisation is 1.2: it is a part of a whole, 0 to 1"),
        ({"warm_up_s": None}, "warm_up_s is None"),
        ({"remove_nodes": 2}, "remove_nodes is 0 or 1"),
        ({"remove_nodes": 1, "slots": 2}, "scale in one node at a time"),
    ],
)
def test_setting_that_cannot_work_is_refused_by_name(settings, message):
    with pytest.raises(FlowError) as error:
        PolicySettings(**settings)
    assert message in str(error.value)


def test_bounds_may_be_open():
    assert PolicySettings(max_parallelism=None, max_change=None, slots=0).max_parallelism is None
