"""Session windows, against sessions that are merged row by row."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.errors import RecordError
from evenflow.engine.operators.aggregation.aggregate_sessions import AggregateSessions
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.time.sessions import SessionWindows


@pytest.fixture(scope="module", params=["memory", "lmdb", "server"])
def drive(request, drive_in):
    return drive_in(request.param)


def sessions_step(gap: int, **functions) -> AggregateSessions:
    return AggregateSessions(("k",), functions or {"n": ef.count()}, SessionWindows(gap))


def micros(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def counted(rows):
    return [(row["k"], micros(row["window_start"]), micros(row["window_end"]), row["n"]) for row in rows]


def test_session_ends_a_gap_after_its_last_row(drive):
    step = drive(sessions_step(10))
    step.process({"k": ["a", "a", "b"]}, [0, 7, 3])
    assert counted(step.advance(MAX_TIME)) == [("b", 3, 13, 1), ("a", 0, 17, 2)]
    assert step.times["out"] == [13, 17]


def test_rows_a_gap_apart_belong_together_and_further_apart_not(drive):
    step = drive(sessions_step(10))
    step.process({"k": ["a", "a", "b", "b"]}, [0, 10, 0, 11])
    assert sorted(counted(step.advance(MAX_TIME))) == [("a", 0, 20, 2), ("b", 0, 10, 1), ("b", 11, 21, 1)]


def test_session_is_not_emitted_before_the_watermark_is_greater_than_its_end(drive):
    step = drive(sessions_step(10))
    step.process({"k": ["a"]}, [0])
    assert step.advance(10) == []
    step.process({"k": ["a"]}, [10])
    assert step.advance(20) == []
    assert counted(step.advance(21)) == [("a", 0, 20, 2)]
    assert step.advance(MAX_TIME) == []


def test_row_between_two_sessions_merges_their_aggregates(drive):
    step = drive(sessions_step(10, n=ef.count(), low=ef.min("v"), last=ef.last("v"), all=ef.collect("v")))
    step.process({"k": ["a", "a", "b"], "v": [5, 3, 1]}, [0, 20, 0])
    step.process({"k": ["a"], "v": [9]}, [10])
    merged = step.advance(MAX_TIME)[-1]
    assert (merged["n"], merged["low"], merged["last"], merged["all"]) == (3, 3, 3, [5, 9, 3])


def test_snapshot_has_a_session_as_it_was_before_a_later_batch_extended_it(drive):
    step, restored = drive(sessions_step(10)), drive(sessions_step(10))
    step.process({"k": [7, 8, 8]}, [0, 0, 50])
    chunks = step.operator.state.snapshot()
    step.process({"k": [7, 8]}, [5, 55])
    for chunk in chunks:
        restored.operator.state.install(chunk)
    assert sorted(counted(restored.advance(MAX_TIME))) == [(7, 0, 10, 1), (8, 0, 10, 1), (8, 50, 60, 1)]
    assert sorted(counted(step.advance(MAX_TIME))) == [(7, 0, 15, 2), (8, 0, 10, 1), (8, 50, 65, 2)]


def test_row_that_makes_a_session_which_has_ended_is_late(drive):
    step = drive(sessions_step(10))
    step.advance(31)
    step.process({"k": ["a", "b"], "x": [1, 2]}, [20, 21])
    assert step.operator.late_records == 1
    assert step.rows["late"] == [{"k": "a", "x": 1}]
    assert step.times["late"] == [20]
    assert counted(step.advance(MAX_TIME)) == [("b", 21, 31, 1)]


def test_row_behind_the_watermark_that_joins_a_session_is_not_late(drive):
    step = drive(sessions_step(10))
    step.process({"k": ["a"]}, [25])
    step.advance(31)
    step.process({"k": ["a", "b"]}, [15, 15])
    assert step.operator.late_records == 1
    assert counted(step.advance(MAX_TIME)) == [("a", 15, 35, 2)]


def test_rows_of_one_batch_that_reach_a_session_together_are_not_late(drive):
    step = drive(sessions_step(10))
    step.process({"k": ["a"]}, [40])
    step.advance(45)
    step.process({"k": ["a", "a", "a"]}, [10, 30, 20])
    assert step.operator.late_records == 0
    assert counted(step.advance(MAX_TIME)) == [("a", 10, 50, 4)]


def test_long_session_within_which_another_began_is_one(drive):
    step = drive(sessions_step(10))
    for time in (0, 100, *range(10, 100, 10)):
        step.process({"k": ["a"]}, [time])
    assert counted(step.advance(MAX_TIME)) == [("a", 0, 110, 11)]


def test_null_is_a_key_and_keys_may_get_a_type_late(drive):
    step = drive(sessions_step(10))
    step.process({"k": pa.nulls(2)}, [0, 5])
    step.process({"k": ["a", None]}, [3, 40])
    assert Counter(counted(step.advance(MAX_TIME))) == Counter([(None, 0, 15, 2), (None, 40, 50, 1), ("a", 3, 13, 1)])


def test_the_state_of_a_session_is_removed_at_its_end(drive):
    step = drive(sessions_step(10, m=ef.median("v")))
    step.process({"k": ["a", "b"], "v": [1.0, 2.0]}, [0, 100])
    assert len(list(step.operator.state.snapshot())) == 1
    step.advance(MAX_TIME)
    assert list(step.operator.state.snapshot()) == []


def test_times_far_apart_do_not_overflow(drive):
    day, step = 86_400_000_000, drive(sessions_step(86_400_000_000))
    step.process({"k": ["a", "b", "a", "b"]}, [-60_000_000 * day // 100_000, 0, 2_900_000 * day, 2_900_000 * day + 5])
    assert len(step.advance(MAX_TIME)) == 4


def test_times_that_no_timestamp_can_name_are_refused(drive):
    step = drive(sessions_step(10))
    with pytest.raises(RecordError, match=r"operator `step`: a record of 9999-12-31T23:59:59\.999995"):
        step.process({"k": ["a"]}, [253_402_300_799_999_995])


def test_stream_without_event_time_says_what_to_do(drive):
    with pytest.raises(RecordError, match="operator `step`: it has windows, but its stream has no event time: give the source event_time="):
        drive(sessions_step(10)).process({"k": ["a"]})


class RowByRow:
    """Sessions as [key, first, last, rows], merged with each row."""

    def __init__(self, gap: int) -> None:
        self.gap, self.watermark = gap, -(10**9)
        self.sessions: list[tuple[str, int, int, int]] = []
        self.late = 0

    def row(self, key: str, time: int) -> None:
        near = [s for s in self.sessions if s[0] == key and s[1] - self.gap <= time <= s[2] + self.gap]
        merged = key, min([time, *(s[1] for s in near)]), max([time, *(s[2] for s in near)]), 1 + sum(s[3] for s in near)
        if merged[2] + self.gap < self.watermark:
            self.late += 1
        else:
            self.sessions = [*(s for s in self.sessions if s not in near), merged]

    def advance(self, watermark: int) -> list[tuple[str, int, int, int]]:
        self.watermark = watermark
        over = [s for s in self.sessions if s[2] + self.gap < watermark]
        self.sessions = [s for s in self.sessions if s not in over]
        return sorted((key, first, last + self.gap, n) for key, first, last, n in over)


@given(rows=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60), st.integers(0, 6)), max_size=40), gap=st.integers(1, 12))
def test_sessions_are_those_that_are_merged_row_by_row(drive, rows, gap):
    step, plain, watermark = drive(sessions_step(gap)), RowByRow(gap), 0
    for key, time, progress in rows:
        step.process({"k": [key]}, [time])
        plain.row(key, time)
        watermark += progress
        assert sorted(counted(step.advance(watermark))) == plain.advance(watermark)
    assert sorted(counted(step.advance(MAX_TIME))) == plain.advance(MAX_TIME)
    assert step.operator.late_records == plain.late


@given(rows=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 200)), min_size=1), gap=st.integers(1, 20), size=st.integers(1, 7))
def test_batches_may_be_cut_anywhere_and_combined_before(drive, rows, gap, size):
    operator = sessions_step(gap)
    combine, combined = operator.combined()
    plain, whole, behind = RowByRow(gap), drive(operator), drive(combined)
    before = drive(combine).into(behind)
    for key, time in rows:
        plain.row(key, time)
    for first in range(0, len(rows), size):
        batch = {"k": [key for key, _ in rows[first : first + size]]}, [time for _, time in rows[first : first + size]]
        whole.process(*batch)
        before.process(*batch)
    expected = plain.advance(MAX_TIME)
    assert sorted(counted(whole.advance(MAX_TIME))) == expected
    assert sorted(counted(behind.advance(MAX_TIME))) == expected
