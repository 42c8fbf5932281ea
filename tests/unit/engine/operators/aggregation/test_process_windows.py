"""Functions of whole windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from evenflow.engine.errors import RecordError
from evenflow.engine.keys.unkeyed import UNKEYED
from evenflow.engine.operators.aggregation.aggregate_sessions import AggregateSessions
from evenflow.engine.operators.aggregation.aggregate_windows import AggregateWindows
from evenflow.engine.operators.aggregation.process_windows import ROWS, ProcessWindows
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.time.sessions import SessionWindows
from evenflow.engine.time.windows import Windows


@pytest.fixture(scope="module", params=["memory", "lmdb", "server"])
def drive(request, drive_in):
    return drive_in(request.param)


def at(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def tell(key, window, rows):
    yield {"key": key, "start": window.start, "end": window.end, "rows": [row["v"] for row in rows]}


def in_windows(function=tell, size=10, slide=10, keys=("k",), **options) -> ProcessWindows:
    return ProcessWindows(AggregateWindows(keys, ROWS, Windows(size, slide)), function, **options)


def test_function_is_called_once_for_each_key_and_complete_window(drive):
    step = drive(in_windows())
    step.process({"k": ["a", "b", "a"], "v": [1, 2, 3]}, [0, 5, 9])
    step.process({"k": ["a"], "v": [4]}, [12])
    first = step.advance(10)
    assert sorted((row["key"], row["start"], row["end"], row["rows"]) for row in first) == [
        ("a", at(0), at(10), [1, 3]),
        ("b", at(0), at(10), [2]),
    ]
    assert [row["rows"] for row in step.advance(MAX_TIME)] == [[4]]
    assert step.times["out"] == [9, 9, 19]


def test_rows_come_in_the_order_of_event_time_and_then_of_their_values(drive):
    step = drive(in_windows())
    for value, time in ((5, 3), (9, 1), (2, 3), (None, 3), (1, 8)):
        step.process({"k": ["a"], "v": pa.array([value], pa.int64())}, [time])
    assert [row["rows"] for row in step.advance(10)] == [[9, 2, 5, None, 1]]


def test_rows_have_all_columns_and_their_types(drive):
    seen = []
    step = drive(in_windows(lambda key, window, rows: seen.extend(rows)))
    rows = {"k": ["a"], "t": [at(7)], "d": [at(0).date()], "f": [0.5], "b": [True], "x": [b"\x00"], "none": [None]}
    step.process(rows, [0])
    assert step.advance(10) == []
    assert seen == [{name: values[0] for name, values in rows.items()}]


def test_row_is_in_every_sliding_window_that_covers_it(drive):
    step = drive(in_windows(size=10, slide=5))
    step.process({"k": ["a"], "v": [1]}, [7])
    assert [(row["start"], row["rows"]) for row in step.advance(MAX_TIME)] == [(at(0), [1]), (at(5), [1])]


def test_sessions_are_whole_windows_too(drive):
    step = drive(ProcessWindows(AggregateSessions(("k",), ROWS, SessionWindows(10)), tell))
    step.process({"k": ["a", "a", "a"], "v": [1, 2, 3]}, [20, 0, 50])
    step.process({"k": ["a"], "v": [4]}, [10])
    assert [(row["start"], row["end"], row["rows"]) for row in step.advance(MAX_TIME)] == [
        (at(0), at(30), [2, 4, 1]),
        (at(50), at(60), [3]),
    ]


def test_without_keys_the_key_is_none(drive):
    step = drive(in_windows(keys=UNKEYED))
    step.process({"v": [1, 2]}, [3, 1])
    assert [(row["key"], row["rows"]) for row in step.advance(10)] == [(None, [2, 1])]


def test_late_rows_are_counted_and_go_out_as_they_came(drive):
    step = drive(in_windows())
    step.advance(10)
    step.process({"k": ["a"], "v": [1]}, [9])
    assert step.operator.late_records == 1
    assert step.rows["late"] == [{"k": "a", "v": 1}]


def picky(key, window, rows):
    yield {"n": len(rows)}
    if len(rows) == 2:
        raise ValueError("two")


def test_refused_window_is_dropped_as_a_whole(drive):
    step = drive(in_windows(picky, on_error="dead_letter"))
    step.process({"k": ["a", "a", "b"], "v": [1, 2, 3]}, [0, 1, 2])
    assert step.advance(10) == [{"n": 1}]
    (letter,) = step.rows["dead_letters"]
    assert (letter["key"], letter["error"], letter["message"]) == ('"a"', "ValueError", "two")
    assert letter["record"] == (
        '{"window_start": "1970-01-01T00:00:00+00:00", "window_end": "1970-01-01T00:00:00.000010+00:00", '
        '"rows": [{"k": "a", "v": 1}, {"k": "a", "v": 2}]}'
    )
    assert step.times["dead_letters"] == [9]
    assert step.operator.skipped_records == 1


def test_refused_window_stops_the_job_with_its_key_and_its_bounds(drive):
    step = drive(in_windows(picky))
    step.process({"k": ["a", "a"], "v": [1, 2]}, [0, 1])
    with pytest.raises(RecordError, match=r"operator `step`: picky raised ValueError: two\n  key: 'a'\n  record: \{'window_start'"):
        step.advance(10)


def test_result_of_another_type_refuses_its_window_only(drive):
    step = drive(in_windows(lambda key, window, rows: [{"v": rows[0]["v"] or "none"}], on_error="skip"))
    step.process({"k": ["a", "b", "c"], "v": pa.array([1, None, 3])}, [0, 1, 2])
    assert sorted(row["v"] for row in step.advance(10)) == [1, 3]
    assert step.operator.skipped_records == 1


def test_function_that_returns_no_rows_says_what_to_do(drive):
    step = drive(in_windows(lambda key, window, rows: {"n": 1}))
    step.process({"k": ["a"], "v": [1]}, [0])
    with pytest.raises(RecordError, match=r"returned \{'n': 1\}: yield rows, or return a list of them"):
        step.advance(10)


NESTED = {"k": ["a"], "v": [[1, 2]]}


def test_nested_columns_are_kept_in_memory(drive_in):
    step = drive_in("memory")(in_windows())
    step.process(NESTED, [0])
    assert [row["rows"] for row in step.advance(10)] == [[[1, 2]]]


@pytest.mark.parametrize("place", ["lmdb", "server"])
def test_nested_columns_are_refused_by_name_where_they_cannot_be_kept(drive_in, place):
    step = drive_in(place)(in_windows())
    with pytest.raises(RecordError, match=r"operator `step`: whole rows with nested columns \(v\) can be kept in memory only"):
        step.process(NESTED, [0])
