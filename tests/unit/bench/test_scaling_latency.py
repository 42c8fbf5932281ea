from __future__ import annotations

import numpy as np
import pytest

from evenflow.bench.scaling_latency import RESTART, SPARES, STEADY, Scaling, doubts, scaling_of, verdicts
from evenflow.bench.trace import TRACE


def scaling(largest, steady=5.0, steady_most=8.0):
    return Scaling(steady, steady_most, largest, 10.0, 1.0, [], 0.0)


def all_ways(largest, restart=1000.0):
    return {**{f"2 to 3, {name}": scaling(largest) for name in SPARES}, f"2 to 3, {RESTART}": scaling(restart)}


def test_steady_is_what_came_before_and_the_largest_what_was_due_meanwhile():
    trace = np.zeros(20_000, TRACE)
    trace["created"] = np.arange(20_000) * 1_000_000
    trace["latency"] = 4.0
    trace["latency"][10_500] = 30.0
    found = scaling_of(trace, 10.0, 2.0, 0.0)
    assert (found.steady, found.steady_most, found.largest) == (pytest.approx(4.0), pytest.approx(4.0), pytest.approx(31.0))
    assert STEADY < 10.0


@pytest.mark.parametrize(("largest", "met"), [(9.0, [True, True]), (11.0, [False, True]), (16.0, [False, False])])
def test_the_largest_latency_may_be_twice_the_steady_p99_and_three_times_with_a_new_process(largest, met):
    assert [verdict.met for verdict in verdicts(all_ways(largest)) if "p99" in verdict.claim] == met


def test_a_restart_is_ten_times_as_bad():
    assert [verdict.met for verdict in verdicts(all_ways(9.0, restart=80.0)) if RESTART in verdict.claim] == [False, False]


def test_what_happens_without_a_scaling_too_is_not_decided():
    spare, process = (f"2 to 3, {name}" for name in SPARES)
    assert doubts(all_ways(9.0)) == doubts(all_ways(12.0)) == []
    scalings = {spare: scaling(12.0, steady_most=13.0), process: scaling(14.0, steady_most=20.0)}
    assert doubts(scalings) == [f"{spare}: before it, too, the largest latency was 2.6 times the p99: not decided"]
