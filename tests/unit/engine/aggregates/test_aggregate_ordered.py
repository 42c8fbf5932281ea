from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.aggregates.base import AggregateFunction
from evenflow.engine.batch import Batch

ONE = np.array([0])


def batch(values: list[Any], times: list[int] | None = None) -> Batch:
    kind = None if any(value is not None for value in values) else pa.int64()
    return Batch(pa.record_batch({"x": pa.array(values, kind)}), None if times is None else np.array(times, np.int64))


def result(function: AggregateFunction, rows: Batch) -> Any:
    accumulator = function.bind(rows.rows.schema, "op")
    return accumulator.finish(accumulator.partial(rows, np.zeros(rows.num_rows, np.int64), 1)).to_pylist()[0]


def test_event_time_decides_not_arrival() -> None:
    rows = batch(["late", "early", "latest"], [2, 1, 3])
    assert result(ef.first("x"), rows) == "early"
    assert result(ef.last("x"), rows) == "latest"


def test_the_value_decides_between_several_rows_of_one_time() -> None:
    rows = batch([2, 3, 1], [5, 5, 5])
    assert result(ef.first("x"), rows) == 1
    assert result(ef.last("x"), rows) == 3


def test_rows_without_a_value_are_passed_over() -> None:
    rows = batch([None, 7, None], [1, 2, 3])
    assert result(ef.first("x"), rows) == 7
    assert result(ef.last("x"), rows) == 7


@pytest.mark.parametrize("values", [[3, 1, 2], ["c", "a", "b"]], ids=["numbers", "objects"])
def test_without_event_time_arrival_decides(values: list[Any]) -> None:
    assert result(ef.first("x"), batch([None, *values, None])) == values[0]
    assert result(ef.last("x"), batch([None, *values, None])) == values[-1]


@given(st.lists(st.lists(st.none() | st.integers(-5, 5), max_size=4), min_size=1, max_size=5), st.data())
def test_without_event_time_the_left_side_of_a_merge_came_first(batches: list[list[int | None]], data: st.DataObject) -> None:
    present = [value for values in batches for value in values if value is not None]
    for function, expected in ((ef.first("x"), present[:1]), (ef.last("x"), present[-1:])):
        accumulator = function.bind(pa.schema({"x": pa.int64()}), "op")
        pieces = [accumulator.partial(batch(values), np.zeros(len(values), np.int64), 1) for values in batches]
        while len(pieces) > 1:
            at = data.draw(st.integers(0, len(pieces) - 2))
            left, right = pieces[at : at + 2]
            both = tuple(np.concatenate([a, b]) for a, b in zip(left, right, strict=True))
            pieces[at : at + 2] = [
                data.draw(st.sampled_from([accumulator.merge(left, right), accumulator.combine(both, np.array([0, 0]), 1)]))
            ]
        assert accumulator.finish(accumulator.from_arrow(accumulator.to_arrow(pieces[0]))).to_pylist() == (expected or [None])


def test_the_earliest_and_the_latest_possible_event_times_count() -> None:
    rows = batch([1, 2], [-(2**63) + 1, 2**63 - 1])
    for function, expected in ((ef.first("x"), 1), (ef.last("x"), 2)):
        accumulator = function.bind(rows.rows.schema, "op")
        one, two = (accumulator.partial(rows.slice(at, 1), ONE * 0, 1) for at in (0, 1))
        assert accumulator.finish(accumulator.merge(two, one)).to_pylist() == [expected]
