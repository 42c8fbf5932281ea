"""The first rows by a column, and the order of rows that are equal in it."""

from __future__ import annotations

import pickle
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.aggregates.base import AggregateFunction
from evenflow.engine.batch import Batch

BIDS = [
    {"k": 1, "price": 5, "bidder": "a", "ts": 1},
    {"k": 1, "price": 9, "bidder": "b", "ts": 2},
    {"k": 1, "price": 9, "bidder": "a", "ts": 3},
    {"k": 1, "price": None, "bidder": "c", "ts": 4},
    {"k": 1, "price": 7, "bidder": None, "ts": 5},
    {"k": 1, "price": 7, "bidder": "z", "ts": 6},
]
SCHEMA = pa.schema([("k", pa.int64()), ("price", pa.int64()), ("bidder", pa.string()), ("ts", pa.int64())])


def result(function: AggregateFunction, rows: list[dict[str, Any]] = BIDS, schema: pa.Schema = SCHEMA) -> Any:
    accumulator = pickle.loads(pickle.dumps(function)).beside(("k",)).bind(schema, "op")
    batch = Batch(pa.RecordBatch.from_pylist(rows, schema))
    return accumulator.finish(accumulator.partial(batch, np.zeros(len(rows), np.int64), 1)).to_pylist()[0]


def times(rows: list[dict[str, Any]]) -> list[int]:
    return [row["ts"] for row in rows]


def test_struct_has_all_columns_but_the_keys() -> None:
    assert result(ef.top(1, "price")) == [{"price": 9, "bidder": "a", "ts": 3}]
    assert result(ef.top(1, "price", columns=["ts"])) == [{"ts": 2}]


@pytest.mark.slow
def test_equal_rows_are_ordered_by_all_columns_with_nulls_last_however_they_come() -> None:
    for rows in permutations(BIDS):
        assert times(result(ef.top(4, "price"), list(rows))) == [3, 2, 6, 5]


def test_ties_of_the_last_place_are_all_there() -> None:
    assert times(result(ef.top(3, "price", ties=True))) == [3, 2, 6, 5]
    assert times(result(ef.top(2, "price", ties=True))) == [3, 2]
    assert times(result(ef.top(1, "price", ties=True))) == [3, 2]
    assert times(result(ef.top(100, "price", ties=True))) == [3, 2, 6, 5, 1]


def test_several_columns_each_rise_or_fall() -> None:
    assert times(result(ef.top(3, [("price", "descending"), ("ts", "ascending")]))) == [2, 3, 5]
    assert times(result(ef.top(2, [("bidder", "ascending"), ("price", "descending")]))) == [3, 1]
    assert times(result(ef.top(1, [("bidder", "ascending"), ("price", "descending")], ties=True))) == [3]


def test_rows_without_a_by_are_skipped_and_no_rows_give_null() -> None:
    assert result(ef.top(3, "price"), BIDS[3:4]) is None
    assert result(ef.max_by("bidder", "price"), BIDS[3:4]) is None


def test_by_may_be_a_key_or_no_column_of_the_struct() -> None:
    assert times(result(ef.top(1, "k", columns=["ts"]))) == [1]
    assert result(ef.top(1, "ts", columns=["bidder"])) == [{"bidder": "z"}]


def test_value_of_the_largest_and_of_the_smallest_by() -> None:
    assert result(ef.max_by("bidder", "price")) == "b"
    assert result(ef.min_by("bidder", "price")) == "a"
    assert result(ef.max_by("ts", "bidder")) == 6
    assert result(ef.min_by("ts", "bidder")) == 1
    assert result(ef.max_by("bidder", "price", where=ef.col("ts") > 4)) == "z"


def test_types_that_widen_keep_the_rows() -> None:
    function = ef.top(2, "price", columns=["price", "bidder"]).beside(("k",))
    narrow = pa.schema([("k", pa.int64()), ("price", pa.int32()), ("bidder", pa.null())])
    early = function.bind(narrow, "op")
    late = function.bind(pa.schema([("bidder", pa.large_string()), ("price", pa.float64()), ("k", pa.int64())]), "op")
    rows = pa.record_batch([pa.array([1, 1]), pa.array([3, 4], pa.int32()), pa.nulls(2)], schema=narrow)
    parts = late.carried(early.partial(Batch(rows), np.zeros(2, np.int64), 1), early)
    assert late.finish(parts).to_pylist() == [[{"bidder": None, "price": 4.0}, {"bidder": None, "price": 3.0}]]
