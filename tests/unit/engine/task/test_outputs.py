"""Outputs of a task: which elements are sent, in which order, and when."""

from __future__ import annotations

import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ProtocolError
from evenflow.engine.protocol.elements import Barrier, Element, End, Marker, Rewind, Watermark
from evenflow.engine.protocol.handover_step import HandoverStep
from evenflow.engine.protocol.routing import Move
from evenflow.engine.task.outputs import Outputs
from evenflow.engine.task.time_domains import TASK


def outputs() -> Outputs:
    """Return the outputs of a task with a hash exchange to two workers."""
    flow = ef.Dataflow("f")
    items = flow.read(ef.from_items([])).named("items").parallelism(1)
    items.key_by("item").aggregate(n=ef.count()).named("count").parallelism(2).write(ef.to_list([]))
    plan = flow.plan(config=ef.JobConfig(combine=False, network=ef.NetworkConfig(batch_rows=100)))
    return Outputs(next(task for task in plan.tasks if task.name == "items-0"))


def rows(*values: int) -> Batch:
    return Batch(pa.record_batch({"item": pa.array(values)}))


def left(from_: Outputs) -> list[Element | str]:
    """Remove the sent elements and return them, batches in short."""
    effects: list[object] = []
    from_.take(effects)
    assert from_.sent == []
    return ["rows" if isinstance(e.element, Batch) else e.element for e in effects]


def test_signals_leave_behind_the_rows_and_the_watermark_before_them():
    out = outputs()
    out.entrance(0)(rows(*range(50)))
    out.advance(7)
    assert (left(out), out.wait, out.rows) == ([], True, 0)
    out.broadcast(Barrier(1))
    assert left(out) == ["rows", "rows", Watermark(7), Watermark(7), Barrier(1), Barrier(1)]
    assert (out.wait, out.rows) == (False, 50)


def test_rows_are_due_once_the_first_has_waited_for_linger():
    out = outputs()
    out.now = 10.0
    out.entrance(0)(rows(1))
    out.now = 10.004
    out.entrance(0)(rows(2))
    assert (out.due(10.004), out.due(10.005)) == (False, True)
    out.flush()
    assert not out.due(99.0)


def test_switch_leaves_markers_behind_the_rows_and_pauses_if_the_step_says_so():
    out = outputs()
    with pytest.raises(ProtocolError, match="task items-0: step 1 was not announced"):
        out.switch(1)
    out.announce("elsewhere", [HandoverStep(1, (Move(0, 1, (0,)),))])
    with pytest.raises(ProtocolError, match="step 1 was not announced"):
        out.switch(1)
    out.announce("count", [HandoverStep(1, (Move(0, 1, (0,)),), pause=True)])
    out.entrance(0)(rows(*range(50)))
    out.switch(1)
    assert left(out) == ["rows", Marker(1), "rows", Marker(1)]
    assert out.paused
    out.entrance(0)(rows(1))
    out.flush()
    assert left(out) == []
    out.resume()
    out.flush()
    assert left(out) == ["rows"]


def test_channel_to_a_new_worker_gets_the_event_time_and_one_to_a_leaving_worker_ends():
    out = outputs()
    out.advance(7)
    out.flush()
    left(out)
    out.attach([(0, 2, 77)], ends=False)
    assert left(out) == [Watermark(7)]
    out.detach([77])
    assert left(out) == [End()]
    out.attach([(0, 2, 78)], ends=True)
    assert left(out) == [End()]


def test_a_rewind_follows_the_watermark_that_was_sent():
    out = outputs()
    out.advance(7)
    out.rewind({TASK: 3})
    assert left(out) == [Watermark(7), Watermark(7), Rewind(3), Rewind(3)]
    out.advance(5)
    out.flush()
    assert left(out) == [Watermark(5), Watermark(5)]
