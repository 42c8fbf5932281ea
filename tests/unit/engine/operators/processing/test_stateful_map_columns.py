"""A function on all of a batch's rows, sorted by key."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.errors import RecordError
from evenflow.engine.functions.key_rows import KeyRows
from evenflow.engine.operators.processing.stateful_map_columns import StatefulMapColumns

COUNT = {"n": np.dtype("int64")}


@pytest.fixture(scope="module", params=["memory", "lmdb", "server"])
def drive(request, drive_in):
    return drive_in(request.param)


def counting(state, rows):
    n = rows.running_count(state["n"])
    return {"n": rows.last(n)}, {"k": rows["k"], "n": n}


def test_state_goes_on_from_batch_to_batch(drive):
    step = drive(StatefulMapColumns(("k",), counting, COUNT))
    step.process({"k": ["a", "b", "a"]})
    assert sorted((row["k"], row["n"]) for row in step.process({"k": ["b", "a", "c"]})) == [("a", 3), ("b", 2), ("c", 1)]


def test_rows_are_grouped_by_key_in_arrival_order_and_keep_their_times(drive):
    seen = {}

    def look(state, rows):
        seen.update(v=rows["v"].tolist(), lengths=rows.lengths.tolist())
        return state, {"v": rows["v"]}

    step = drive(StatefulMapColumns(("k",), look, COUNT))
    step.process({"k": ["a", "b", "a"], "v": [1, 2, 3]}, [10, 20, 30])
    assert seen == {"v": [1, 3, 2], "lengths": [2, 1]}
    assert step.times["out"] == [10, 30, 20]


def test_a_mask_selects_rows_with_their_times(drive):
    step = drive(StatefulMapColumns(("k",), lambda state, rows: (state, rows.where(rows["v"] > 1)), COUNT))
    assert step.process({"k": ["a", "b", "a"], "v": [1, 2, 3]}, [10, 20, 30]) == [{"k": "a", "v": 3}, {"k": "b", "v": 2}]
    assert step.times["out"] == [30, 20]


def test_a_function_may_return_a_row_per_key_with_the_time_of_its_last(drive):
    def total(state, rows):
        n = state["n"] + np.add.reduceat(rows["v"], rows.starts)
        return {"n": n}, rows.where(rows.is_last, total=rows.spread(n))

    step = drive(StatefulMapColumns(("k",), total, COUNT))
    results = step.process({"k": ["a", "b", "a"], "v": [1, 2, 3]}, [10, 20, 30])
    assert results == [{"k": "a", "v": 3, "total": 4}, {"k": "b", "v": 2, "total": 2}]
    assert step.times["out"] == [30, 20]
    assert step.process({"k": ["b"], "v": [5]}, [40]) == [{"k": "b", "v": 5, "total": 7}]


def test_function_gets_only_the_columns_that_it_wants(drive):
    seen = []
    step = drive(StatefulMapColumns(("k",), lambda state, rows: (seen.extend(rows.columns) or state, None), COUNT, ("v",)))
    assert step.process({"k": ["a"], "v": [1], "w": [2]}) == []
    assert seen == ["v"]


def test_state_grows_beyond_its_first_size(drive):
    step = drive(StatefulMapColumns(("k",), counting, COUNT))
    step.process({"k": list(range(3000))})
    assert {row["n"] for row in step.process({"k": list(range(3000))})} == {2}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param(lambda state, rows: (state, {"v": rows["v"][:1]}), "returned 1 rows for 2", id="fewer rows"),
        pytest.param(lambda state, rows: (state, {"v": rows["v"], "w": rows["v"][:1]}), "different lengths", id="ragged"),
        pytest.param(
            lambda state, rows: ({}, None), "returned a state of no columns: return a dict of the arrays n", id="state without a column"
        ),
        pytest.param(lambda state, rows: 1 / 0, "raised ZeroDivisionError", id="raises"),
    ],
)
def test_wrong_result_names_the_operator_and_what_came(drive, function, message):
    with pytest.raises(RecordError, match=f"(?s)operator `step`: .*{message}"):
        drive(StatefulMapColumns(("k",), function, COUNT)).process({"k": ["a", "a"], "v": [1, 2]})


def test_missing_column_is_named(drive):
    with pytest.raises(RecordError, match="operator `step`: no column `w`; there are: k"):
        drive(StatefulMapColumns(("k",), counting, COUNT, ("w",))).process({"k": ["a"]})


@given(lengths=st.lists(st.integers(1, 80), min_size=1, max_size=6), data=st.data())
def test_running_sums_are_those_of_adding_one_by_one(lengths, data):
    total = sum(lengths)
    values = np.array(data.draw(st.lists(st.floats(-1e6, 1e6), min_size=total, max_size=total)))
    start = np.array(data.draw(st.lists(st.floats(-1e6, 1e6), min_size=len(lengths), max_size=len(lengths))))
    expected, place = [], 0
    for length, sum_ in zip(lengths, start.tolist(), strict=True):
        running = sum_
        for value in values[place : place + length].tolist():
            running = value + running
            expected.append(running)
        place += length
    assert KeyRows({"v": values}, np.array(lengths)).running_sum("v", start).tolist() == expected
