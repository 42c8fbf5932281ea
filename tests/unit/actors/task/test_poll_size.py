"""The size of a source's polls follows from the time until their rows are sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.actors.task.poll_size import FIRST, LEAVES_WITHIN, PollSize


@pytest.mark.parametrize("rate", [10.0, 400.0, 30_000.0])
def test_one_read_is_emitted_in_time_whatever_the_rate(rate):
    size = PollSize(1 << 17)
    for _ in range(30):
        size.read(size.rows, size.rows / rate)
    assert LEAVES_WITHIN / 4 <= size.rows / rate <= LEAVES_WITHIN or size.rows == 1


def test_it_grows_to_the_most_where_nothing_is_held_back():
    size = PollSize(100_000)
    for _ in range(7):
        size.read(size.rows, 0.0)
    assert (size.rows, size.limited) == (100_000, False)


def test_a_wait_after_an_empty_read_is_ignored():
    size = PollSize(1 << 17)
    size.read(0, 100.0)
    size.read(0, 0.0)
    assert size.rows == FIRST


def test_it_begins_with_the_largest_size_if_that_is_small():
    assert PollSize(10).rows == 10
    assert PollSize(1 << 20).rows == FIRST


@given(st.lists(st.tuples(st.integers(1, 1 << 20), st.floats(0.0, 1e6))), st.integers(1, 1 << 17))
def test_it_stays_within_its_bounds(reads, most):
    size = PollSize(most)
    for rows, held_back in reads:
        size.read(rows, held_back)
        assert 1 <= size.rows <= most
