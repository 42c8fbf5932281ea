from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.aggregates.base import AggregateFunction
from evenflow.engine.batch import Batch
from evenflow.engine.errors import FlowError, ProtocolError, RecordError

ZERO = np.zeros(2, np.int64)

READERS = [
    ef.count("x"),
    ef.sum("x"),
    ef.mean("x"),
    ef.min("x"),
    ef.max("x"),
    ef.first("x"),
    ef.last("x"),
    ef.approx_distinct("x"),
    ef.approx_quantile("x", 0.5),
]


def batch(column: pa.Array, name: str = "x") -> Batch:
    return Batch(pa.record_batch({name: column}))


@pytest.mark.parametrize("function", READERS, ids=str)
def test_a_missing_column_is_named_with_those_that_are_there(function: AggregateFunction) -> None:
    with pytest.raises(RecordError, match=r"operator `totals`: \w+\(`x`\): there is no column `x`; there are: a, b"):
        function.bind(pa.schema({"a": pa.int64(), "b": pa.int64()}), "totals")


@pytest.mark.parametrize("function", READERS, ids=str)
def test_a_column_that_goes_missing_is_an_error(function: AggregateFunction) -> None:
    accumulator = function.bind(pa.schema({"x": pa.int64()}), "totals")
    with pytest.raises(RecordError, match="there is no column `x`; there are: y"):
        accumulator.partial(batch(pa.array([1, 2]), "y"), ZERO, 1)


def test_a_name_that_two_columns_have_is_an_error() -> None:
    with pytest.raises(RecordError, match="there is more than one column `x`"):
        ef.sum("x").bind(pa.schema([("x", pa.int64()), ("x", pa.int64())]), "totals")


@pytest.mark.parametrize(
    ("function", "kind", "accepted"),
    [
        (ef.sum("x"), pa.bool_(), "integers, floats, decimals and durations"),
        (ef.sum("x"), pa.string(), "integers, floats, decimals and durations"),
        (ef.mean("x"), pa.duration("s"), "integers, floats and decimals"),
        (ef.min("x"), pa.list_(pa.int64()), "integers, floats, decimals, booleans, strings"),
        (ef.max("x"), pa.struct({"a": pa.int64()}), "integers, floats, decimals, booleans, strings"),
        (ef.first("x"), pa.month_day_nano_interval(), "integers, floats, decimals, booleans, strings"),
        (ef.approx_distinct("x"), pa.list_(pa.int64()), "numbers, booleans, strings"),
        (ef.approx_quantile("x", 0.5), pa.timestamp("us"), "integers, floats and decimals"),
    ],
    ids=str,
)
def test_a_type_that_cannot_be_used_is_named_with_those_that_can(function: AggregateFunction, kind: pa.DataType, accepted: str) -> None:
    message = rf"operator `totals`: \w+\(`x`\): the column is of type {re.escape(str(kind))}; \w+ works on {accepted}"
    with pytest.raises(RecordError, match=message):
        function.bind(pa.schema({"x": kind}), "totals")


@pytest.mark.parametrize("function", READERS, ids=str)
def test_a_column_of_nulls_alone_can_be_read(function: AggregateFunction) -> None:
    accumulator = function.bind(pa.schema({"x": pa.null()}), "totals")
    (result,) = accumulator.finish(accumulator.partial(batch(pa.nulls(2)), ZERO, 1)).to_pylist()
    assert not result


def test_nulls_of_a_column_of_nulls_are_not_counted() -> None:
    accumulator = ef.count("x").bind(pa.schema({"x": pa.null()}), "totals")
    assert accumulator.finish(accumulator.partial(batch(pa.nulls(2)), ZERO, 1)).to_pylist() == [0]


def test_later_batches_may_have_another_type_whose_values_fit() -> None:
    accumulator = ef.sum("x").bind(pa.schema({"x": pa.int64()}), "totals")
    for column in (pa.array([1, 2], pa.int8()), pa.array([1.0, 2.0]), pa.array([1, 2]).dictionary_encode()):
        assert accumulator.finish(accumulator.partial(batch(column), ZERO, 1)).to_pylist() == [3]
    assert accumulator.finish(accumulator.partial(batch(pa.nulls(2)), ZERO, 1)).to_pylist() == [None]


@pytest.mark.parametrize("column", [pa.array([1.5, 2.5]), pa.array([[1], [2]])], ids=["fraction", "list"])
def test_values_that_do_not_fit_the_first_type_are_an_error(column: pa.Array) -> None:
    accumulator = ef.sum("x").bind(pa.schema({"x": pa.int64()}), "totals")
    with pytest.raises(RecordError, match=r"operator `totals`: sum\(`x`\): the column was of type int64 at first and is (double|list)"):
        accumulator.partial(batch(column), ZERO, 1)


def test_dictionaries_are_read_as_their_values() -> None:
    column = pa.array(["b", None, "a"]).dictionary_encode()
    accumulator = ef.min("x").bind(pa.schema({"x": column.type}), "totals")
    assert accumulator.output_type == pa.string()
    assert accumulator.finish(accumulator.partial(batch(column), np.zeros(3, np.int64), 1)).to_pylist() == ["a"]


def test_slices_of_a_batch_are_read_from_their_start() -> None:
    rows = Batch(pa.record_batch({"x": pa.array([9, None, 1, 2]).cast(pa.decimal128(38, 2))})).slice(2, 2)
    accumulator = ef.sum("x").bind(rows.rows.schema, "totals")
    assert accumulator.finish(accumulator.partial(rows, ZERO, 1)).to_pylist() == [3]


@pytest.mark.parametrize("function", READERS, ids=str)
def test_state_of_other_types_is_refused(function: AggregateFunction) -> None:
    accumulator = function.bind(pa.schema({"x": pa.int64()}), "totals")
    with pytest.raises(ProtocolError, match=r"operator `totals`: expected aggregate state of types \(.+\), got \(bool\)"):
        accumulator.from_arrow([pa.array([True])])


@pytest.mark.parametrize(
    "make", [ef.count, ef.sum, ef.mean, ef.min, ef.max, ef.first, ef.last, ef.approx_distinct], ids=lambda f: f.__name__
)
def test_a_column_is_named_by_a_string(make: type) -> None:
    with pytest.raises(FlowError, match=rf'{make.__name__} takes the name of a column, as in {make.__name__}\("delay"\); got 3'):
        make(3)


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan"), True, "0.5"])
def test_a_quantile_is_a_fraction(q: float) -> None:
    with pytest.raises(FlowError, match="approx_quantile: `q` must be a number from 0 to 1"):
        ef.approx_quantile("x", q)


def test_errors_out_of_reach_are_refused() -> None:
    with pytest.raises(FlowError, match=r"approx_quantile: `relative_error` must be a number from 0\.0001 to 0\.5"):
        ef.approx_quantile("x", 0.5, relative_error=0)
    with pytest.raises(FlowError, match=r"approx_distinct: `relative_error` must be a number from 0\.005 to 0\.25"):
        ef.approx_distinct("x", relative_error=1)
