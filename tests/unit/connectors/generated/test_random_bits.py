from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.generated.random_bits import below, lower, random_bits, unit

MANY = np.arange(100_000)


@given(st.integers(0, 2**40), st.integers(1, 100), st.integers(0, 9), st.integers(0, 9))
def test_bits_depend_on_seed_purpose_and_number_alone(first, count, seed, purpose):
    numbers = np.arange(first, first + count)
    one_by_one = [random_bits(seed, purpose, numbers[place : place + 1])[0] for place in range(count)]
    assert random_bits(seed, purpose, numbers).tolist() == one_by_one


def test_numbers_are_not_written_to():
    numbers = np.arange(3)
    random_bits(1, 2, numbers)
    assert numbers.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "bits", [random_bits(1, 1, MANY), lower(random_bits(1, 1, MANY)), random_bits(1, 2, MANY), random_bits(2, 1, MANY)]
)
def test_draws_are_uniform(bits):
    counts = np.bincount(below(bits, 7), minlength=7)
    # Five standard deviations of a binomial count.
    assert np.abs(counts - len(MANY) / 7).max() < 5 * np.sqrt(len(MANY) / 7)
    assert len(counts) == 7
    assert 0 <= unit(bits).min() < 0.001
    assert 0.999 < unit(bits).max() < 1


def test_draws_of_one_number_do_not_depend_on_each_other():
    bits = random_bits(3, 1, MANY)
    draws = [unit(bits), unit(lower(bits)), unit(random_bits(3, 2, MANY)), unit(random_bits(4, 1, MANY))]
    correlations = np.corrcoef(draws) - np.eye(4)
    assert np.abs(correlations).max() < 5 / np.sqrt(len(MANY))


def test_every_row_has_a_bound_of_its_own():
    bounds = 1 + MANY % 3
    drawn = below(random_bits(1, 1, MANY), bounds)
    assert [set(drawn[bounds == bound].tolist()) for bound in (1, 2, 3)] == [{0}, {0, 1}, {0, 1, 2}]
