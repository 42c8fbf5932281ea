"""The task between its channels: event time, barriers, ends, buffers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ProtocolError, RecordError
from evenflow.engine.protocol.effects import Consumed, Finished, Latency, Prepared, Sent
from evenflow.engine.protocol.elements import MAX_TIME, Barrier, End, LatencyMark, Watermark
from evenflow.engine.task.core import TaskCore
from evenflow.testing.settings import changed


def batch(*values: int, times: list[int] | None = None) -> Batch:
    return Batch(pa.record_batch({"item": list(values)}), None if times is None else np.array(times, np.int64))


class Task:
    """The task of a worker of a flow; `effects` in short: what was sent on which channel, what was reported."""

    def __init__(self, flow: ef.Dataflow, worker: str, **config: Any) -> None:
        plan = flow.plan(config=changed(ef.JobConfig(combine=False), **config))
        self.spec = next(task for task in plan.tasks if task.name == worker)
        self.core = TaskCore(self.spec)
        self.core.open()
        self.inputs = list(self.spec.inputs)

    def receive(self, place: int, element: Any, now: float = 0.0) -> list[Any]:
        return shown(self.core.receive(self.inputs[place], element, now))


def shown(effects: list[Any]) -> list[Any]:
    short = []
    for effect in effects:
        if isinstance(effect, Sent):
            element = effect.element
            short.append(element.rows.column(0).to_pylist() if isinstance(element, Batch) else element)
        elif isinstance(effect, (Prepared, Finished)):
            short.append(type(effect).__name__)
        elif not isinstance(effect, Consumed):
            short.append(effect)
    return short


def two_inputs(write: Any = None, **config: Any) -> Task:
    """Return a union with two input channels, and one channel to a stage of its own behind it."""
    flow = ef.Dataflow("f")
    left, right = flow.read(ef.from_items([1])).named("left"), flow.read(ef.from_items([2])).named("right")
    both = left.union(right)
    (write or (lambda stream: stream.map(lambda row: row).parallelism(2).write(ef.to_list([]))))(both)
    return Task(flow, "union-0", **config)


def one_output() -> Task:
    def write(stream: ef.Stream) -> None:
        stream.key_by("item").aggregate(n=ef.count()).write(ef.to_list([]))

    return two_inputs(write)


def sink_only() -> Task:
    return two_inputs(lambda stream: stream.write(ef.to_list([])))


def test_event_time_is_that_of_the_slowest_channel():
    task = one_output()
    task.receive(0, Watermark(50))
    assert task.core.watermark < 0
    task.receive(1, Watermark(20))
    assert task.core.watermark == 20
    task.receive(1, Watermark(70))
    assert task.core.watermark == 50


def test_watermark_that_goes_back_changes_nothing():
    task = one_output()
    task.receive(0, Watermark(50))
    task.receive(1, Watermark(50))
    task.receive(0, Watermark(10))
    assert task.core.watermark == 50
    assert shown(task.core.idle(0.0)) == [Watermark(50)]
    task.receive(0, Watermark(40))
    assert shown(task.core.idle(0.0)) == []


def test_channel_that_has_ended_does_not_hold_event_time_back():
    task = one_output()
    task.receive(0, Watermark(50))
    task.receive(1, End())
    assert task.core.watermark == 50


def test_watermark_leaves_behind_the_rows_before_it_and_does_not_cut_batches():
    task = one_output()
    assert task.receive(0, batch(1)) == []
    assert task.receive(0, Watermark(5)) == []
    task.receive(1, Watermark(5))
    assert task.receive(0, batch(2)) == []
    assert shown(task.core.idle(0.0)) == [[1, 2], Watermark(5)]


def test_batch_leaves_when_it_is_full():
    def write(stream: ef.Stream) -> None:
        stream.key_by("item").aggregate(n=ef.count()).write(ef.to_list([]))

    task = two_inputs(write, network={"batch_rows": 3})
    assert task.receive(0, batch(1, 2)) == []
    assert task.receive(0, batch(3, 4)) == [[1, 2, 3, 4]]


def test_row_is_due_when_it_has_waited_for_linger():
    task = one_output()
    task.receive(0, batch(1), now=10.0)
    task.receive(0, batch(2), now=10.004)
    assert not task.core.outputs.due(10.004)
    assert task.core.outputs.due(10.005)
    task.core.idle(10.005)
    assert not task.core.outputs.due(99.0)
    assert not task.core.outputs.wait


def test_end_of_all_inputs_ends_the_task_with_what_is_left():
    task = one_output()
    task.receive(0, batch(1))
    assert task.receive(0, End()) == []
    assert task.receive(1, End()) == [[1], Watermark(MAX_TIME), End(), "Finished"]
    assert task.core.finished


def test_element_behind_the_end_of_its_channel_is_refused_and_changes_nothing():
    task = one_output()
    task.receive(0, End())
    with pytest.raises(ProtocolError, match=r"task union-0: an element on channel \d+, which has ended or never was an input"):
        task.receive(0, batch(1))
    assert task.receive(1, End()) == [Watermark(MAX_TIME), End(), "Finished"]


def test_element_on_a_channel_of_another_task_is_refused():
    task = one_output()
    with pytest.raises(ProtocolError, match="channel 4711"):
        task.core.receive(4711, batch(1), 0.0)


def test_barrier_waits_for_its_twin_and_holds_back_what_follows_it():
    task = one_output()
    task.receive(0, Barrier(1))
    assert task.receive(0, batch(2)) == []
    assert task.core.held_elements == 1
    assert task.core.rows_in == 0
    task.receive(1, batch(1))
    assert task.receive(1, Barrier(1)) == [[1], Barrier(1), "Prepared"]
    assert task.core.held_elements == 0
    assert shown(task.core.idle(0.0)) == [[2]]


def test_held_watermark_counts_only_behind_the_barrier():
    task = one_output()
    task.receive(0, Barrier(1))
    task.receive(0, Watermark(90))
    task.receive(1, Watermark(80))
    assert task.core.watermark < 0
    task.receive(1, Barrier(1))
    assert task.core.watermark == 80


def test_input_that_has_ended_counts_as_having_the_barrier():
    task = one_output()
    task.receive(0, End())
    assert task.receive(1, Barrier(1)) == [Barrier(1), "Prepared"]


def test_input_that_ends_while_others_have_the_barrier_lets_it_pass():
    task = one_output()
    task.receive(0, Barrier(1))
    task.receive(0, batch(2))
    assert task.receive(1, End()) == [Barrier(1), "Prepared"]
    assert shown(task.core.idle(0.0)) == [[2]]


def test_end_that_was_held_back_ends_the_task_after_the_barrier():
    task = one_output()
    task.receive(0, Barrier(1))
    task.receive(0, End())
    task.receive(1, End())
    assert task.core.finished


def test_next_barrier_that_was_held_back_is_aligned_again():
    task = one_output()
    for element in (Barrier(1), batch(1), Barrier(2), batch(2)):
        task.receive(0, element)
    assert task.receive(1, Barrier(1)) == [Barrier(1), "Prepared"]
    assert task.core.held_elements == 1
    assert task.receive(1, Barrier(2)) == [[1], Barrier(2), "Prepared"]
    assert shown(task.core.idle(0.0)) == [[2]]


def test_two_barriers_at_once_are_refused():
    task = one_output()
    task.receive(0, Barrier(1))
    with pytest.raises(ProtocolError, match=r"task union-0: barrier 2 on channel \d+ while aligning 1"):
        task.receive(1, Barrier(2))


def test_sink_prepares_exactly_what_came_before_the_barrier():
    task = sink_only()
    task.receive(0, batch(1))
    task.core.receive(task.inputs[0], Barrier(1), 0.0)
    task.receive(0, batch(3))
    task.receive(1, batch(2))
    (prepared,) = task.core.receive(task.inputs[1], Barrier(1), 0.0)[:1]
    assert isinstance(prepared, Prepared)
    assert rows_in(prepared.committables["to_list"]) == [1, 2]
    task.receive(0, End())
    (finished,) = task.core.receive(task.inputs[1], End(), 0.0)
    assert isinstance(finished, Finished)
    assert rows_in(finished.committables["to_list"]) == [3]


def rows_in(streams: list[bytes]) -> list[int]:
    return [row["item"] for stream in streams for rows in pa.ipc.open_stream(stream) for row in rows.to_pylist()]


def test_latency_mark_goes_to_one_channel_and_is_measured_where_the_stream_ends():
    task = one_output()
    task.receive(0, LatencyMark(7))
    assert shown(task.core.idle(0.0)) == [LatencyMark(7)]
    assert sink_only().receive(0, LatencyMark(7)) == [Latency(7)]


def test_latency_mark_leaves_behind_the_rows_before_it():
    task = one_output()
    task.receive(0, batch(1))
    task.receive(0, LatencyMark(7))
    assert shown(task.core.idle(0.0)) == [[1], LatencyMark(7)]


def test_batch_is_consumed_once_it_is_processed_and_not_while_it_is_held():
    task = one_output()
    first = batch(1)
    assert task.core.receive(task.inputs[0], first, 0.0) == [Consumed(task.inputs[0], first)]
    task.core.receive(task.inputs[0], Barrier(1), 0.0)
    assert task.core.receive(task.inputs[0], batch(2), 0.0) == []


def test_round_robin_deals_rows_out_and_signals_to_all():
    task = two_inputs()
    task.receive(0, batch(1, 2))
    task.receive(0, batch(3))
    sent = [effect for effect in task.core.idle(0.0) if isinstance(effect, Sent)]
    assert sorted(effect.element.rows.column(0).to_pylist() for effect in sent) == [[1, 3], [2]]
    assert len({effect.channel for effect in sent}) == 2
    task.receive(0, End())
    ends = [e for e in task.core.receive(task.inputs[1], End(), 0.0) if isinstance(e, Sent) and isinstance(e.element, End)]
    assert len({effect.channel for effect in ends}) == 2


def test_rows_in_and_out_are_counted():
    task = one_output()
    task.receive(0, batch(1, 2))
    task.receive(1, batch(3))
    task.core.idle(0.0)
    assert (task.core.rows_in, task.core.outputs.rows) == (3, 3)


def test_source_task_passes_rows_watermark_barrier_and_end_in_that_order():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([{"item": 1, "ts": 5}], event_time="ts")).key_by("item").aggregate(n=ef.count()).write(ef.to_list([]))
    task = Task(flow, "from_items-0").core
    assert shown(task.polled(batch(1, times=[5]), 5, 0.0)) == []
    assert shown(task.barrier(1, 0.0)) == [[1], Watermark(5), Barrier(1), "Prepared"]
    assert shown(task.polled(None, 9, 0.0)) == []
    assert shown(task.exhausted(0.0)) == [Watermark(MAX_TIME), End(), "Finished"]


def test_operators_of_two_tasks_share_no_state():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).key_by("item").stateful_map(lambda state, row: ((state or 0) + 1, {"n": (state or 0) + 1})).write(
        ef.to_list([])
    )
    first, second = Task(flow, "stateful_map-0"), Task(flow, "stateful_map-0")
    first.receive(0, batch(1, 1))
    held = [task.core.operators[0].state.backend.objects for task in (first, second)]
    assert held == [{1: 2}, {}]


def test_error_of_a_function_reaches_the_driver_with_operator_key_and_row():
    def fails(state: Any, row: dict[str, Any]) -> Any:
        raise ZeroDivisionError("no")

    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).key_by("item").stateful_map(fails).named("fragile").write(ef.to_list([]))
    with pytest.raises(RecordError, match=r"(?s)operator `fragile`.*raised ZeroDivisionError: no.*key: 7.*record: \{'item': 7\}"):
        Task(flow, "fragile-0").receive(0, batch(7))


def test_close_closes_every_sink_even_one_that_was_never_opened():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    task = Task(flow, "from_items-0")
    task.core.close()
    TaskCore(replace(task.spec)).close()
