"""Dhalion: symptoms, diagnoses, resolvers and the blacklist."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from evenflow.scheduler.policies.dataflow.figures import InstanceFigures, OperatorFigures
from evenflow.scheduler.policies.dataflow.settings import DEFAULTS, PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.dhalion import Dhalion, DhalionMemory, diagnose, scaled_up, slow_operator


def dataflow(*operators: OperatorFigures, time: float = 0.0, settings: PolicySettings = DEFAULTS) -> DataflowSnapshot:
    edges = tuple(Edge(a.name, b.name) for a, b in pairwise(operators))
    return DataflowSnapshot(operators, edges, settings, time)


def source(waits: float) -> OperatorFigures:
    return OperatorFigures("source", 1, source_rate=100, backpressure=waits)


def instances(queues: list[float], rates: list[float]) -> OperatorFigures:
    each = [InstanceFigures(observed_processing_rate=rate, queue_records=queue) for queue, rate in zip(queues, rates, strict=True)]
    return OperatorFigures.summed("count", each)


@pytest.mark.parametrize(
    ("workers", "backpressure", "wanted"),
    [(2, 0.5, 4), (2, 0.0, 2), (3, 0.25, 4), (1, 0.9, 5), (4, 1.0, 20), (2, 0.8, 10)],
)
def test_growth_is_what_was_held_back_over_what_went_through_at_most_fourfold(workers, backpressure, wanted):
    assert scaled_up(workers, backpressure) == wanted


def test_the_slow_operator_is_the_last_one_that_is_waited_for():
    slow = dataflow(source(0.6), OperatorFigures("parse", 2, backpressure=1.0), OperatorFigures("count", 2), OperatorFigures("sink", 1))
    assert slow_operator(slow) == "count"


def test_the_operator_that_holds_back_more_is_the_first_of_two_slow_ones():
    operators = (OperatorFigures("left", 1, backpressure=0.2), OperatorFigures("right", 1, backpressure=0.6))
    operators += (OperatorFigures("a", 1), OperatorFigures("b", 1))
    assert slow_operator(DataflowSnapshot(operators, (Edge("left", "a"), Edge("right", "b")))) == "b"


@pytest.mark.parametrize(
    ("operator", "diagnosis"),
    [
        (instances([50, 50, 55], [10, 10, 10]), "underprovisioned"),
        (instances([500, 5, 5], [30, 10, 10]), "skew"),
        (instances([500, 5, 5], [9, 10, 10]), "slow instance"),
        (replace(instances([500, 5, 5], [30, 10, 10]), keyed=False), "underprovisioned"),
        (OperatorFigures("count", 3), "underprovisioned"),
    ],
)
def test_diagnosis_comes_from_comparing_the_instances(operator, diagnosis):
    assert diagnose(operator) == diagnosis


def test_skew_asks_for_a_rebalance_and_if_that_did_not_help_for_workers():
    hot = instances([500, 5, 5], [30, 10, 10])
    first, memory = Dhalion().decide(dataflow(source(0.5), hot), DhalionMemory())
    assert (first.parallelism, first.rebalance) == ({}, ("count",))
    second, memory = Dhalion().decide(dataflow(source(0.5), hot, time=10), memory)
    assert (second.parallelism, second.rebalance) == ({"count": 6}, ())
    assert [entry.diagnosis for entry in memory.blacklist] == ["skew"]


def test_one_operator_at_a_time():
    decision, _ = Dhalion().decide(
        dataflow(source(0.5), OperatorFigures("parse", 1, backpressure=0.5), OperatorFigures("count", 1)), DhalionMemory()
    )
    assert decision.parallelism == {"count": 2}


def test_an_idle_operator_gives_workers_back_the_largest_first():
    idle = (OperatorFigures("parse", 4, observed_processing_rate=100), OperatorFigures("count", 10, observed_processing_rate=100))
    decision, _ = Dhalion().decide(dataflow(source(0.0), *idle), DhalionMemory())
    assert decision.parallelism == {"count": 8}


def test_an_operator_with_work_waiting_gives_none_back():
    waiting = OperatorFigures("count", 10, observed_processing_rate=100, queue_records=50)
    assert not Dhalion().decide(dataflow(source(0.0), waiting), DhalionMemory())[0].changes


def test_taking_workers_that_were_needed_is_on_the_blacklist_until_it_expires():
    policy = Dhalion(blacklist="100s")
    idle = OperatorFigures("count", 5, observed_processing_rate=100)
    fewer = replace(idle, parallelism=4)
    decision, memory = policy.decide(dataflow(source(0.0), idle), DhalionMemory())
    assert decision.parallelism == {"count": 4}
    back, memory = policy.decide(dataflow(source(0.2), fewer, time=10), memory)
    assert back.parallelism == {"count": 5}
    stays, memory = policy.decide(dataflow(source(0.0), idle, time=20), memory)
    assert not stays.changes
    again, _ = policy.decide(dataflow(source(0.0), idle, time=130), memory)
    assert again.parallelism == {"count": 4}


def test_workers_that_did_not_help_are_not_asked_for_again():
    settings = PolicySettings(max_parallelism=4)
    _, memory = Dhalion().decide(dataflow(source(0.5), OperatorFigures("count", 2), settings=settings), DhalionMemory())
    useless = dataflow(source(0.5), OperatorFigures("count", 4), time=10, settings=settings)
    decision, memory = Dhalion().decide(useless, memory)
    assert not decision.changes
    assert [entry.workers for entry in memory.blacklist] == [4]
