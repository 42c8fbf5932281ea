"""Sums of floats: exact for short values, and nearly so for others, whatever else a batch holds."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.engine.aggregates.numbers.float_sums import _BLOCK, FloatAddends

SUMS = FloatAddends()


def parts_of(values, codes, groups):
    return SUMS.by_group(pa.array(values, pa.float64()), np.asarray(codes, np.int64), groups)


def error_bound(values):
    """Return a unit in the last place of the sum, plus what `n` roundings of the lower parts may lose."""
    n, largest = len(values), max(map(abs, values), default=0.0)
    return math.ulp(math.fsum(values)) + n**3 * largest * 2.0**-104


FLOATS = st.floats(-1e250, 1e250) | st.floats(width=16, allow_nan=False, allow_infinity=False) | st.sampled_from([1e21, -1e21, 1.0, 0.1])
ROWS = st.lists(st.tuples(FLOATS, st.integers(0, 2)), max_size=30)


@given(pieces=st.lists(ROWS, min_size=1, max_size=4), by_code=st.booleans())
@example(pieces=[[(-1e21, 0), (1.0, 0)], [(1.0, 0), (1e21, 0)]], by_code=True)
@example(pieces=[[(-1e21, 0), (1.0, 0)], [(1.0, 0), (1e21, 0)]], by_code=False)
def test_sums_of_pieces_are_those_of_all_rows(pieces, by_code):
    parts = [parts_of([value for value, _ in rows], [code for _, code in rows], 3) for rows in pieces]
    if by_code:
        together = tuple(np.concatenate(part) for part in zip(*parts, strict=True))
        merged = SUMS.by_code(together, np.tile(np.arange(3), len(pieces)), 3)
    else:
        merged = parts[0]
        for part in parts[1:]:
            merged = SUMS.plus(merged, part)
    every = [value for rows in pieces for value, _ in rows]
    for code, total in enumerate(SUMS.to_float(merged).tolist()):
        values = [value for rows in pieces for value, group in rows if group == code]
        largest = max(map(abs, every), default=0.0)
        assert total == pytest.approx(math.fsum(values), rel=0, abs=error_bound(values) + len(every) ** 3 * largest * 2.0**-104)


@pytest.mark.parametrize("unit", [1.0, 0.125, 2.0**60], ids=["integers", "eighths", "large"])
@pytest.mark.parametrize("long", [0, 1, _BLOCK, 2 * _BLOCK + 5], ids=lambda place: f"one tenth at {place}")
def test_sums_over_several_blocks_are_exact_to_the_last_digit(unit, long):
    random = np.random.default_rng(1)
    values = random.integers(-4_000, 4_000, 2 * _BLOCK + 7) * unit
    codes = random.integers(0, 5, len(values))
    values[long] = 0.1
    totals = SUMS.to_float(parts_of(values, codes, 5)).tolist()
    assert totals == [math.fsum(values[codes == code]) for code in range(5)]


def test_short_values_have_no_error():
    values = np.arange(3 * _BLOCK) / 8
    high, low = parts_of(values, np.zeros(len(values)), 1)
    assert (high.tolist(), low.tolist()) == ([math.fsum(values)], [0.0])


@pytest.mark.parametrize("other", [math.nan, math.inf, -math.inf])
def test_small_values_of_a_key_remain_if_another_key_has_infinite_values(other):
    parts = parts_of([-1e21, other, 1.0, 1.0, 1e21, 1.0], [0, 1, 0, 0, 0, 1], 2)
    assert SUMS.to_float(parts).tolist() == pytest.approx([2.0, other], nan_ok=True)
    merged = SUMS.by_code(tuple(np.concatenate([part, part]) for part in parts), np.array([0, 1, 0, 1]), 2)
    assert SUMS.to_float(merged).tolist() == pytest.approx([4.0, other], nan_ok=True)


@pytest.mark.parametrize(
    ("values", "expected"), [([math.inf, -math.inf], "nan"), ([math.inf, 1.0], "inf"), ([1e308, 1e308], "inf"), ([], "0.0")]
)
def test_sums_that_are_not_finite_are_those_of_floats(values, expected):
    assert [str(total) for total in SUMS.to_float(parts_of(values, np.zeros(len(values)), 1))] == [expected]
