from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.aggregates.base import Accumulator
from evenflow.engine.aggregates.sketches.quantile import Buckets
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ProtocolError

NORMAL = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)


def batch(values: list[float]) -> Batch:
    return Batch(pa.record_batch({"x": pa.array(values, pa.float64())}))


def bound(q: float, relative_error: float = 0.01) -> Accumulator:
    return ef.approx_quantile("x", q, relative_error).bind(pa.schema({"x": pa.float64()}), "op")


@pytest.mark.parametrize("relative_error", [0.0001, 0.01, 0.1, 0.5])
@given(value=NORMAL)
def test_a_bucket_stands_for_its_values_within_the_error(relative_error: float, value: float) -> None:
    buckets = Buckets(relative_error)
    middle = buckets.middle(buckets.of(np.array([value])))[0]
    assert abs(middle - value) <= relative_error * abs(value) * (1 + 1e-9)


@pytest.mark.parametrize("relative_error", [0.0001, 0.01, 0.5])
@given(values=st.lists(st.floats(allow_nan=False)))
def test_larger_values_never_fall_into_smaller_buckets(relative_error: float, values: list[float]) -> None:
    ordered = np.sort(np.array(values, np.float64))
    buckets = Buckets(relative_error).of(ordered)
    assert (np.diff(buckets) >= 0).all()
    assert (np.diff(Buckets(relative_error).middle(buckets)[np.isfinite(ordered)]) >= 0).all()


@given(st.lists(NORMAL, min_size=1), st.floats(0, 1))
def test_a_quantile_is_within_the_error(values: list[float], q: float) -> None:
    accumulator = bound(q)
    result = accumulator.finish(accumulator.partial(batch(values), np.zeros(len(values), np.int64), 1)).to_pylist()[0]
    exact = sorted(values)[math.floor(q * (len(values) - 1))]
    assert abs(result - exact) <= 0.01 * abs(exact) * (1 + 1e-9)


def test_the_extremes_of_float64_have_buckets() -> None:
    buckets = Buckets(0.01)
    values = np.array([-np.inf, -np.finfo(float).max, -1.0, -5e-324, 0.0, 5e-324, 1.0, np.finfo(float).max, np.inf])
    numbers = buckets.of(values)
    assert (np.diff(numbers) > 0).all()
    assert numbers[4] == 0
    middles = buckets.middle(numbers)
    assert np.isfinite(middles[1:-1]).all()
    assert middles[[0, 4, 8]].tolist() == [-np.inf, 0.0, np.inf]


def test_nan_is_the_largest_value() -> None:
    values = [math.nan, math.inf, -math.inf, 0.0, -0.0]
    results = [bound(q).finish(bound(q).partial(batch(values), np.zeros(5, np.int64), 1)).to_pylist()[0] for q in (0, 0.25, 0.5, 0.75, 1)]
    assert results[:4] == [-math.inf, 0.0, 0.0, math.inf]
    assert math.isnan(results[4])


def test_sketches_of_any_split_are_equal_to_the_bit() -> None:
    accumulator = bound(0.5)
    random = np.random.default_rng(1)
    values, codes = random.lognormal(0, 3, 20_000) * random.choice([-1, 1], 20_000), random.integers(0, 3, 20_000) ** 2
    whole = accumulator.partial(batch(values), codes, 5)
    for cuts in ([1, 2, 3], [10_001], [7, 77, 777, 7_777]):
        ends = [0, *cuts, len(values)]
        pieces = [accumulator.partial(batch(values[a:b]), codes[a:b], 5) for a, b in itertools.pairwise(ends)]
        merged = pieces[-1]
        for piece in pieces[:-1]:
            merged = accumulator.merge(merged, piece)
        assert merged[0].tolist() == whole[0].tolist()
        together = (np.concatenate([piece[0] for piece in pieces]),)
        assert accumulator.combine(together, np.tile(np.arange(5), len(pieces)), 5)[0].tolist() == whole[0].tolist()


def test_buckets_are_the_same_in_every_version() -> None:
    values = np.array([1e-300, 0.001, 1.0, 2.0, 3.0, 1e6, -1e300])
    assert Buckets(0.01).of(values).tolist() == [2710, 37241, 37589, 37624, 37645, 38287, -72469]


def test_a_sketch_grows_with_the_range_of_the_values_not_their_number() -> None:
    accumulator = bound(0.5)
    parts = accumulator.partial(batch(np.linspace(1, 1000, 100_000).tolist()), np.zeros(100_000, np.int64), 1)
    assert len(parts[0][0]) <= 12 * 3 * 117


@pytest.mark.parametrize("sketch", [b"123", None], ids=["cut", "null"])
def test_bytes_that_cannot_be_a_sketch_are_refused(sketch: bytes | None) -> None:
    with pytest.raises(ProtocolError, match=r"operator `op`: approx_quantile\(`x`\): received bytes that are no valid sketch"):
        bound(0.5).from_arrow([pa.array([sketch], pa.large_binary())])
