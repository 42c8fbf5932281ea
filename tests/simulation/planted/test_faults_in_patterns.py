"""Every fault that is planted in a pattern shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_patterns as faults
import pytest
from flows_patterns import patterns
from planting import Runs, assert_found

from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves

MOVES = with_moves()
MOVES_AND_CRASHES = with_crashes(with_moves(5, ("sudden", "lazy", "restart")))

PLANTED = [
    (faults.rows_are_matched_in_the_order_of_their_arrival, Runs(patterns, 20)),
    (faults.rows_are_matched_before_the_watermark_has_passed_them, Runs(patterns, 20)),
    (faults.match_does_not_wait_for_earlier_partial_ones, Runs(patterns, 20)),
    (faults.keys_that_move_lose_their_timers, Runs(patterns, 50, MOVES)),
    (faults.partial_matches_are_not_saved, Runs(patterns, 50, MOVES_AND_CRASHES, save_state=True)),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
