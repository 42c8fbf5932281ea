"""PID: one dial for the whole dataflow."""

from __future__ import annotations

import pytest

from evenflow.engine.errors import FlowError
from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.pid import PidMemory, PidPolicy


def dataflow(latency: float | None, time: float = 0.0, workers: tuple[int, int] = (4, 2), **settings) -> DataflowSnapshot:
    operators = (
        OperatorFigures("source", 1, source_rate=100),
        OperatorFigures("map", workers[0], latency_ms=None if latency is None else latency / 2),
        OperatorFigures("count", workers[1], latency_ms=None if latency is None else latency / 2),
    )
    goal = {"latency_target_ms": 100, **settings}
    return DataflowSnapshot(operators, (Edge("source", "map"), Edge("map", "count")), PolicySettings(**goal), time)


def test_every_operator_but_the_sources_grows_by_the_same_factor():
    decision, _ = PidPolicy().decide(dataflow(700), PidMemory())
    assert decision.parallelism == {"map": 7, "count": 4}


def test_within_the_band_nothing_changes_whatever_the_time():
    memory = PidMemory()
    for look in range(50):
        decision, memory = PidPolicy().decide(dataflow(20 if look % 2 else 99, 10.0 * look), memory)
        assert not decision.changes


def test_the_integral_goes_on_while_the_error_stays():
    memory, decided = PidMemory(), []
    for look in range(4):
        decision, memory = PidPolicy().decide(dataflow(200, 10.0 * look), memory)
        decided.append(decision.parallelism["map"])
    assert decided == sorted(decided)
    assert decided[-1] > decided[0]


def test_a_latency_far_below_the_target_takes_workers_away():
    memory = PidMemory()
    for look in range(5):
        decision, memory = PidPolicy().decide(dataflow(2, 10.0 * look), memory)
    assert decision.parallelism["map"] < 4


def test_the_integral_stands_still_at_a_bound():
    memory = PidMemory()
    for look in range(100):
        _, memory = PidPolicy().decide(dataflow(1000, 10.0 * look, max_parallelism=8), memory)
    assert memory.integral < 200
    decision, _ = PidPolicy().decide(dataflow(1, 1000.0, (8, 8), max_parallelism=8), memory)
    assert decision.parallelism


def test_the_derivative_answers_to_change_only():
    policy = PidPolicy(proportional=0, integral=0, derivative=10)
    first, memory = policy.decide(dataflow(200, 0.0), PidMemory())
    second, memory = policy.decide(dataflow(400, 10.0), memory)
    third, _ = policy.decide(dataflow(400, 20.0), memory)
    assert (first.parallelism, second.parallelism, third.parallelism) == ({}, {"map": 8, "count": 4}, {})


def test_without_latencies_it_does_nothing_and_says_so():
    decision, _ = PidPolicy().decide(dataflow(None), PidMemory())
    assert (decision.changes, decision.reason) == (False, "no operator's latency is known")


def test_without_a_target_it_says_what_it_needs():
    with pytest.raises(FlowError, match="policy `pid` needs latency_target_ms"):
        PidPolicy().decide(dataflow(100, latency_target_ms=None), PidMemory())
