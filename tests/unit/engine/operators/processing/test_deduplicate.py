"""`deduplicate`: which rows pass, and when a combination is forgotten."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.errors import RecordError
from evenflow.engine.operators.processing import deduplicate
from evenflow.engine.operators.processing.deduplicate import Deduplicate, passing_rows
from evenflow.engine.protocol.elements import MAX_TIME, MIN_TIME

PLACES = ("memory", "lmdb", "server")


@pytest.mark.parametrize("place", PLACES)
def test_first_row_of_each_combination_passes_whatever_its_time(drive_in, place):
    step = drive_in(place)(Deduplicate(("a", "b")))
    assert [row["n"] for row in step.process({"a": [1, 1, None, 1], "b": ["x", "y", None, "x"], "n": [0, 1, 2, 3]}, [9, 8, 7, 6])] == [
        0,
        1,
        2,
    ]
    assert [row["n"] for row in step.process({"a": [None, 2, 1], "b": [None, "x", "y"], "n": [4, 5, 6]}, [0, 0, 99])] == [5]
    assert step.times["out"] == [9, 8, 7, 0]


@pytest.mark.parametrize("place", PLACES)
def test_row_passes_again_once_the_time_to_live_is_over(drive_in, place):
    step = drive_in(place)(Deduplicate(("a",), 10))
    assert [row["n"] for row in step.process({"a": [1] * 5, "n": range(5)}, [20, 29, 12, 30, 41])] == [0, 3, 4]
    assert step.process({"a": [1, 1], "n": [5, 6]}, [50, 5]) == []
    assert [row["n"] for row in step.process({"a": [1], "n": [7]}, [51])] == [7]


@pytest.mark.parametrize("place", PLACES)
def test_only_expired_combinations_are_forgotten_a_part_at_a_time(drive_in, place):
    step = drive_in(place)(Deduplicate(("a",), 1_000))
    step.process({"a": list(range(300))}, list(range(0, 1_200, 4)))
    count = lambda: sum(chunk.num_rows for chunk in step.operator.state.snapshot())  # noqa: E731
    step.advance(0)
    for watermark in range(0, 1_701, 50):
        step.advance(watermark)
    assert 124 <= count() <= 250, "the ends are from 1,000 to 2,196: up to 1,200 they were passed half a time to live ago"
    assert step.process({"a": [299]}, [2_195]) == []
    step.advance(3_000)
    assert count() == 0
    step.advance(MAX_TIME)


def test_time_to_live_without_event_time_says_what_to_do(drive):
    with pytest.raises(RecordError, match="operator `step`: ttl= needs event time: give the source event_time="):
        drive(Deduplicate(("a",), 10)).process({"a": [1]})


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 50)), min_size=1, max_size=60)


@given(ROWS, st.integers(1, 40), st.sampled_from([0, 1, 32]))
def test_rows_of_a_batch_pass_as_they_would_one_by_one(rows, ttl, rounds):
    codes, times = (np.array(column) for column in zip(*rows, strict=True))
    until = np.array([MIN_TIME, 7, MIN_TIME, -20])
    expected, ends = [], until.tolist()
    for place, (code, time) in enumerate(rows):
        if time >= ends[code]:
            ends[code] = time + ttl
            expected.append(place)
    before, deduplicate.ROUNDS = deduplicate.ROUNDS, rounds
    try:
        assert sorted(passing_rows(codes, times, until, ttl).tolist()) == expected
    finally:
        deduplicate.ROUNDS = before
    assert until.tolist() == ends
