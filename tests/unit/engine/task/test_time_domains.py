"""Event time that an operator in the middle of a chain assigns.

Operators behind it see its watermark, those before it the task's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.errors import RequestError
from evenflow.engine.plan.rescale import rescale
from evenflow.engine.protocol.effects import Prepared, Sent
from evenflow.engine.protocol.elements import MAX_TIME, MIN_TIME, Barrier, End, Rewind, Watermark
from evenflow.engine.task.core import TaskCore
from evenflow.engine.task.time_domains import TASK, TimeDomains


def source_task(build, *, epoch=0, joining=False):
    """Return the task that reads, with an exchange behind the stream that `build` adds, and one behind the rows themselves."""
    flow = ef.Dataflow("times")
    rows = flow.read(ef.from_items([{"t": 1}]))
    build(rows).key_by("t").aggregate(n=ef.count()).named("behind").write(ef.to_list([], name="counts"))
    rows.key_by("t").aggregate(n=ef.count()).named("beside").write(ef.to_list([], name="others"))
    plan = flow.plan(config=ef.JobConfig(combine=False))
    spec = next(task for task in plan.tasks if task.stage == "from_items")
    core = TaskCore(replace(spec, joining=joining), epoch)
    core.open()
    targets = {exchange.channels[0]: exchange.target for exchange in core.spec.exchanges}
    return core, lambda effects: [
        (targets[e.channel], e.element) for e in effects if isinstance(e, Sent) and not isinstance(e.element, Batch)
    ]


def batch(*times):
    return Batch(pa.record_batch({"t": list(times)}), np.array([7] * len(times), np.int64))


def with_time(rows):
    return rows.with_time("t", unit="us", max_delay="10us")


def test_each_exchange_says_the_watermark_of_what_is_before_it():
    core, said = source_task(with_time)
    core.polled(batch(50, 90, 70), 5, 0.0)
    assert set(said(core.idle(0.0))) == {("behind", Watermark(80)), ("beside", Watermark(5))}
    core.polled(batch(60), 6, 0.0)
    assert said(core.idle(0.0)) == [("beside", Watermark(6))]


def test_second_operator_with_times_of_its_own_replaces_those_of_the_first():
    core, said = source_task(lambda rows: with_time(rows).with_time("t", unit="us"))
    core.polled(batch(50, 90), 5, 0.0)
    assert ("behind", Watermark(90)) in said(core.idle(0.0))
    assert TimeDomains(core.spec).of_exchanges.count(TASK) == 1


def test_stream_without_time_before_it_does_not_end_it_and_its_end_does():
    core, said = source_task(with_time)
    core.polled(batch(50), MAX_TIME, 0.0)
    assert set(said(core.idle(0.0))) == {("behind", Watermark(40)), ("beside", Watermark(MAX_TIME))}
    assert said(core.exhausted(0.0)) == [("behind", Watermark(MAX_TIME)), ("behind", End()), ("beside", End())]


def test_source_that_takes_over_records_goes_on_from_what_all_have_come_to():
    core, said = source_task(with_time)
    core.polled(batch(50), MAX_TIME, 0.0)
    assert core.chain.own_times == {"with_time": 40}
    effects = said(core.rewind(MAX_TIME, {"with_time": 20}, 0.0))
    assert {effect for effect in effects if isinstance(effect[1], Rewind)} == {("behind", Rewind(20)), ("beside", Rewind(MAX_TIME))}
    core.polled(batch(25), MAX_TIME, 0.0)
    assert said(core.idle(0.0)) == [], "15 is earlier than what was promised"
    core.polled(batch(35), MAX_TIME, 0.0)
    assert said(core.idle(0.0)) == [("behind", Watermark(25))]


def test_checkpoint_holds_what_each_operator_has_come_to_and_a_recovery_goes_on_from_it():
    core, said = source_task(with_time)
    core.polled(batch(50), 5, 0.0)
    prepared = next(effect for effect in core.barrier(1, 0.0) if isinstance(effect, Prepared))
    assert (prepared.watermark, prepared.own_times) == (5, {"with_time": 40})
    again, said = source_task(with_time)
    again.restore(prepared.watermark, prepared.own_times)
    assert set(said(again.idle(0.0))) == {("behind", Watermark(40)), ("beside", Watermark(5))}
    assert ("behind", Barrier(2)) in said(again.barrier(2, 0.0))


def test_arrival_time_goes_on_without_rows_but_not_with_every_look():
    core, said = source_task(lambda rows: rows.with_arrival_time(), epoch=1_000_000)
    core.polled(batch(50), MAX_TIME, 1.0)
    assert ("behind", Watermark(2_000_000)) in said(core.idle(1.0))
    assert said(core.idle(1.01)) == []
    assert said(core.idle(1.5)) == [("behind", Watermark(2_500_000))]
    assert core.chain.own_times == {"with_arrival_time": 2_500_000}


def test_source_worker_that_joins_says_no_arrival_time_before_it_has_its_position():
    core, said = source_task(lambda rows: rows.with_arrival_time(), epoch=1_000_000, joining=True)
    assert said(core.idle(1.0)) == []
    core.rewind(MIN_TIME, {"with_arrival_time": 1_500_000}, 2.0)
    assert ("behind", Watermark(3_000_000)) in said(core.idle(2.0))


def test_operator_without_rows_has_come_to_nothing():
    core, said = source_task(with_time)
    core.polled(None, 5, 0.0)
    assert said(core.idle(0.0)) == [("beside", Watermark(5))]
    assert core.chain.own_times == {"with_time": MIN_TIME}


def stages(build):
    flow = ef.Dataflow("stages")
    build(flow.read(ef.from_items([{"t": 1}]))).write(ef.to_list([]))
    plan = flow.plan(2)
    return plan, {stage.name: [chained.name for chained in stage.chain] for stage in plan.stages}


def test_operator_runs_with_its_source_or_begins_a_stage():
    _, chained = stages(lambda rows: rows.filter(lambda row: True).with_time("t"))
    assert chained == {"from_items": ["from_items", "filter", "with_time", "to_list"]}
    _, apart = stages(lambda rows: rows.key_by("t").aggregate(n=ef.count(), emit="final").with_time("t").with_time("n"))
    assert apart["with_time"] == ["with_time", "with_time_2", "to_list"]


def test_stage_that_it_begins_keeps_its_number_of_workers():
    plan, _ = stages(lambda rows: rows.key_by("t").aggregate(n=ef.count(), emit="final").with_time("t"))
    with pytest.raises(RequestError, match="`with_time` can't have 3 workers: a worker that joins would not know the event time"):
        rescale(plan, plan.stage_of("with_time"), 3, plan.tables)
    assert rescale(plan, plan.stage_of("from_items"), 3, plan.tables).joining == ("from_items-2",)
