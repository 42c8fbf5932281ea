"""Every fault that is planted in rows with weights shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_weights as faults
import flows_weights
import pytest
from planting import Runs, assert_found

from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves

MOVES = with_moves()
CRASHES = with_crashes(MOVES)

PLANTED = [
    (faults.old_row_of_a_restored_key_is_not_taken_back, Runs(flows_weights.users_by_place, 10, CRASHES, save_state=True)),
    (faults.old_row_is_read_after_the_batch_has_changed_it, Runs(flows_weights.users_by_place, 5)),
    (faults.taken_back_values_are_added, Runs(flows_weights.users_by_place, 5)),
    (faults.group_with_more_rows_gone_than_come_counts_as_there, Runs(flows_weights.users_by_place, 10, MOVES)),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)
