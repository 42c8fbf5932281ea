"""Every fault that is planted in broadcast streams shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_broadcasts as faults
import pytest
from flows_broadcasts import from_several_workers, newest_by_version, replaced_and_deleted, rules_all_the_time, versions_never_go_back
from planting import Runs, assert_found

from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling

MOVES = with_moves()
CRASHES = with_crashes(with_moves(2), 20, later=0.01)
SCALING = with_scaling(keyed_only=True)

PLANTED = [
    (faults.workers_that_join_get_no_copy, Runs(rules_all_the_time, 50, SCALING)),
    (faults.broadcast_rows_do_not_wait_behind_markers, Runs(versions_never_go_back, 250, MOVES, begin=190)),
    (faults.changes_of_the_copy_are_not_saved, Runs(rules_all_the_time, 30, CRASHES, save_state=True)),
    (faults.deleted_rows_come_back_with_a_checkpoint, Runs(replaced_and_deleted, 30, CRASHES, save_state=True)),
    (faults.versions_do_not_count, Runs(newest_by_version, 50)),
    (faults.several_workers_broadcast, Runs(from_several_workers, 50)),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
