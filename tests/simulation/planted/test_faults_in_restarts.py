"""Every fault that is planted in a store or in starts that continue a run shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_restarts as faults
import flows
import pytest
from planting import Runs, assert_found

from evenflow.testing import ACTIONS
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.restarting import with_lost_replies, with_restarts
from evenflow.testing.actions.zombies import with_zombies

RESTARTS = with_restarts(with_crashes(ACTIONS, most=3), most=3)
LOST_REPLIES = with_lost_replies(with_crashes(ACTIONS), most=6)
TAKEN_OVER = with_restarts(with_zombies(with_crashes(ACTIONS)), most=4)

PLANTED = [
    (faults.retention_removes_the_checkpoints_of_another_run, Runs(flows.rows_in_order, 100, RESTARTS, save_state=True)),
    (faults.manifest_whose_reply_is_lost_counts_as_failed, Runs(flows.rows_in_order, 500, LOST_REPLIES, save_state=True, begin=24)),
    (faults.program_that_is_started_again_begins_anew, Runs(flows.rows_in_order, 100, RESTARTS, save_state=True)),
    (faults.owner_that_was_taken_over_from_goes_on, Runs(flows.rows_in_order, 500, TAKEN_OVER, save_state=True, begin=19)),
    (
        faults.start_that_continues_forgets_where_the_ones_before_began,
        Runs(flows.rows_in_order, 500, TAKEN_OVER, save_state=True, begin=131),
    ),
]


@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
