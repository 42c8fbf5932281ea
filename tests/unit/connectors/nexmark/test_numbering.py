from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.nexmark.numbering import EPOCH, PLACES, STRIDE, Numbering

streams = st.sampled_from(list(PLACES))
groups = st.integers(1, 400)


def in_order(stream: str, group: int, events: int) -> list[tuple[int, int]]:
    """Return position and number of a stream's events in sequence, computed as the original does."""
    every = [(position, position // group * group + position * STRIDE % group) for position in range(events)]
    return [(position, number) for position, number in every if number % EPOCH in PLACES[stream]]


@given(streams, groups, st.integers(1, 1200))
def test_the_rows_of_a_stream_are_its_events_in_the_order_of_their_positions(stream, group, events):
    numbering, expected = Numbering(stream, group), in_order(stream, group, events)
    assert numbering.rows_before(events) == len(expected)
    assert numbering.numbers(np.arange(len(expected))).tolist() == [number for _, number in expected]
    assert [numbering.position(row) for row in range(len(expected))] == [position for position, _ in expected]


@given(streams, groups, st.integers(0, 10**12), st.integers(1, 500))
def test_no_later_row_has_a_smaller_number_than_the_least(stream, group, row, rows):
    numbering = Numbering(stream, group)
    assert numbering.numbers(np.arange(row, row + rows)).min() >= numbering.least_number(row) > numbering.position(row) - group


@pytest.mark.parametrize("group", [1, 7, 50, 1000])
def test_every_event_belongs_to_one_stream(group):
    events = 7 * 50 * group
    numbers = [Numbering(stream, group).numbers(np.arange(Numbering(stream, group).rows_before(events))) for stream in PLACES]
    assert np.array_equal(np.sort(np.concatenate(numbers)), np.arange(events))
