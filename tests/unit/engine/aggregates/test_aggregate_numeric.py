from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.aggregates.base import AggregateFunction
from evenflow.engine.aggregates.numbers.exact import ExactAddends
from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError


def result(function: AggregateFunction, column: pa.Array) -> Any:
    accumulator = function.bind(pa.schema({"x": column.type}), "totals")
    parts = accumulator.partial(Batch(pa.record_batch({"x": column})), np.zeros(len(column), np.int64), 1)
    return accumulator.finish(parts).to_pylist()[0]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_sums_of_any_integers_are_exact(values: list[int]) -> None:
    sums = ExactAddends(pa.int64())
    limbs = sums.by_group(pa.array(values, pa.int64()), np.zeros(len(values), np.int64), 1)
    assert sums.to_ints(limbs) == [sum(values)]
    assert sums.to_float(limbs)[0] == pytest.approx(sum(values), rel=1e-15)


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_sums_of_any_unsigned_integers_are_exact(values: list[int]) -> None:
    sums = ExactAddends(pa.uint64())
    assert sums.to_ints(sums.by_group(pa.array(values, pa.uint64()), np.zeros(len(values), np.int64), 1)) == [sum(values)]


@pytest.mark.parametrize("kind", [pa.decimal128(38, 3), pa.decimal256(76, 3)], ids=str)
@given(data=st.data())
def test_sums_of_any_decimals_are_exact(kind: pa.DataType, data: st.DataObject) -> None:
    limit = 10**kind.precision - 1
    values = data.draw(st.lists(st.integers(-limit, limit)))
    sums = ExactAddends(kind)
    column = pa.array([Decimal(f"{value}e-3") for value in values], kind)
    assert sums.to_ints(sums.by_group(column, np.zeros(len(values), np.int64), 1)) == [sum(values)]


def test_a_sum_may_leave_int64_on_the_way() -> None:
    assert result(ef.sum("x"), pa.array([2**63 - 1, 2**63 - 1, -(2**63) + 1])) == 2**63 - 1
    assert result(ef.sum("x"), pa.array([-(2**63), -1, 1])) == -(2**63)


@pytest.mark.parametrize("values", [[2**63 - 1, 1], [-(2**63), -1], [2**62] * 4, [2**62] * 1000])
def test_a_sum_beyond_int64_is_an_error(values: list[int]) -> None:
    message = rf"operator `totals`: sum\(`x`\) of one group is {sum(values)}, which does not fit int64; sum it as a float or a decimal"
    with pytest.raises(RecordError, match=message):
        result(ef.sum("x"), pa.array(values))


def test_a_sum_of_unsigned_integers_beyond_int64_is_an_error() -> None:
    with pytest.raises(RecordError, match=f"is {2**63}, which does not fit int64"):
        result(ef.sum("x"), pa.array([2**63], pa.uint64()))


@pytest.mark.parametrize("kind", [pa.decimal128(38, 2), pa.decimal256(76, 2)], ids=str)
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_sum_beyond_38_or_76_digits_is_an_error(kind: pa.DataType, sign: str) -> None:
    largest = Decimal(f"{sign}{'9' * kind.precision}e-2")
    assert result(ef.sum("x"), pa.array([largest], kind)) == largest
    with pytest.raises(
        RecordError, match=rf"is {sign}1{'0' * kind.precision}e-2, which does not fit {kind.__class__.__name__[:7].lower()}"
    ):
        result(ef.sum("x"), pa.array([largest, Decimal(f"{sign}0.01")], kind))


def test_the_mean_of_integers_whose_sum_leaves_int64_is_right() -> None:
    assert result(ef.mean("x"), pa.array([2**63 - 1, 2**63 - 3])) == float(2**63 - 2)


def test_decimals_keep_their_scale() -> None:
    accumulator = ef.sum("x").bind(pa.schema({"x": pa.decimal128(5, 2)}), "totals")
    assert accumulator.output_type == pa.decimal128(38, 2)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_sums_of_floats_are_as_good_as_float64(values: list[float]) -> None:
    error = 1e-16 * len(values) * math.fsum(map(abs, values))
    assert result(ef.sum("x"), pa.array(values)) == pytest.approx(math.fsum(values), rel=0, abs=error + 1e-300)


def test_infinities_and_nan_follow_ieee() -> None:
    assert result(ef.sum("x"), pa.array([math.inf, 1.0])) == math.inf
    assert math.isnan(result(ef.sum("x"), pa.array([math.inf, -math.inf])))
    assert math.isnan(result(ef.mean("x"), pa.array([math.nan, 1.0])))
    assert result(ef.sum("x"), pa.array([1e308, 1e308])) == math.inf


def test_sums_and_means_of_no_values_are_null() -> None:
    nothing = pa.array([None, None], pa.int64())
    assert result(ef.sum("x"), nothing) is None
    assert result(ef.mean("x"), nothing) is None
    assert result(ef.count("x"), nothing) == 0
    assert result(ef.count(), nothing) == 2
