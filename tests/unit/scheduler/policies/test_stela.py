"""Stela: effective throughput percentage, on linear, star and diamond dataflows."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.errors import FlowError
from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.stela import Stela, effective_throughput, flow_of, node_sums


def dataflow(rates: dict[str, float], edges: str, demand: float, nodes: dict[str, str] | None = None, **settings) -> DataflowSnapshot:
    """Return a dataflow. `rates`: of each operator's one instance. `edges`: `a>b b>c`. Operators without inputs get `demand`."""
    pairs = tuple(Edge(*pair.split(">")) for pair in edges.split())
    fed = {edge.target for edge in pairs}
    operators = tuple(
        OperatorFigures(
            name, 1, source_rate=None if name in fed else demand, true_processing_rate=rate, true_output_rate=rate,
            nodes=(nodes[name],) if nodes else (),
        )
        for name, rate in rates.items()
    )  # fmt: skip
    return DataflowSnapshot(operators, pairs, PolicySettings(**settings))


def etp(snapshot: DataflowSnapshot) -> dict[str, float]:
    return effective_throughput(snapshot, flow_of(snapshot, snapshot.parallelism))


def wanted(snapshot: DataflowSnapshot, slots: int | None = None) -> dict[str, int]:
    return dict(Stela(slots=slots).decide(snapshot, None)[0].parallelism)


def throughput(snapshot: DataflowSnapshot, workers: dict[str, int]) -> float:
    flow = flow_of(snapshot, {**snapshot.parallelism, **workers})
    return sum(flow.processed[name] for name in snapshot.sinks)


def linear(**settings) -> DataflowSnapshot:
    return dataflow({"spout": 1000, "a": 300, "b": 500, "sink": 1000}, "spout>a a>b b>sink", 1000, **settings)


def star() -> DataflowSnapshot:
    rates = {"left": 500, "right": 500, "hub": 400, "one": 1000, "two": 300}
    return dataflow(rates, "left>hub right>hub hub>one hub>two", 500)


def diamond() -> DataflowSnapshot:
    return dataflow({"spout": 1000, "a": 400, "b": 1000, "sink": 2000}, "spout>a spout>b a>sink b>sink", 1000)


def test_in_a_line_the_bottleneck_before_the_sink_counts():
    assert etp(linear()) == {"spout": 0.0, "a": 1.0, "b": 1.0, "sink": 1.0}
    assert wanted(linear(), 1) == {"a": 2}
    assert wanted(linear(), 3) == {"a": 3, "b": 2}


def test_in_a_star_ways_through_a_congested_operator_do_not_count():
    assert etp(star())["hub"] == pytest.approx(400 / 700)
    assert etp(star())["left"] == 0.0
    assert wanted(star(), 1) == {"hub": 2}


def test_in_a_diamond_a_sink_that_is_reached_twice_counts_once():
    assert etp(diamond()) == {"spout": 1.0, "a": 1.0, "b": 1.0, "sink": 1.0}
    assert wanted(diamond(), 1) == {"a": 2}


@st.composite
def layered(draw) -> DataflowSnapshot:
    """Draw three layers of operators, every one fed by some of the layer before."""
    layers = [[f"{layer}{i}" for i in range(draw(st.integers(1, 3)))] for layer in "abc"]
    edges = []
    for before, after in pairwise(layers):
        edges += [f"{source}>{name}" for name in after for source in sorted(draw(st.sets(st.sampled_from(before), min_size=1)))]
    rates = {name: draw(st.floats(1, 1000)) for layer in layers for name in layer}
    return dataflow(rates, " ".join(edges), draw(st.floats(1, 1000)))


@given(layered())
def test_etp_is_a_part_of_the_whole(snapshot):
    assert all(0 <= part <= 1 + 1e-9 for part in etp(snapshot).values())


@given(layered(), st.integers(0, 5))
def test_every_slot_is_filled_while_an_operator_is_congested(snapshot, slots):
    decided = wanted(snapshot, slots)
    added = sum(decided[name] - 1 for name in decided)
    flow = flow_of(snapshot, {**snapshot.parallelism, **decided})
    assert added == slots or (added < slots and not flow.congested)


@given(layered(), st.integers(1, 5))
def test_throughput_never_falls_by_scaling_out(snapshot, slots):
    assert throughput(snapshot, wanted(snapshot, slots)) >= throughput(snapshot, {}) - 1e-6


@pytest.mark.parametrize("topology", [linear, star, diamond])
def test_workers_where_etp_is_highest_bring_more_than_workers_in_turn(topology):
    snapshot = topology()
    in_turn = dict.fromkeys(snapshot.order[:3], 2)
    assert throughput(snapshot, wanted(snapshot, 3)) > throughput(snapshot, in_turn)


def test_unasked_it_adds_one_worker_while_an_operator_is_congested():
    assert wanted(linear()) == {"a": 2}
    assert wanted(dataflow({"spout": 1000, "sink": 900}, "spout>sink", 1000)) == {}


def test_an_operator_at_its_bound_is_passed_over():
    assert wanted(linear(max_parallelism=1), 1) == {}


def test_slots_of_a_new_node_are_the_instances_of_an_old_one():
    nodes = {"spout": "n1", "a": "n1", "b": "n2", "sink": "n2"}
    four = dataflow({"spout": 1000, "a": 300, "b": 500, "sink": 1000}, "spout>a a>b b>sink", 1000, nodes)
    decision, _ = Stela(add_nodes=1).decide(four, None)
    assert sum(workers - 1 for workers in decision.parallelism.values()) == 2
    assert decision.add_nodes == 1


def test_the_node_with_the_lowest_sum_goes_and_its_instances_with_it():
    nodes = {"spout": "n1", "a": "n2", "b": "n2", "sink": "n3"}
    snapshot = dataflow({"spout": 1000, "a": 300, "b": 500, "sink": 1000}, "spout>a a>b b>sink", 1000, nodes)
    assert node_sums(snapshot) == {"n1": 0.0, "n3": 1.0, "n2": 2.0}
    decision, _ = Stela(remove_nodes=1).decide(snapshot, None)
    assert (decision.remove_node, decision.parallelism) == ("n1", {})
    assert [tuple(move) for move in decision.relocate] == [("spout", "n1", "n3")]


@pytest.mark.parametrize("nodes", [None, {"spout": "n1", "a": "n1", "b": "n1", "sink": "n1"}])
def test_the_last_node_stays(nodes):
    snapshot = dataflow({"spout": 1000, "a": 300, "b": 500, "sink": 1000}, "spout>a a>b b>sink", 1000, nodes)
    with pytest.raises(FlowError, match="one has to stay"):
        Stela(remove_nodes=1).decide(snapshot, None)


def test_added_nodes_need_to_know_where_the_instances_are():
    with pytest.raises(FlowError, match="add_nodes needs the operators' nodes"):
        Stela(add_nodes=1).decide(linear(), None)
