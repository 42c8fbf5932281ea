"""Latency violations: three in a row, the slowest operators."""

from __future__ import annotations

from itertools import pairwise

import pytest

from evenflow.engine.errors import FlowError
from evenflow.scheduler.policies.base import settled
from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.latency import LatencyMemory, LatencyPolicy


def working(name: str, latency_ms: float, through: float = 100, **others) -> OperatorFigures:
    return OperatorFigures(name, 2, observed_processing_rate=through, observed_output_rate=through, latency_ms=latency_ms, **others)


def dataflow(*operators: OperatorFigures, node_loads: dict[str, float] | None = None, **settings) -> DataflowSnapshot:
    source = OperatorFigures("source", 1, source_rate=300, latency_ms=5000)
    all_of_it = (source, *operators)
    edges = tuple(Edge(a.name, b.name) for a, b in pairwise(all_of_it))
    return DataflowSnapshot(all_of_it, edges, PolicySettings(**{"latency_target_ms": 5100, **settings}), node_loads=node_loads or {})


def test_it_acts_at_the_third_violation_in_a_row_only():
    late, fine = dataflow(working("map", 200)), dataflow(working("map", 50))
    memory, decided = LatencyMemory(), []
    for snapshot in (late, late, fine, late, late, late, late):
        decision, memory = LatencyPolicy().decide(snapshot, memory)
        decided.append(decision.parallelism)
    assert decided == [{}, {}, {}, {}, {}, {"map": 6}, {}]


def test_the_slowest_operators_get_workers():
    snapshot = dataflow(working("map", 50), working("filter", 300, through=50), working("count", 100, kind="window"))
    assert settled(LatencyPolicy(), snapshot).parallelism == {"filter": 12}
    assert settled(LatencyPolicy(slowest=2), snapshot).parallelism == {"filter": 12, "count": 4}


def test_a_source_only_waits_and_gets_none():
    assert "source" not in settled(LatencyPolicy(slowest=5), dataflow(working("map", 200))).parallelism


def test_only_operators_before_a_late_sink_are_looked_at():
    operators = (
        OperatorFigures("source", 1, source_rate=300),
        working("slow", 90), working("late", 200), working("fast", 1),
    )  # fmt: skip
    edges = (Edge("source", "slow"), Edge("source", "fast"), Edge("fast", "late"))
    snapshot = DataflowSnapshot(operators, edges, PolicySettings(latency_target_ms=100))
    assert settled(LatencyPolicy(slowest=3), snapshot).parallelism == {"fast": 6, "late": 6}


@pytest.mark.parametrize(("load", "nodes"), [(0.6, 0), (0.8, 1)])
def test_a_node_is_asked_for_when_the_nodes_are_busy(load, nodes):
    decision = settled(LatencyPolicy(), dataflow(working("map", 200), node_loads={"a": load, "b": load}))
    assert (decision.parallelism, decision.add_nodes) == ({"map": 6}, nodes)


def test_without_a_target_it_says_what_it_needs():
    with pytest.raises(FlowError, match="policy `latency` needs latency_target_ms"):
        LatencyPolicy().decide(dataflow(latency_target_ms=None), LatencyMemory())
