"""Dataflow snapshots from JSON and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.errors import FlowError, SnapshotError
from evenflow.scheduler.policies.dataflow.figures import InstanceFigures, OperatorFigures
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.dataflow.snapshot_json import snapshot_from_json, snapshot_to_json

SRC = {"name": "src", "parallelism": 1, "source_rate": 2000}
RATES = st.none() | st.floats(0, 1e9)


def document(**changes) -> str:
    return json.dumps(
        {"operators": [SRC, {"name": "o2", "parallelism": 2}], "edges": [["src", "o2"]], "policy": {"max_change": 1}} | changes
    )


def test_all_fields_are_read():
    snapshot = snapshot_from_json(document(time=7.5, reconfiguration_s=2, node_loads={"a": 0.5}, comment="from Tuesday"))
    assert snapshot.operator("src").source_rate == 2000
    assert snapshot.edges == (Edge("src", "o2"),)
    assert snapshot.settings == PolicySettings(max_change=1)
    assert (snapshot.time, snapshot.reconfiguration_s, snapshot.node_loads) == (7.5, 2, {"a": 0.5})


def test_instances_are_summed():
    instances = [{"true_processing_rate": 600, "note": "fast"}, {"true_processing_rate": 400}]
    snapshot = snapshot_from_json(document(operators=[SRC, {"name": "o2", "instances": instances}]))
    assert (snapshot.operator("o2").parallelism, snapshot.operator("o2").true_processing_rate) == (2, 1000)


def test_null_says_nothing():
    snapshot = snapshot_from_json(document(operators=[SRC, {"name": "o2", "parallelism": 2, "latency_ms": None, "queue_records": None}]))
    assert (snapshot.operator("o2").latency_ms, snapshot.operator("o2").queue_records) == (None, 0)


def test_edges_and_policy_may_be_omitted():
    assert snapshot_from_json('{"operators": [{"name": "src", "parallelism": 1}]}').settings == PolicySettings()


@given(
    st.lists(st.builds(InstanceFigures, RATES, RATES, RATES, RATES, RATES, st.none() | st.floats(0, 1)), min_size=1, max_size=4),
    st.none() | st.floats(0, 1e9),
    st.none() | st.floats(-1e6, 1e6),
    st.floats(0, 1),
    st.builds(PolicySettings, latency_target_ms=st.none() | st.floats(1, 1e6), max_change=st.none() | st.integers(1, 9)),
)
def test_snapshot_survives_the_way_to_json_and_back(instances, rate, growth, share, settings):
    source = OperatorFigures("source", 1, source_rate=rate, backlog_growth=growth, kind="window", chain="x")
    count = OperatorFigures.summed("count", instances, nodes=("a",) * len(instances), key_groups=64)
    snapshot = DataflowSnapshot((source, count), (Edge("source", "count", share),), settings, 3.5, 0.25, {"a": 0.5})
    assert snapshot_from_json(snapshot_to_json(snapshot)) == snapshot


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the dataflow snapshot is not JSON"),
        ("[]", "the dataflow snapshot must be an object"),
        ("{}", "operators is missing from the dataflow snapshot"),
        (document(operators={}), "operators must be a list, not dict"),
        (document(operators=[7]), "operators[0] must be an object, not 7"),
        (document(operators=[{"parallelism": 1}]), "operators[0].name is missing"),
        (document(operators=[{"name": "o"}]), "operators[0].parallelism is missing"),
        (document(operators=[{"name": "o", "parallelism": 0}]), "operator `o`: parallelism is 0"),
        (document(operators=[{"name": "o", "parallelism": None}]), "operator `o`: parallelism is None"),
        (document(operators=[{"name": "o", "parallelism": 1, "true_output_rate": -5}]), "operator `o`: true_output_rate is -5"),
        ('{"operators": [{"name": "o", "parallelism": 1, "source_rate": NaN}]}', "the dataflow snapshot is not JSON: NaN is not a number"),
        (document(operators=[{"name": "o", "parallelism": 1, "nodes": [1]}]), "operators[0].nodes must be a list of names"),
        (document(operators=[{"name": "o", "parallelism": 1, "nodes": "a"}]), "operators[0].nodes must be a list, not str"),
        (document(operators=[{"name": "o", "instances": [1]}]), "operators[0].instances[0] must be an object"),
        (document(operators=[{"name": "o", "parallelism": 3, "instances": [{}]}]), "instances has 1 entries, parallelism is 3"),
        (document(edges=[["src"]]), "edges[0] is ['src']: it must be a list of two operators' names"),
        (document(edges=[["src", "o2", "all"]]), "edges[0]: share is 'all'"),
        (document(edges=[["src", "o9"]]), "edges[0] names 'o9'"),
        (document(edges=[["src", "o2"], ["o2", "src"]]), "there is a cycle through src, o2"),
        (document(policy={"slots": 1}), "policy.slots is no setting of every policy: use one of interval_s"),
        (document(policy={"max_change": -1}), "PolicySettings: max_change is -1"),
        (document(policy=[]), "policy must be an object"),
        (document(node_loads=[]), "node_loads must be an object"),
    ],
)
def test_bad_input_is_refused_by_field(text, message):
    with pytest.raises((FlowError, SnapshotError)) as error:
        snapshot_from_json(text)
    assert message in str(error.value)
