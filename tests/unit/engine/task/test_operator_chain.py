"""The operators of a task, from the first to the exchanges."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.keys.load import KeyLoad
from evenflow.engine.protocol.elements import MAX_TIME, Watermark
from evenflow.engine.task.operator_chain import DEPTH, OperatorChain
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


LONG = 6 * DEPTH + 7


def long_chain(maps: int, *, times: bool) -> ef.Dataflow:
    """Two branches of `maps` maps each behind an operator that emits each row twice, both into one keyed operator."""
    flow = ef.Dataflow("f")
    items = flow.read(ef.from_items([])).named("items").parallelism(1)
    twice = items.flat_map(lambda row: [row, {"item": row["item"] + 100}])
    for branch in (1, 1000):
        stream = twice
        for at in range(maps):
            stream = stream.map(lambda row, step=branch if at == 0 else 0: {"item": row["item"] + step})
            if times and at == maps // 2:
                stream = stream.with_time(lambda row: row["item"] * 1_000_000)
        if times:
            stream = stream.map(lambda row: {"item": row["item"]})
        stream.key_by("item").aggregate(n=ef.count()).write(ef.to_list([]))
    return flow


@pytest.mark.slow
@pytest.mark.parametrize("times", [False, True])
def test_a_chain_that_is_longer_than_pythons_stack_gives_what_a_short_one_gives(times):
    assert sys.getrecursionlimit() < 3 * LONG
    found = []
    for maps in (2, LONG):
        chain, outputs = chain_of(long_chain(maps, times=times), "items-0")
        for value in (1, 2):
            chain.process(0, rows(value))
        chain.advance(MAX_TIME)
        chain.finish()
        outputs.flush()
        elements = [(s.channel, s.element) for s in outputs.sent]
        channels = sorted({channel for channel, _ in elements})
        found.append([[_plain(element) for channel, element in elements if channel == one] for one in channels])
    short, long = found
    assert short == long


def _plain(element: object) -> object:
    return element.rows.column(0).to_pylist() if isinstance(element, Batch) else element


def test_delayed_rows_precede_the_watermark_that_was_emitted_after_them():
    flow = ef.Dataflow("f")
    stream = flow.read(ef.from_items([])).named("items").parallelism(1).with_time(lambda row: row["item"] * 1_000_000)
    for _ in range(LONG):
        stream = stream.map(lambda row: row)
    stream.key_by("item").window(ef.tumbling("1s")).aggregate(n=ef.count()).write(ef.to_list([]))
    chain, outputs = chain_of(flow, "items-0")
    for value in (1, 5, 9):
        chain.process(0, rows(value))
    outputs.flush()
    seen, late = -1, []
    for sent_one in outputs.sent:
        if isinstance(sent_one.element, Batch):
            late += [time for time in sent_one.element.times.tolist() if time < seen]
        elif isinstance(sent_one.element, Watermark):
            seen = max(seen, sent_one.element.time)
    assert seen == 9_000_000_000
    assert late == []
