"""Running aggregates: an update per changed key and batch, or one row per key at the end."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.errors import RecordError
from evenflow.engine.operators.aggregation.aggregate_running import AggregateRunning


@pytest.fixture(scope="module", params=["memory", "lmdb", "server"])
def drive(request, drive_in):
    return drive_in(request.param)


def step_of(drive, *, updates=True, keys=("k",), **functions):
    return drive(AggregateRunning(keys, functions or {"n": ef.count()}, updates=updates))


def test_update_has_a_row_per_key_that_the_batch_changed(drive):
    step = step_of(drive)
    assert step.process({"k": ["a", "b", "a"]}) == [{"k": "a", "n": 2}, {"k": "b", "n": 1}]
    assert step.process({"k": ["b"]}) == [{"k": "b", "n": 2}]
    assert step.finish() == []


def test_final_comes_once_per_key_at_the_end(drive):
    step = step_of(drive, updates=False)
    assert step.process({"k": ["a", "b", "a"]}) == []
    assert step.process({"k": ["c", "a"]}) == []
    assert sorted(step.finish(), key=str) == [{"k": "a", "n": 3}, {"k": "b", "n": 1}, {"k": "c", "n": 1}]


def test_stream_without_rows_has_no_final_rows(drive):
    assert step_of(drive, updates=False).finish() == []


def test_update_has_the_newest_event_time_of_its_rows(drive):
    step = step_of(drive)
    step.process({"k": ["a", "b", "a"]}, [5, 9, 3])
    assert step.times["out"] == [5, 9]


def test_null_is_a_key_also_in_a_composite_one(drive):
    step = step_of(drive, updates=False, keys=("k", "j"))
    step.process({"k": ["a", None, None, "a"], "j": [1, None, 1, 1]})
    assert {(row["k"], row["j"], row["n"]) for row in step.finish()} == {("a", 1, 2), (None, None, 1), (None, 1, 1)}


def test_keys_that_were_all_null_at_first_may_get_a_type(drive):
    step = step_of(drive, updates=False)
    step.process({"k": pa.nulls(2)})
    step.process({"k": ["a", None]})
    assert {(row["k"], row["n"]) for row in step.finish()} == {("a", 1), (None, 3)}


def test_composite_key_may_be_null_now_in_one_column_and_then_in_the_other(drive):
    step = step_of(drive, updates=False, keys=("k", "j"))
    step.process({"k": ["a"], "j": pa.nulls(1)})
    step.process({"k": pa.nulls(1), "j": ["b"]})
    assert {(row["k"], row["j"], row["n"]) for row in step.finish()} == {("a", None, 1), (None, "b", 1)}


def test_zero_and_minus_zero_are_one_key(drive):
    step = step_of(drive, updates=False)
    step.process({"k": [0.0, -0.0, 0.0]})
    step.process({"k": [-0.0]})
    assert step.finish() == [{"k": 0.0, "n": 4}]


def test_missing_key_column_is_named_with_those_there_are(drive):
    with pytest.raises(RecordError, match="operator `step`: no key column `k`; there are: a, b"):
        step_of(drive).process({"a": [1], "b": [2]})


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(pa.array([[1]]), id="list"),
        pytest.param(pa.array([{"a": 1}]), id="struct"),
    ],
)
def test_value_that_can_not_be_a_key_is_refused(drive, column):
    with pytest.raises(RecordError, match=r"operator `step`: .*can't be"):
        step_of(drive).process({"k": column})


def test_state_grows_with_the_keys(drive):
    step = step_of(drive)
    step.process({"k": list(range(10))})
    before = step.operator.state.nbytes
    step.process({"k": list(range(5000))})
    assert step.operator.state.nbytes > before
    assert step.process({"k": [4999, 3]}) == [{"k": 4999, "n": 2}, {"k": 3, "n": 3}]


@given(
    batches=st.lists(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(-5, 5)), min_size=1), max_size=6),
    combine=st.booleans(),
    updates=st.booleans(),
)
def test_sums_are_those_of_adding_row_by_row(drive, batches, combine, updates):
    operator = AggregateRunning(("k",), {"n": ef.count(), "total": ef.sum("v"), "low": ef.min("v")}, updates=updates)
    combiner, step = (drive(operator.combined()[0]), drive(operator.combined()[1])) if combine else (None, drive(operator))
    for batch in batches:
        rows = {"k": pa.array([key for key, _ in batch], pa.string()), "v": [value for _, value in batch]}
        if combiner is None:
            step.process(rows)
        else:
            combiner.into(step).process(rows)
    step.finish()
    last = {row["k"]: (row["n"], row["total"], row["low"]) for row in step.rows["out"]}
    everything = [pair for batch in batches for pair in batch]
    values = {key: [v for k, v in everything if k == key] for key, _ in everything}
    assert last == {key: (len(vs), sum(vs), min(vs)) for key, vs in values.items()}
    assert updates or len(step.rows["out"]) == len(last)
