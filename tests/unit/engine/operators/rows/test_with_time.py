"""`with_time` and `with_arrival_time`: the times that rows get, and the watermark from them."""

from __future__ import annotations

import datetime as dt
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from evenflow.engine.batch import Batch
from evenflow.engine.context import Context
from evenflow.engine.errors import RecordError
from evenflow.engine.keys.load import KeyLoad
from evenflow.engine.operators.rows.with_arrival_time import WithArrivalTime
from evenflow.engine.operators.rows.with_time import WithTime
from evenflow.engine.protocol.elements import MIN_TIME

DAY = dt.datetime(1970, 1, 2)
MICROSECONDS = 86_400_000_000


@pytest.mark.parametrize(
    ("column", "unit", "times"),
    [
        pytest.param(pa.array([1, 2], pa.int32()), "s", [1_000_000, 2_000_000], id="seconds"),
        pytest.param(pa.array([1.5, -0.25]), "s", [1_500_000, -250_000], id="seconds with a fraction"),
        pytest.param(pa.array([1_999, 2_000]), "ns", [1, 2], id="nanoseconds"),
        pytest.param(pa.array([DAY, DAY]), "ms", [MICROSECONDS] * 2, id="timestamps"),
        pytest.param(pa.array([1, 2], pa.timestamp("s", "Asia/Tokyo")), "ms", [1_000_000, 2_000_000], id="timestamps with a zone"),
        pytest.param(pa.array([DAY.date(), DAY.date()]), "ms", [MICROSECONDS] * 2, id="dates"),
    ],
)
def test_column_of_any_type_that_holds_times_gives_them(drive, column, unit, times):
    step = drive(WithTime("t", unit))
    assert step.process({"t": column}, [7, 7]) == [{"t": value} for value in column.to_pylist()]
    assert step.times["out"] == times


def test_function_gives_times_of_any_type_that_a_column_may_have(drive):
    step = drive(WithTime(lambda row: DAY if row["n"] else None, on_error="skip"))
    assert step.process([{"n": 0}, {"n": 1}, {"n": 2}]) == [{"n": 1}, {"n": 2}]
    assert step.times["out"] == [MICROSECONDS] * 2
    assert step.operator.skipped_records == 1


def test_watermark_is_the_newest_time_less_the_delay_until_a_rewind(drive):
    step = drive(WithTime("t", "us", 10))
    assert step.operator.watermark == MIN_TIME
    step.process({"t": [50, 90, 70]})
    step.process({"t": [60]})
    assert step.operator.watermark == 80
    step.operator.rewind()
    assert step.operator.watermark == MIN_TIME
    step.process({"t": [30]})
    assert step.operator.watermark == 20


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param({"t": [1, None]}, "`t` is null: drop such rows with filter before with_time", id="null"),
        pytest.param({"t": pa.nulls(2)}, "`t` is null", id="nulls without a type"),
        pytest.param({"t": [1.0, float("nan")]}, "`t` is nan, which is no time in the years 1 to 9999", id="NaN"),
        pytest.param({"t": [1, 2**62]}, "`t` is 4611686018427387904, which is no time in the years 1 to 9999", id="too late"),
        pytest.param({"t": [1.0, 1e300]}, "`t` is 1e+300, which is no time", id="far too late"),
        pytest.param({"t": ["1", "2"]}, "`t` is string: expected a timestamp, a date or a number", id="text"),
        pytest.param({"s": [1, 2]}, "no event time column `t`; there are: s", id="no column"),
    ],
)
def test_row_without_a_time_is_shown(drive, rows, said):
    with pytest.raises(RecordError) as caught:
        drive(WithTime("t")).process(rows)
    assert said in str(caught.value)
    assert "operator `step`" in str(caught.value)


def test_refused_rows_are_dead_letters_and_don_t_move_the_watermark(drive):
    step = drive(WithTime("t", "us", 0, "dead_letter"))
    assert step.process({"t": [5, None, 2**62, 3]}) == [{"t": 5}, {"t": 3}]
    assert step.times["out"] == [5, 3]
    assert [letter["record"] for letter in step.rows["dead_letters"]] == ['{"t": null}', '{"t": 4611686018427387904}']
    assert step.operator.watermark == 5


def test_function_that_refuses_rows_here_and_there_gives_the_others_their_times(drive):
    def time(row):
        return {0: 1, 1: "x", 2: 1 // (row["n"] - 2) if row["n"] == 2 else 0, 3: 2**62}.get(row["n"], row["n"])

    step = drive(WithTime(time, "us", 0, "dead_letter"))
    assert [row["n"] for row in step.process([{"n": n} for n in range(6)])] == [0, 4, 5]
    assert step.times["out"] == [1, 4, 5]
    assert [letter["error"] for letter in step.rows["dead_letters"]] == ["ZeroDivisionError", "RecordError", "RecordError"]


def test_arrival_time_goes_on_from_a_checkpoint_though_the_clock_is_behind():
    emitted = []
    step = WithArrivalTime().open(Context("step", 0, 1, 16, KeyLoad(16), now=lambda: 90))
    step.restore(100)
    step.process(Batch(pa.record_batch({"n": [1]})), lambda batch, port="out": emitted.append(batch.times.tolist()))
    assert emitted == [[100]]
    assert step.watermark == 100


def test_arrival_time_is_the_present_and_never_goes_back():
    clock = iter([100, 90, 130])
    emitted = []
    step = WithArrivalTime().open(Context("step", 0, 1, 16, KeyLoad(16), now=partial(next, clock)))
    assert step.watermark == MIN_TIME
    rows = Batch(pa.record_batch({"n": [1, 2]}), np.array([5, 6]))
    step.process(rows, lambda batch, port="out": emitted.append(batch.times.tolist()))
    step.process(rows, lambda batch, port="out": emitted.append(batch.times.tolist()))
    step.tick(lambda batch, port="out": None)
    assert emitted == [[100, 100], [100, 100]]
    assert step.watermark == 130
