"""The operators of a task, from the first to the exchanges."""

from __future__ import annotations

import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.keys.load import KeyLoad
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.task.operator_chain import OperatorChain
from evenflow.engine.task.outputs import Outputs


def chain_of(flow: ef.Dataflow, worker: str) -> tuple[OperatorChain, Outputs]:
    spec = next(task for task in flow.plan(config=ef.JobConfig(combine=False)).tasks if task.name == worker)
    outputs = Outputs(spec)
    chain = OperatorChain(spec, KeyLoad(spec.settings.key_groups, False), outputs)
    chain.open()
    return chain, outputs


def rows(*values: object) -> Batch:
    return Batch(pa.record_batch({"item": pa.array(values)}))


def sent(outputs: Outputs) -> list[object]:
    outputs.flush()
    return [s.element.rows.column(0).to_pylist() for s in outputs.sent if isinstance(s.element, Batch)]


def test_batch_goes_through_every_operator_to_every_consumer_of_a_port():
    flow = ef.Dataflow("f")
    doubled = flow.read(ef.from_items([])).named("items").parallelism(1).map(lambda row: {"item": 2 * row["item"]})
    doubled.filter(lambda row: row["item"] > 2).parallelism(1).key_by("item").aggregate(n=ef.count()).write(ef.to_list([]))
    doubled.map(lambda row: {"item": -row["item"]}).parallelism(1).key_by("item").aggregate(n=ef.count()).write(ef.to_list([]))
    chain, outputs = chain_of(flow, "items-0")
    chain.process(0, rows(1, 2))
    assert sent(outputs) == [[4], [-2, -4]]


def test_keyed_operator_is_the_first_one_or_none():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([])).named("items").key_by("item").aggregate(n=ef.count(), emit="final").named("count").write(ef.to_list([]))
    assert chain_of(flow, "items-0")[0].keyed is None
    chain, _ = chain_of(flow, "count-0")
    assert chain.keyed is chain.operators[0]


def test_sinks_prepare_what_was_written_since_the_last_time():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([])).named("items").write(ef.to_list([], name="out"))
    chain, _ = chain_of(flow, "items-0")
    chain.process(0, rows(1))
    chain.advance(MAX_TIME)
    chain.finish()
    assert [name for name, items in chain.prepare(1).items() if items] == ["out"]
    assert chain.prepare(2) == {"out": []}


def test_value_that_is_no_python_value_names_the_operator():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([])).named("items").map(lambda row: row).named("same").write(ef.to_list([]))
    chain, _ = chain_of(flow, "items-0")
    far = pa.array([2**62], pa.timestamp("us"))
    with pytest.raises(RecordError, match="operator `same`"):
        chain.process(0, Batch(pa.record_batch({"item": far})))
