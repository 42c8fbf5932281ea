"""Rows wait for a full batch, or for the time-out; watermarks wait with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.operators.rows.map_batches import MapBatches
from evenflow.engine.operators.rows.map_gathered import MapGathered
from evenflow.engine.protocol.effects import Prepared, Sent
from evenflow.engine.protocol.elements import Barrier, End, Watermark
from evenflow.engine.protocol.ids import CheckpointNumber
from evenflow.engine.task.core import TaskCore


@pytest.fixture
def sizes():
    return []


@pytest.fixture
def gathered(drive, sizes):
    """Return an operator that notes the sizes of its batches, with room for 3 rows, and its clock, in microseconds."""
    step = drive(MapGathered(lambda batch: sizes.append(batch.num_rows) or batch, size=3, timeout=500))
    clock = [0]
    step.operator.context = replace(step.operator.context, now=lambda: clock[0])
    return step, clock


def numbers(*values):
    return {"a": list(values)}


def test_function_gets_full_batches_however_rows_arrive(gathered, sizes):
    step, _ = gathered
    assert step.process(numbers(1)) == []
    assert [row["a"] for row in step.process(numbers(2, 3, 4, 5, 6, 7, 8))] == [1, 2, 3, 4, 5, 6]
    assert [row["a"] for row in step.finish()] == [7, 8]
    assert sizes == [3, 3, 2]


def test_rows_wait_no_longer_than_the_timeout(gathered, sizes):
    step, clock = gathered
    step.process(numbers(1))
    clock[0] = 499
    step.operator.tick(step._emit)
    assert sizes == []
    clock[0] = 500
    step.operator.tick(step._emit)
    assert sizes == [1]
    step.process(numbers(2))
    clock[0] = 1_000
    assert [row["a"] for row in step.process(numbers(3))] == [2, 3]


def test_columns_of_other_types_are_a_batch_of_their_own(gathered, sizes):
    step, _ = gathered
    step.process(numbers(1))
    assert step.process(numbers("x")) == [{"a": 1}]
    assert step.finish() == [{"a": "x"}]


def test_watermark_is_that_before_the_first_row_that_waits(gathered):
    step, _ = gathered
    step.advance(10)
    step.process(numbers(1), [12])
    step.advance(20)
    assert step.operator.watermark == 10
    step.process(numbers(2, 3), [21, 22])
    assert step.operator.watermark == 20


def test_barriers_and_the_end_come_behind_rows_that_wait():
    flow = ef.Dataflow("gathered")
    rows = flow.read(ef.from_items([{"a": 1}])).map_batches(lambda batch: batch, batch_size=100, timeout="1h")
    rows.key_by("a").aggregate(n=ef.count()).write(ef.to_list([], name="counts"))
    plan = flow.plan(config=ef.JobConfig(combine=False))
    core = TaskCore(next(task for task in plan.tasks if task.stage == "from_items"))
    core.open()

    def sent(effects):
        kept = [effect.element for effect in effects if isinstance(effect, Sent)]
        return [element.rows.to_pylist() if isinstance(element, Batch) else element for element in kept]

    def batch(*values):
        return Batch(pa.record_batch({"a": list(values)}), np.array(values, np.int64))

    core.polled(batch(5), 4, 0.0)
    core.polled(None, 6, 0.0)
    assert sent(core.idle(0.0)) == [Watermark(4)] or sent(core.idle(0.0)) == []
    effects = core.barrier(CheckpointNumber(1), 0.1)
    assert sent(effects)[:1] == [[{"a": 5}]]
    assert [element for element in sent(effects) if isinstance(element, Barrier)] == [Barrier(CheckpointNumber(1), CheckpointNumber(0))]
    assert any(isinstance(effect, Prepared) for effect in effects)
    core.polled(batch(7), 7, 0.2)
    ended = sent(core.exhausted(0.3))
    assert [{"a": 7}] in ended
    assert ended[-1] == End()


NINE = 9 * 3_600_000_000


def at(*hours):
    return pa.array([hour * 3_600_000_000 for hour in hours], pa.timestamp("us", "UTC"))


def test_column_of_the_result_has_the_times_of_a_changed_number_of_rows(drive):
    step = drive(MapBatches(lambda batch: pa.record_batch({"t": at(9, 9, 10)}), time="t"))
    assert len(step.process(numbers(1, 2), [NINE, NINE + 5])) == 3
    assert step.times["out"] == [NINE, NINE, NINE + 3_600_000_000]


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ({"a": [1]}, "returned no column `t` with the event time; there are: a"),
        ({"t": [1]}, "returned `t`, the event time, as int64; expected a timestamp"),
        ({"t": at(8)}, "returned the event time 1970-01-01 08:00:00.*, which is before that of every row that it got"),
        ({"t": pa.nulls(1, pa.timestamp("us"))}, "returned no time of the years 1 to 9999 in `t`, the event time: None"),
    ],
)
def test_results_without_right_times_are_refused(drive, result, problem):
    with pytest.raises(RecordError, match=f"operator `step`: {problem}"):
        drive(MapBatches(lambda batch: result, time="t")).process(numbers(1), [NINE])


def test_times_of_a_stream_without_event_time_are_refused(drive):
    with pytest.raises(RecordError, match="the rows have no event time, which event_time='t' would keep: assign one by with_time"):
        drive(MapBatches(lambda batch: {"t": at(9)}, time="t")).process(numbers(1))
