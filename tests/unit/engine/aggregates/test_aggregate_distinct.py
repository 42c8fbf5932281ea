from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.aggregates.sketches.distinct import DistinctAccumulator
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ProtocolError

SCHEMA = pa.schema({"x": pa.int64()})


def batch(values: np.ndarray) -> Batch:
    return Batch(pa.record_batch({"x": pa.array(values)}))


def bound(relative_error: float) -> DistinctAccumulator:
    accumulator = ef.approx_distinct("x", relative_error).bind(SCHEMA, "op")
    assert isinstance(accumulator, DistinctAccumulator)
    return accumulator


def estimates(relative_error: float, distinct: int, groups: int) -> np.ndarray:
    """Return the estimates for `groups` groups of `distinct` values each, no two groups with the same ones."""
    accumulator = bound(relative_error)
    codes = np.repeat(np.arange(groups), distinct)
    return accumulator.finish(accumulator.partial(batch(np.arange(groups * distinct)), codes, groups)).to_numpy()


@pytest.mark.parametrize(
    ("relative_error", "distinct"), [(0.02, 1_000), (0.02, 20_000), (0.05, 100), (0.05, 3_000), (0.25, 10), (0.25, 5_000)]
)
def test_the_standard_error_is_within_the_one_asked_for(relative_error: float, distinct: int) -> None:
    errors = estimates(relative_error, distinct, groups=100) / distinct - 1
    assert np.sqrt(np.mean(errors**2)) < relative_error * 1.1
    assert abs(errors.mean()) < relative_error * 0.3


def test_few_values_are_counted_exactly() -> None:
    accumulator = bound(0.02)
    assert accumulator.exact_limit == 511
    assert estimates(0.02, 511, groups=20).tolist() == [511] * 20


def test_repeated_values_count_once() -> None:
    accumulator = bound(0.02)
    values = np.tile(np.arange(3_000), 5)
    once, often = (accumulator.partial(batch(v), np.zeros(len(v), np.int64), 1) for v in (values[:3_000], values))
    assert once[0].tolist() == often[0].tolist()


def test_sketches_of_any_split_are_equal_to_the_bit() -> None:
    accumulator = bound(0.05)
    random = np.random.default_rng(1)
    values, codes = random.integers(0, 4_000, 30_000), random.integers(0, 3, 30_000) ** 2
    whole = accumulator.partial(batch(values), codes, 5)
    for cuts in ([100, 200, 300], [10_000, 20_000], [29_990]):
        ends = [0, *cuts, len(values)]
        pieces = [accumulator.partial(batch(values[a:b]), codes[a:b], 5) for a, b in itertools.pairwise(ends)]
        merged = pieces[-1]
        for piece in pieces[:-1]:
            merged = accumulator.merge(merged, piece)
        assert merged[0].tolist() == whole[0].tolist()
        together = (np.concatenate([piece[0] for piece in pieces]),)
        assert accumulator.combine(together, np.tile(np.arange(5), len(pieces)), 5)[0].tolist() == whole[0].tolist()


def test_a_group_takes_no_more_than_its_registers() -> None:
    accumulator = bound(0.02)
    parts = accumulator.partial(batch(np.arange(100_000)), np.zeros(100_000, np.int64), 2)
    assert [len(sketch) for sketch in parts[0]] == [4096, 0]


def test_more_groups_than_fit_into_a_sort_key_are_fine() -> None:
    groups = 2**20 + 2
    accumulator = bound(0.02)
    parts = accumulator.partial(batch(np.array([1, 2, 2, 3])), np.array([0, groups - 1, groups - 1, groups - 1]), groups)
    assert accumulator.finish((parts[0][[0, 1, -2, -1]],)).to_pylist() == [1, 0, 0, 2]


def test_all_nan_are_one_value_and_zeros_another() -> None:
    accumulator = ef.approx_distinct("x").bind(pa.schema({"x": pa.float64()}), "op")
    rows = Batch(pa.record_batch({"x": pa.array([float("nan"), -float("nan"), 0.0, -0.0, None])}))
    assert accumulator.finish(accumulator.partial(rows, np.zeros(5, np.int64), 1)).to_pylist() == [2]


@pytest.mark.parametrize("sketch", [b"123", b"\xff" * 4096, bytes(4088 + 16), None], ids=["cut", "ranks", "length", "null"])
def test_bytes_that_cannot_be_a_sketch_are_refused(sketch: bytes | None) -> None:
    with pytest.raises(ProtocolError, match=r"operator `op`: approx_distinct\(`x`\): received bytes that are no valid sketch"):
        bound(0.02).from_arrow([pa.array([sketch], pa.large_binary())])
