"""Every fault that is planted in reads of keys shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_reads as faults
import pytest
from planting import Runs, assert_found
from reads_at_random import History, Reads, counted_in_order

from evenflow.testing import simulate
from evenflow.testing.actions.moving import with_moves


def exact(seed):
    """Judge a run in which keys are read while they move: every value must be one that the key had meanwhile."""
    history = History()
    simulate(counted_in_order(history), seed, parallelism=2 + seed % 2, actions=(*with_moves(5), Reads(history, "count", tuple)))


PLANTED = [
    (faults.worker_answers_for_every_key, Runs(counted_in_order, 20, judge=exact)),
    (faults.new_owner_answers_before_the_state_has_arrived, Runs(counted_in_order, 60, judge=exact, begin=30)),
    (faults.old_owner_answers_for_what_it_has_given_away, Runs(counted_in_order, 30, judge=exact)),
    (faults.worker_ahead_of_the_coordinator_answers, Runs(counted_in_order, 400, judge=exact, begin=390)),
]


@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
