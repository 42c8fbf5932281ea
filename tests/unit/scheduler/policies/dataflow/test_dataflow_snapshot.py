"""A dataflow snapshot is sound or isn't made."""

from __future__ import annotations

import math

import pytest

from evenflow.engine.errors import SnapshotError
from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge


def operators(*names: str) -> tuple[OperatorFigures, ...]:
    return tuple(OperatorFigures(name, 1) for name in names)


def test_order_puts_every_operator_behind_all_that_feed_it():
    edges = (Edge("d", "e"), Edge("b", "d"), Edge("a", "b"), Edge("a", "c"), Edge("c", "d"))
    snapshot = DataflowSnapshot(operators("e", "d", "c", "b", "a"), edges)
    assert snapshot.order == ("a", "c", "b", "d", "e")
    assert (snapshot.sources, snapshot.sinks) == (("a",), ("e",))


def test_operators_of_a_chain_are_found_in_order():
    one, two = OperatorFigures("one", 2, chain="x"), OperatorFigures("two", 2, chain="x")
    snapshot = DataflowSnapshot((two, one, OperatorFigures("three", 1)), (Edge("one", "two"), Edge("two", "three")))
    assert snapshot.chained("two") == ("one", "two")
    assert snapshot.chained("three") == ("three",)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "b"), ("b", "a")], "there is a cycle through a, b"),
        ([("a", "a")], "there is a cycle through a"),
        ([("a", "x")], "edges[0] names 'x', which is not among the operators: a, b"),
        ([("a", "b"), ("a", "b")], "edges[1] from 'a' to 'b' is listed twice"),
        ([("a", "b", 1.5)], "edges[0]: share is 1.5"),
        ([("a", "b", math.nan)], "edges[0]: share is nan"),
    ],
)
def test_impossible_edges_are_refused(edges, message):
    with pytest.raises(SnapshotError) as error:
        DataflowSnapshot(operators("a", "b"), tuple(Edge(*edge) for edge in edges))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"operators": ()}, "operators is empty"),
        ({"operators": operators("a", "a")}, "operators: 'a' appears twice"),
        ({"time": math.nan}, "time is nan"),
        ({"reconfiguration_s": -1}, "reconfiguration_s is -1"),
        ({"node_loads": {"n1": 2.0}}, "node_loads: n1 is 2.0"),
        (
            {"operators": (OperatorFigures("a", 1, chain="x"), OperatorFigures("b", 2, chain="x"))},
            "operator `b`: parallelism is 2, that of `a` is 1: operators of one chain (x) run in the same workers",
        ),
    ],
)
def test_an_impossible_snapshot_is_refused_with_its_field(fields, message):
    with pytest.raises(SnapshotError) as error:
        DataflowSnapshot(**{"operators": operators("a"), **fields})
    assert message in str(error.value)
