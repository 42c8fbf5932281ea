"""The fewest workers that keep a latency target."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.engine.errors import FlowError
from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.jackson import Station, time_under_way
from evenflow.scheduler.policies.queueing import QueueingPolicy, network

STATIONS = st.lists(st.tuples(st.floats(0.5, 5), st.floats(0.2, 3)), min_size=1, max_size=3)
"""(service rate of a worker, selectivity)"""


def dataflow(demand: float, stations: list[tuple[float, float]], workers: dict[str, int] | None = None, **settings) -> DataflowSnapshot:
    operators = [OperatorFigures("source", 1, source_rate=demand)]
    for index, (rate, factor) in enumerate(stations):
        count = (workers or {}).get(f"o{index}", 1)
        operators.append(OperatorFigures(f"o{index}", count, true_processing_rate=rate * count, true_output_rate=rate * count * factor))
    edges = tuple(Edge(a.name, b.name) for a, b in pairwise(operators))
    return DataflowSnapshot(tuple(operators), edges, PolicySettings(**settings))


def wanted(snapshot: DataflowSnapshot, processors: int | None = None) -> dict[str, int]:
    return {**snapshot.parallelism, **QueueingPolicy(processors).decide(snapshot, None)[0].parallelism}


@settings(deadline=None)
@given(st.floats(0.5, 5), STATIONS)
def test_greedy_shares_processors_out_as_well_as_any_way(demand, stations):
    places, _ = network(dataflow(demand, stations))
    total = sum(place.fewest for place in places) + 3
    decided = wanted(dataflow(demand, stations), total)
    choices = (
        [place.fewest + more for place, more in zip(places, extra, strict=True)]
        for extra in product(range(4), repeat=len(places))
        if sum(extra) == 3
    )
    best = min(time_under_way(places, choice, demand) for choice in choices)
    assert time_under_way(places, [decided[place.name] for place in places], demand) == pytest.approx(best)


@given(st.floats(0.5, 5), STATIONS, st.floats(1.1, 5))
def test_decision_keeps_the_target_and_is_a_fixed_point(demand, stations, slack):
    places, _ = network(dataflow(demand, stations))
    service = sum(place.arriving / demand / place.rate for place in places)
    target = service * slack * 1000
    decided = wanted(dataflow(demand, stations, latency_target_ms=target))
    assert time_under_way(places, [decided[place.name] for place in places], demand) * 1000 <= target
    assert wanted(dataflow(demand, stations, decided, latency_target_ms=target)) == decided


@given(st.floats(0.5, 5), st.floats(0.5, 5), st.floats(1, 4), st.floats(1.1, 5))
def test_more_demand_never_takes_fewer_workers(rate, demand, factor, slack):
    target = slack / rate * 1000
    fewer = wanted(dataflow(demand, [(rate, 1.0)], latency_target_ms=target))
    assert wanted(dataflow(demand * factor, [(rate, 1.0)], latency_target_ms=target))["o0"] >= fewer["o0"]


def test_a_target_below_the_service_time_is_in_the_reason():
    decision, _ = QueueingPolicy().decide(dataflow(10, [(4, 1.0)], latency_target_ms=100), None)
    assert decision.parallelism == {"o0": 3}
    assert "100 ms can't be reached" in decision.reason


def test_too_few_processors_are_in_the_reason():
    decision, _ = QueueingPolicy(processors=2).decide(dataflow(10, [(4, 1.0)]), None)
    assert decision.parallelism == {"o0": 3}
    assert "2 processors are too few" in decision.reason


def test_bounds_that_leave_too_few_workers_end_the_search():
    decision, _ = QueueingPolicy().decide(dataflow(10, [(4, 1.0), (4, 1.0)], latency_target_ms=2000, max_parallelism=2), None)
    assert decision.parallelism == {"o0": 2, "o1": 2}
    assert "queues grow without end" in decision.reason


def test_without_a_goal_it_says_what_it_needs():
    with pytest.raises(FlowError, match="policy `queueing` needs latency_target_ms, or processors"):
        QueueingPolicy().decide(dataflow(10, [(4, 1.0)]), None)


def test_the_processed_rate_stands_in_for_an_unknown_arrival_rate():
    operators = (
        OperatorFigures("source", 1, source_rate=10),
        OperatorFigures("mute", 1),
        OperatorFigures("o", 1, true_processing_rate=4, observed_processing_rate=3),
    )
    snapshot = DataflowSnapshot(operators, (Edge("source", "mute"), Edge("mute", "o")))
    assert network(snapshot) == ((Station("o", 3, 4),), ("mute",))
