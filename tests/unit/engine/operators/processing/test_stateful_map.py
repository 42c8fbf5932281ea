"""A function with a state per key, row by row."""

from __future__ import annotations

import pytest

from evenflow.engine.errors import RecordError
from evenflow.engine.operators.processing.stateful_map import StatefulMap


def step_of(drive, function, keys=("k",)):
    return drive(StatefulMap(keys, function))


def running(state, row):
    seen = [*(state or []), row["v"]]
    return seen, {"k": row["k"], "seen": seen}


def test_function_sees_the_rows_of_a_key_in_arrival_order(drive):
    step = step_of(drive, running)
    step.process({"k": ["a", "b", "a"], "v": [1, 2, 3]})
    assert step.process({"k": ["b", "a"], "v": [4, 5]}) == [{"k": "b", "seen": [2, 4]}, {"k": "a", "seen": [1, 3, 5]}]


def test_state_of_a_new_key_is_none(drive):
    states = []
    step = step_of(drive, lambda state, row: (states.append(state) or row["v"], None))
    step.process({"k": ["a", "b", "a"], "v": [1, 2, 3]})
    assert states == [None, None, 1]


def test_state_of_none_forgets_the_key(drive):
    step = step_of(drive, lambda state, row: (None if row["v"] == 0 else (state or 0) + 1, {"state": state}))
    rows = step.process({"k": ["a"] * 4, "v": [1, 1, 0, 1]})
    assert [row["state"] for row in rows] == [None, 1, 2, None]
    step.process({"k": ["a"], "v": [0]})
    assert step.operator.state.nbytes == step_of(drive, running).operator.state.nbytes


def test_result_of_none_is_no_row_and_the_others_keep_their_times(drive):
    step = step_of(drive, lambda state, row: (1, row if row["v"] > 1 else None))
    assert step.process({"k": ["a", "b", "c"], "v": [2, 1, 3]}, [10, 20, 30]) == [{"k": "a", "v": 2}, {"k": "c", "v": 3}]
    assert step.times["out"] == [10, 30]


def test_batch_without_results_emits_nothing(drive):
    assert step_of(drive, lambda state, row: (1, None)).process({"k": ["a"], "v": [1]}) == []


def test_null_is_a_key(drive):
    step = step_of(drive, running)
    rows = step.process({"k": [None, "a", None], "v": [1, 2, 3]})
    assert [row["seen"] for row in rows] == [[1], [2], [1, 3]]


def test_composite_key_has_one_state(drive):
    step = step_of(drive, lambda state, row: ((state or 0) + 1, {"n": (state or 0) + 1}), ("k", "v"))
    assert [row["n"] for row in step.process({"k": ["a", "a", "a"], "v": [1, 2, 1]})] == [1, 1, 2]


def test_plain_results_become_the_column_item(drive):
    assert step_of(drive, lambda state, row: (1, row["v"])).process({"k": ["a"], "v": [7]}) == [{"item": 7}]


def test_error_names_operator_function_key_and_row(drive):
    def divide(state, row):
        return 1, {"q": 1 // row["v"]}

    step = step_of(drive, divide)
    with pytest.raises(RecordError) as caught:
        step.process({"k": ["a", "b"], "v": [1, 0]})
    assert (caught.value.operator, caught.value.key, caught.value.record) == ("step", "b", {"k": "b", "v": 0})
    assert "divide raised ZeroDivisionError" in str(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_function_that_forgets_to_return_a_pair_is_named(drive):
    with pytest.raises(RecordError, match=r"(?s)operator `step`: .* returned None \(NoneType\): return a tuple \(state, row\).*key: 'a'"):
        step_of(drive, lambda state, row: None).process({"k": ["a"], "v": [1]})


def test_missing_key_column_is_named(drive):
    with pytest.raises(RecordError, match="operator `step`: no key column `k`; there are: v"):
        step_of(drive, running).process({"v": [1]})
