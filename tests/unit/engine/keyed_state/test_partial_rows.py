"""Rows of bytes hold all content of partial aggregates, for all types, and are converted when a type becomes known or widens."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.aggregates.partial_aggregates import PartialAggregator
from evenflow.engine.batch import Batch
from evenflow.engine.keyed_state.stored.partial_rows import PartialRows
from evenflow.engine.keys.encoding import encode_keys
from evenflow.state.errors import StateBackendError


class Longest(ef.Aggregate):
    """The longest list of values, by its sum."""

    output_type = "int64"

    def create(self):
        return []

    def add(self, accumulator, row):
        return [*accumulator, row["x"] is None]

    def merge(self, a, b):
        return [*a, *b]

    def finish(self, accumulator):
        return len(accumulator)


ORDERED = {"low": ef.min("x"), "high": ef.max("x"), "first": ef.first("x"), "last": ef.last("x"), "n": ef.count(), "known": ef.count("x")}
NUMBERS = {**ORDERED, "total": ef.sum("x"), "mean": ef.mean("x"), "q": ef.approx_quantile("x", 0.5), "distinct": ef.approx_distinct("x")}
VALUES = [
    pytest.param(NUMBERS, [3, None, 2**62, -5], pa.int64(), id="int64"),
    pytest.param(NUMBERS, [200, None, 0, 7], pa.uint8(), id="uint8"),
    pytest.param(NUMBERS, [0.5, None, -1e300, 2.0], pa.float64(), id="float64"),
    pytest.param(NUMBERS, [0.5, None, -1.0, 2.0], pa.float32(), id="float32"),
    pytest.param(NUMBERS, [Decimal("1.50"), None, Decimal("-7.25"), Decimal(0)], pa.decimal128(10, 2), id="decimal128"),
    pytest.param(NUMBERS, [Decimal("1.50"), None, Decimal(10) ** 40, Decimal(0)], pa.decimal256(60, 2), id="decimal256"),
    pytest.param(ORDERED, ["b", None, "", "z" * 1_000], pa.string(), id="string"),
    pytest.param(ORDERED, [b"b", None, b"", b"\0\0"], pa.binary(), id="binary"),
    pytest.param(ORDERED, [b"abc", None, b"\0\0\0", b"xyz"], pa.binary(3), id="fixed size binary"),
    pytest.param(ORDERED, [True, None, False, True], pa.bool_(), id="bool"),
    pytest.param(ORDERED, [dt.date(2020, 1, 1), None, dt.date(1950, 1, 1), dt.date(2020, 1, 2)], pa.date32(), id="date"),
    pytest.param(
        ORDERED, [dt.datetime(2020, 1, 1), None, dt.datetime(1950, 1, 1), dt.datetime(2021, 1, 1)], pa.timestamp("us"), id="timestamp"
    ),
    pytest.param(ORDERED, [None, None, None, None], pa.null(), id="nulls"),
    pytest.param({"own": Longest(), "n": ef.count()}, [1, None, 3, 4], pa.int64(), id="own"),
]


def partial_of(aggregator, values, kind, keys=("a", "b", "c", "a")):
    rows = pa.record_batch({"k": list(keys), "x": pa.array(values, kind)})
    encoded = encode_keys(rows, ("k",), "step")
    times = np.arange(len(values)) * 10
    return aggregator.aggregate(Batch(rows, times), encoded.codes, encoded.columns, encoded.count)


def results(aggregator, partial):
    columns = [*partial.keys, pa.array(partial.rows), *aggregator.results(partial)]
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True), key=str)


@pytest.mark.parametrize(("functions", "values", "kind"), VALUES)
def test_packed_rows_are_unpacked_unchanged(functions, values, kind):
    aggregator = PartialAggregator("step", ("k",), functions)
    rows, partial = PartialRows(aggregator), partial_of(aggregator, values, kind)
    packed = rows.pack(partial)
    assert all(type(row) is bytes for row in packed)
    assert results(aggregator, rows.unpack(partial.keys, packed)) == results(aggregator, partial)


@pytest.mark.parametrize(("functions", "values", "kind"), VALUES)
def test_partial_aggregates_are_merged_with_what_was_found_of_some_of_its_keys(functions, values, kind):
    aggregator = PartialAggregator("step", ("k",), functions)
    rows, old = PartialRows(aggregator), partial_of(aggregator, values, kind)
    new = partial_of(aggregator, values[::-1], kind, keys=("c", "a", "d", "e"))
    found = dict(zip(old.keys[0].to_pylist(), rows.pack(old), strict=True))
    merged = rows.merged(new, [found.get(key) for key in new.keys[0].to_pylist()])
    expected = {row[0]: row for row in results(aggregator, aggregator.combine([old, new]))}
    assert results(aggregator, merged) == sorted((expected[key] for key in "acde"), key=str)


@pytest.mark.slow
@given(kinds=st.lists(st.sampled_from([pa.null(), pa.int8(), pa.int64(), pa.float64()]), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_rows_of_older_bindings_are_carried_over_when_they_are_read(kinds):
    aggregator = PartialAggregator("step", ("k",), {**NUMBERS, "own": Longest()})
    rows, packed, keys, pieces = PartialRows(aggregator), [], [], []
    for place, kind in enumerate(kinds):
        values = [None, None] if kind == pa.null() else [place, None]
        partial = partial_of(aggregator, values, kind, keys=(f"{place}a", f"{place}b"))
        packed += rows.pack(partial)
        keys += partial.keys[0].to_pylist()
        pieces.append((values, kind, partial.keys[0].to_pylist()))
    found = rows.unpack([pa.array(keys)], packed)
    expected = [row for values, kind, names in pieces for row in results(aggregator, partial_of(aggregator, values, kind, names))]
    assert results(aggregator, found) == sorted(expected, key=str)


@pytest.mark.parametrize(
    "change", [lambda row: b"12345678" + row[8:], lambda row: row[:-1], lambda row: b""], ids=["types", "short", "nothing"]
)
def test_row_that_was_not_written_here_is_refused_with_the_operator(change):
    aggregator = PartialAggregator("step", ("k",), ORDERED)
    rows = PartialRows(aggregator)
    packed = rows.pack(partial_of(aggregator, [1, 2], pa.int64(), keys=("a", "b")))
    with pytest.raises(StateBackendError, match="operator `step`: its state holds a row that it has not written"):
        rows.unpack([pa.array(["a", "b"])], [packed[0], change(packed[1])])


def test_another_worker_reads_rows_once_it_knows_of_their_bindings():
    old, new = (PartialAggregator("step", ("k",), NUMBERS) for _ in range(2))
    theirs, ours = PartialRows(old), PartialRows(new)
    integers = partial_of(old, [1, 2], pa.int64(), keys=("a", "b"))
    packed = theirs.pack(integers)
    floats = partial_of(old, [0.5, 1.5], pa.float64(), keys=("c", "d"))
    packed += theirs.pack(floats)
    partial_of(new, [None], pa.null(), keys=("e",))
    ours.learn(theirs.about())
    keys = [pa.array(["a", "b", "c", "d"])]
    assert results(new, ours.unpack(keys, packed)) == results(old, theirs.unpack(keys, packed))
