"""Windowed aggregates, against counting by hand."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.errors import RecordError
from evenflow.engine.operators.aggregation.aggregate_windows import AggregateWindows
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.time.windows import Windows

COUNT = {"n": ef.count()}


@pytest.fixture(scope="module", params=["memory", "lmdb", "server"])
def drive(request, drive_in):
    return drive_in(request.param)


def at(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def windows_step(windows: Windows, **functions):
    return AggregateWindows(("k",), functions or COUNT, windows)


def counted(rows):
    return [(row["k"], row["window_start"].microsecond, row["window_end"].microsecond, row["n"]) for row in rows]


def test_window_is_emitted_once_when_the_watermark_has_passed_its_end(drive):
    step = drive(windows_step(Windows(10, 10)))
    assert step.process({"k": ["a", "b", "a"]}, [1, 2, 9]) == []
    assert step.advance(9) == []
    assert counted(step.advance(10)) == [("a", 0, 10, 2), ("b", 0, 10, 1)]
    assert step.advance(11) == []
    assert step.advance(MAX_TIME) == []
    assert step.finish() == []


def test_result_has_the_last_moment_of_its_window_as_event_time(drive):
    step = drive(windows_step(Windows(10, 10)))
    step.process({"k": ["a"]}, [3])
    step.advance(10)
    assert step.times["out"] == [9]


def test_window_bounds_are_timestamps_in_utc(drive):
    step = drive(windows_step(Windows(10, 10)))
    step.process({"k": ["a"]}, [3])
    (row,) = step.advance(10)
    assert (row["window_start"], row["window_end"]) == (at(0), at(10))
    assert step.schemas[0].field("window_start").type == pa.timestamp("us", tz="UTC")


def test_record_falls_into_every_sliding_window_that_covers_it(drive):
    step = drive(windows_step(Windows(size=10, slide=5)))
    step.process({"k": ["a"]}, [7])
    assert counted(step.advance(MAX_TIME)) == [("a", 0, 10, 1), ("a", 5, 15, 1)]


def test_windows_come_in_the_order_of_their_ends(drive):
    step = drive(windows_step(Windows(10, 10)))
    step.process({"k": ["a", "a", "a"]}, [25, 5, 15])
    assert [row["window_start"].microsecond for row in step.advance(MAX_TIME)] == [0, 10, 20]


def test_times_before_the_epoch_have_windows_too(drive):
    step = drive(windows_step(Windows(10, 10)))
    step.process({"k": ["a"]}, [-1])
    (row,) = step.advance(0)
    assert row["window_start"] == at(-10)


def test_late_record_is_counted_and_goes_out_as_it_came(drive):
    step = drive(windows_step(Windows(10, 10)))
    step.advance(10)
    assert step.process({"k": ["late", "fine"], "x": [1, 2]}, [9, 10]) == []
    assert step.operator.late_records == 1
    assert step.rows["late"] == [{"k": "late", "x": 1}]
    assert step.times["late"] == [9]
    assert counted(step.advance(20)) == [("fine", 10, 20, 1)]


def test_record_that_is_late_for_some_of_its_windows_counts_in_the_others(drive):
    step = drive(windows_step(Windows(size=10, slide=5)))
    step.advance(10)
    step.process({"k": ["a"]}, [7])
    assert step.operator.late_records == 0
    assert counted(step.advance(MAX_TIME)) == [("a", 5, 15, 1)]


def test_null_is_a_key(drive):
    step = drive(windows_step(Windows(10, 10)))
    step.process({"k": ["a", None, None]}, [1, 2, 3])
    assert {(row["k"], row["n"]) for row in step.advance(10)} == {("a", 1), (None, 2)}


def test_keys_that_were_all_null_at_first_may_get_a_type(drive):
    step = drive(windows_step(Windows(10, 10)))
    step.process({"k": pa.nulls(2)}, [1, 2])
    step.process({"k": ["a"]}, [3])
    assert {(row["k"], row["n"]) for row in step.advance(10)} == {("a", 1), (None, 2)}


def test_keys_of_two_types_are_refused_by_name(drive):
    step = drive(windows_step(Windows(10, 10)))
    step.process({"k": ["a"]}, [1])
    with pytest.raises(RecordError, match="operator `step`: the key column `k` has values of the types int64 and string"):  # noqa: PT012 -- at the latest when the window ends
        step.process({"k": [1]}, [2])
        step.advance(10)


def test_state_is_removed_with_the_last_window_that_needs_it(drive):
    step = drive(windows_step(Windows(size=10, slide=5)))
    step.process({"k": ["a"]}, [7])
    step.advance(10)
    assert step.operator.state
    step.advance(15)
    assert not step.operator.state
    assert step.operator.state.nbytes == 0


@pytest.mark.few(1)
def test_a_watermark_that_jumps_over_years_takes_no_work(drive):
    step = drive(windows_step(Windows(size=1_000, slide=1)))
    step.process({"k": ["a", "a"]}, [0, 10**15])
    assert len(step.advance(MAX_TIME)) == 2_000


def test_stream_without_event_time_says_what_to_do(drive):
    step = drive(windows_step(Windows(10, 10)))
    with pytest.raises(RecordError, match="operator `step`: it has windows, but its stream has no event time: give the source event_time="):
        step.process({"k": ["a"]})


def test_column_that_changes_its_type_is_refused_by_name(drive):
    step = drive(windows_step(Windows(10, 10), total=ef.sum("x")))
    step.process({"k": ["a"], "x": [1]}, [1])
    with pytest.raises(RecordError, match="operator `step`: column `x` was int64 and is now string"):
        step.process({"k": ["a"], "x": ["one"]}, [2])


def test_column_of_nulls_is_no_change_of_type(drive):
    step = drive(windows_step(Windows(10, 10), total=ef.sum("x")))
    step.process({"k": ["a"], "x": [1]}, [1])
    step.process({"k": ["a"], "x": pa.nulls(1)}, [2])
    assert [row["total"] for row in step.advance(10)] == [1]


records = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-100, 200)), max_size=40)


@given(
    rows=records,
    slide=st.integers(1, 20),
    parts=st.integers(1, 4),
    offset=st.integers(0, 30),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    combine=st.booleans(),
)
def test_counts_are_those_of_looking_at_every_window(drive, rows, slide, parts, offset, cuts, combine):
    windows = Windows(size=slide * parts - slide // 2, slide=min(slide, slide * parts - slide // 2), offset=offset)
    first, second = windows_step(windows).combined() if combine else (None, windows_step(windows))
    step, combiner = drive(second), None if first is None else drive(first)
    bounds = sorted({0, *(cut for cut in cuts if cut < len(rows)), len(rows)})
    for start, end in pairwise(bounds):
        (step if combiner is None else combiner.into(step)).process(
            {"k": [key for key, _ in rows[start:end]]}, [time for _, time in rows[start:end]]
        )
    expected = Counter(
        (key, start) for key, time in rows for start in range(time - windows.size + 1, time + 1) if (start - offset) % windows.slide == 0
    )
    found = {(row["k"], (row["window_start"] - at(0)) // timedelta(microseconds=1)): row["n"] for row in step.advance(MAX_TIME)}
    assert found == expected
