"""Every fault that is planted in upgrades shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_upgrades as faults
import flows
import pytest
from flows_versions import PROGRAMS, migrating
from planting import Runs, assert_found

from evenflow.testing import ACTIONS
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import poll_slowly, with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.upgrading import with_upgrades
from evenflow.testing.simulation.actions import poll

UPGRADES = with_upgrades(with_moves(), in_order=True, aborted=0.0)
HASTY = with_upgrades(ACTIONS, in_order=True, aborted=0.0)
"""Sources are read all the time and no keys move besides, so that much is under way when code is exchanged."""

SCALED = tuple(poll if action is poll_slowly else action for action in with_scaling(3))
"""Sources are scaled instead, likewise."""

VISITS = PROGRAMS["process"][0]
MIGRATING = with_crashes(with_upgrades(with_moves(2), in_order=True, new=migrating("process"), readable=False))
DECIDED = with_crashes(with_upgrades(with_moves(2), in_order=True, new=migrating("process"), readable=False, aborted=0.0), 2, later=0.01)
"""Few losses, so that upgrades come to their decision."""

LOST_OR_ABORTED = with_crashes(with_upgrades(with_moves(2), in_order=True, new=migrating("process"), readable=False, aborted=0.02), 9)
"""Many ways back to the old code."""

ABORTED = with_crashes(with_upgrades(with_moves(2), 9, in_order=True, readable=False, aborted=0.05), later=0.02)
"""Many upgrades that go back to a checkpoint."""

PLANTED = [
    (faults.rows_of_a_replaced_worker_may_come_after_its_successors, Runs(flows.rows_of_partitions, 100, HASTY, parallelism=(1, 2, 3))),
    (
        faults.rows_of_a_split_may_come_before_those_that_another_worker_has_read,
        Runs(flows.rows_of_partitions, 100, SCALED, parallelism=(1, 2, 3)),
    ),
    (faults.old_workers_retire_with_rows_unsent, Runs(flows.running_updates, 100, UPGRADES)),
    (faults.workers_are_replaced_while_they_own_keys, Runs(flows.running_updates, 20, UPGRADES)),
    (faults.a_replaced_worker_keeps_its_channel, Runs(flows.running_updates, 30, UPGRADES)),
    (faults.a_replaced_worker_hands_its_number_on, Runs(flows.running_updates, 20, UPGRADES)),
    (faults.a_source_is_shared_out_when_its_workers_are_replaced, Runs(flows.rows_in_order, 50, UPGRADES)),
    (faults.checkpoints_hold_state_that_the_old_code_cannot_read, Runs(VISITS, 100, LOST_OR_ABORTED, save_state=True, begin=32)),
    (
        faults.going_back_does_not_wait_for_a_manifest_that_is_being_written,
        Runs(flows.stateful_map_in_order, 100, ABORTED, parallelism=(1, 2, 3), save_state=True, begin=80),
    ),
    (faults.a_new_coordinator_forgets_the_new_code, Runs(VISITS, 100, DECIDED, save_state=True, begin=25)),
    (faults.new_code_without_rows_passes_its_watch, Runs(flows.running_updates, 60, UPGRADES)),
    (faults.an_upgrade_moves_before_its_processes_have_started, Runs(flows.running_updates, 20, UPGRADES)),
    (faults.processes_that_started_ahead_are_kept, Runs(flows.running_updates, 30, UPGRADES)),
    (faults.state_is_not_migrated_on_its_way_to_new_code, Runs(VISITS, 20, MIGRATING, save_state=True)),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert {name for name in there if not name.startswith("_")} == {fault.__name__ for fault, _ in PLANTED}
