from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.bench.harness.statistics import SMALLEST_NOISE, is_noise, noise_band, spread

pytestmark = pytest.mark.first

RATES = st.lists(st.floats(1.0, 1e9), min_size=1, max_size=7)


def test_a_single_value_has_no_spread():
    assert spread([5.0]) == 0.0


def test_spread_of_zeros_is_zero():
    assert spread([0.0, 0.0]) == 0.0


def test_noise_band_is_the_wider_run_s():
    assert noise_band([10.0, 10.0], [10.0, 11.0, 12.0]) == pytest.approx(2 / 11)


def test_noise_band_of_steady_runs_is_the_smallest_noise():
    assert noise_band([10.0, 10.0], [20.0]) == SMALLEST_NOISE


@given(RATES)
def test_a_run_compared_with_itself_is_noise(values):
    assert is_noise(values, values)


@given(st.floats(1.0, 1e6), st.floats(1.1, 100.0))
def test_steady_runs_that_differ_by_a_tenth_are_no_noise(value, factor):
    assert not is_noise([value], [value * factor])
    assert is_noise([value], [value * (1 + SMALLEST_NOISE / 2)])


def test_a_change_from_zero_is_no_noise():
    assert not is_noise([0.0], [1.0])
