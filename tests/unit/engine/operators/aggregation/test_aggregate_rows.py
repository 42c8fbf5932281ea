"""Count windows, against slices of each key's rows."""

from __future__ import annotations

from statistics import median

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.operators.aggregation import aggregate_rows
from evenflow.engine.operators.aggregation.aggregate_rows import AggregateRows
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.time.row_windows import RowWindows


@pytest.fixture(scope="module", params=["memory", "lmdb", "server"])
def drive(request, drive_in):
    return drive_in(request.param)


def rows_step(size: int, every: int, **functions) -> AggregateRows:
    return AggregateRows(("k",), functions or {"n": ef.count(), "total": ef.sum("v")}, RowWindows(size, every))


def told(rows):
    return [(row["k"], row["window_end_row"], row["n"], row["total"]) for row in rows]


def test_a_key_has_a_result_over_its_last_rows_at_fixed_numbers_of_rows(drive):
    step = drive(rows_step(4, 2))
    assert told(step.process({"k": list("aaabaaa"), "v": [1, 2, 3, 10, 4, 5, 6]})) == [("a", 2, 2, 3), ("a", 4, 4, 10), ("a", 6, 4, 18)]
    assert told(step.process({"k": ["b"], "v": [20]})) == [("b", 2, 2, 30)]


def test_windows_follow_each_other_without_gaps_by_default(drive):
    step = drive(rows_step(3, 3))
    step.process({"k": ["a", "a"], "v": [1, 2]})
    assert told(step.process({"k": ["a"] * 5, "v": [3, 4, 5, 6, 7]})) == [("a", 3, 3, 6), ("a", 6, 3, 15)]


def test_rows_after_the_last_whole_window_give_no_result(drive):
    step = drive(rows_step(3, 3))
    step.process({"k": ["a"] * 5, "v": [1] * 5}, [1, 2, 3, 4, 5])
    assert step.advance(MAX_TIME) == []
    assert step.finish() == []


def test_result_has_the_event_time_of_the_row_that_completes_its_window(drive):
    step = drive(rows_step(2, 1))
    step.process({"k": ["a", "b", "a"], "v": [1, 2, 3]}, [30, 20, 10])
    assert step.times["out"] == [30, 20, 10]


def test_stream_without_event_time_has_results_without(drive):
    step = drive(rows_step(1, 1))
    assert told(step.process({"k": ["a"], "v": [1]})) == [("a", 1, 1, 1)]
    assert step.times["out"] == []


def test_first_and_last_without_event_time_are_those_that_arrived_so(drive):
    step = drive(rows_step(4, 2, first=ef.first("v"), last=ef.last("v")))
    results = [row for v in (7, 3, 9, 1, 8, 2) for row in step.process({"k": ["a"], "v": [v]})]
    assert [(row["first"], row["last"]) for row in results] == [(7, 3), (7, 1), (9, 2)]


def test_null_is_a_key(drive):
    step = drive(rows_step(2, 2))
    step.process({"k": pa.nulls(1), "v": [1]})
    assert told(step.process({"k": ["a", None], "v": [5, 2]})) == [(None, 2, 2, 3)]


def test_windows_that_together_have_many_panes_are_combined_some_at_a_time(drive, monkeypatch):
    monkeypatch.setattr(aggregate_rows, "_AT_ONCE", 7)
    step = drive(rows_step(5, 1))
    totals = [row["total"] for row in step.process({"k": ["a"] * 40, "v": list(range(40))})]
    assert totals == [sum(range(max(0, last - 4), last + 1)) for last in range(40)]


@given(
    rows=st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9)), max_size=60),
    every=st.integers(1, 5),
    more=st.integers(0, 9),
    cut=st.integers(1, 25),
)
def test_windows_are_slices_of_the_rows_of_each_key(drive, rows, every, more, cut):
    size = every + more
    step = drive(rows_step(size, every, n=ef.count(), total=ef.sum("v"), middle=ef.median("v"), all=ef.collect("v")))
    seen: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    expected, found = [], []
    for key, value in rows:
        seen[key].append(value)
        if len(seen[key]) % every == 0:
            window = seen[key][-size:]
            expected.append((key, len(seen[key]), len(window), sum(window), median(window), sorted(window)))
    for first in range(0, len(rows), cut):
        some = rows[first : first + cut]
        results = step.process({"k": [key for key, _ in some], "v": [value for _, value in some]})
        found += [(*told([row])[0], row["middle"], row["all"]) for row in results]
    assert found == expected


def test_state_keeps_no_more_than_the_rows_of_a_window(drive):
    step = drive(rows_step(6, 2, all=ef.collect("v")))
    for _ in range(20):
        step.process({"k": ["a"] * 3, "v": np.arange(3)})
    kept = sum(chunk.rows.column(chunk.rows.num_columns - 1).flatten().to_pylist() != [] for chunk in step.operator.state.snapshot())
    panes = [pane for chunk in step.operator.state.snapshot() for pane in chunk.rows.column("__pane").to_pylist()]
    assert kept == 1
    assert sorted(panes) == [-1, 28, 29]
