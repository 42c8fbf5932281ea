"""Errors of flows, found when they are written or planned."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.engine.errors import FlowError
from evenflow.engine.operators.rows.union import Union
from evenflow.engine.plan.graph import Graph, Input


def numbers(flow):
    return flow.read(ef.from_items([1, 2, 3]))


def test_empty_flow_says_how_to_begin():
    with pytest.raises(FlowError, match=r"the flow `f` is empty: begin with flow.read"):
        ef.Dataflow("f").plan()


def test_stream_that_goes_nowhere_is_named():
    flow = ef.Dataflow("f")
    numbers(flow).map(lambda row: row).named("lost")
    with pytest.raises(FlowError, match=r"the output of operator `lost` goes nowhere"):
        flow.plan()


def test_one_branch_that_goes_nowhere_is_named_though_another_has_a_sink():
    flow = ef.Dataflow("f")
    stream = numbers(flow)
    stream.write(ef.to_list([]))
    stream.filter(lambda row: True).named("lost")
    with pytest.raises(FlowError, match="operator `lost` goes nowhere"):
        flow.plan()


def test_two_operators_of_one_name_are_refused():
    flow = ef.Dataflow("f")
    numbers(flow).map(lambda row: row).named("step")
    with pytest.raises(FlowError, match="two operators of the flow `f` are named `step`"):
        numbers(flow).named("step")


def test_operators_without_a_name_of_their_own_get_numbers():
    flow = ef.Dataflow("f")
    numbers(flow).map(lambda row: row).map(lambda row: row).write(ef.to_list([]))
    assert [node.name for node in flow.graph] == ["from_items", "map", "map_2", "to_list"]


def test_name_given_by_the_user_wins_over_one_made_up():
    flow = ef.Dataflow("f")
    stream = numbers(flow).map(lambda row: row)
    stream.filter(lambda row: True).named("map")
    assert len({node.name for node in flow.graph}) == 3
    assert flow.graph.nodes[2].name == "map"


@pytest.mark.parametrize("name", ["", "two words", "a/b", "ä", None, 3])
def test_bad_flow_name_is_refused(name):
    with pytest.raises(FlowError, match="dataflow name"):
        ef.Dataflow(name)


@pytest.mark.parametrize("name", ["", "two words", "a:b"])
def test_bad_operator_name_is_refused(name):
    with pytest.raises(FlowError, match="operator name"):
        numbers(ef.Dataflow("f")).named(name)


def test_cycle_is_named_operator_by_operator():
    graph = Graph("f")
    first = graph.add("first", Union(), (Input(1),))
    graph.add("second", Union(), (Input(first.id),))
    with pytest.raises(FlowError, match="cycle: first -> second -> first"):
        graph.ordered()


def test_input_from_a_node_that_is_not_there_is_refused():
    graph = Graph("f")
    graph.add("only", Union(), (Input(7),))
    with pytest.raises(FlowError, match=r"does not have \(id 7\)"):
        graph.ordered()


def test_union_of_two_flows_is_refused():
    with pytest.raises(FlowError, match="union of streams of two flows, `a` and `b`"):
        numbers(ef.Dataflow("a")).union(numbers(ef.Dataflow("b")))


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_bad_parallelism_is_refused(workers):
    with pytest.raises(FlowError, match=r"operator `from_items`: parallelism .* whole number"):
        numbers(ef.Dataflow("f")).parallelism(workers)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        pytest.param(lambda s: s.write("out/"), "expected a sink", id="a path is no sink"),
        pytest.param(lambda s: s.map(3), r"map\(3\): expected a function", id="a number is no function"),
        pytest.param(lambda s: s.key_by(), "key_by needs at least one column", id="no keys"),
        pytest.param(lambda s: s.key_by("a", "a"), "each once", id="a column twice"),
        pytest.param(lambda s: s.key_by("a", lambda row: 1), "column names, each once, or one function", id="a column and a function"),
        pytest.param(lambda s: s.key_by("a").window("1h"), "expected windows", id="a duration is no windows"),
        pytest.param(lambda s: s.key_by("a").aggregate(), "at least one aggregate", id="no aggregates"),
        pytest.param(lambda s: s.key_by("a").aggregate(n="count"), "expected an aggregate", id="a text is no aggregate"),
        pytest.param(lambda s: s.key_by("a").aggregate(a=ef.count()), "`a` is a column of the result already", id="key column's name"),
        pytest.param(lambda s: s.key_by("a").aggregate(n=ef.count(), emit="now"), 'expected "update" or "final"', id="unknown emit"),
        pytest.param(
            lambda s: s.key_by("a").window(ef.tumbling(1)).aggregate(window_end=ef.count()),
            "`window_end` is a column",
            id="window column's name",
        ),
        pytest.param(
            lambda s: s.map(lambda row: row, schema={"n": "int65"}),
            "operator `map`: column `n`: type 'int65' is unknown",
            id="unknown type",
        ),
        pytest.param(lambda s: s.key_by("a").stateful_map_columns(max, state={}), "at least one column", id="no state"),
        pytest.param(lambda s: s.key_by("a").stateful_map_columns(max, state={"n": "object"}), "fixed size", id="state of objects"),
    ],
)
def test_mistake_in_the_flow_is_found_where_it_is_written(write, message):
    with pytest.raises(FlowError, match=message):
        write(numbers(ef.Dataflow("f")))


def test_source_that_is_none_is_refused():
    with pytest.raises(FlowError, match="expected a source"):
        ef.Dataflow("f").read([1, 2, 3])


def test_unknown_runtime_is_refused():
    flow = ef.Dataflow("f")
    numbers(flow).write(ef.to_list([]))
    with pytest.raises(FlowError, match='expected "ray" or "local"'):
        flow.run(runtime="cloud")
