"""Every fault that is planted in a job's decisions shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_jobs as faults
import flows
import pytest
from planting import Runs, assert_found

from evenflow.testing import ACTIONS
from evenflow.testing.actions.crashing import with_crashes, with_damage, with_lost_manifests
from evenflow.testing.actions.failing_storage import with_full_disk
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.steering import with_policies
from evenflow.testing.actions.zombies import with_zombies

MOVES, SCALING, CRASHES = with_moves(), with_scaling(), with_crashes(ACTIONS)
MOVES_AND_CRASHES = with_crashes(with_moves(5, ("sudden", "lazy", "restart")))
POLICIES = with_policies(ACTIONS)
FULL = with_full_disk(CRASHES)
LOST = with_lost_manifests(with_damage(CRASHES, most=1))
ZOMBIES = with_zombies(MOVES_AND_CRASHES)

PLANTED = [
    (faults.checkpoint_is_committed_before_its_manifest, Runs(flows.running_finals, 100, CRASHES, save_state=True)),
    (faults.manifest_that_was_not_written_counts, Runs(flows.running_finals, 300, FULL, save_state=True)),
    (faults.checkpoint_begins_while_keys_move, Runs(flows.stateful_map_in_order, 500, MOVES_AND_CRASHES, save_state=True, begin=58)),
    (
        faults.rows_that_were_not_committed_stay_when_the_job_goes_back,
        Runs(flows.rows_in_order, 300, CRASHES, save_state=True),
    ),
    (faults.workers_count_as_finished_in_the_next_attempt_too, Runs(flows.states_that_expire, 200, CRASHES, save_state=True)),
    (faults.commit_is_not_repeated_when_the_job_goes_back, Runs(flows.rows_in_order, 300, CRASHES, save_state=True)),
    (faults.rows_behind_the_checkpoint_are_not_taken_back, Runs(flows.rows_in_order, 300, LOST, save_state=True)),
    (faults.reports_of_an_attempt_that_is_over_count, Runs(flows.rows_in_order, 500, ZOMBIES, save_state=True)),
    (faults.workers_that_leave_are_not_awaited, Runs(flows.running_finals, 300, SCALING)),
    (faults.senders_open_channels_before_receivers_know_them, Runs(flows.sliding_windows, 300, SCALING)),
    (faults.routing_tables_are_forgotten_when_the_job_goes_back, Runs(flows.running_finals, 300, MOVES_AND_CRASHES, save_state=True)),
    (
        faults.node_counts_as_given_back_while_its_workers_are_to_go_on_elsewhere,
        Runs(flows.running_updates, 300, POLICIES, save_state=True),
    ),
    (faults.workers_that_must_stay_are_left_on_the_node, Runs(flows.running_updates, 300, POLICIES, save_state=True)),
    (faults.processes_start_on_any_node, Runs(flows.running_updates, 300, POLICIES, save_state=True)),
    (faults.migration_is_over_before_its_last_step, Runs(flows.stateful_map_in_order, 300, MOVES)),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
