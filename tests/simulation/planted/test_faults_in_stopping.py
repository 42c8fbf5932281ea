"""Every fault that is planted in how a job stops and continues shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_stopping as faults
import flows
import pytest
from planting import Runs, assert_found

from evenflow.testing import ACTIONS
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.stopping import check_stops


def exact_in_several_runs(make_flow, actions=ACTIONS):
    """Return a judge of jobs that are stopped and continued: the rows of all runs together must be the oracle's."""
    return lambda seed: check_stops(make_flow, [seed], parallelism=(1, 2, 3), actions=actions)


PLANTED = [
    (
        faults.open_windows_are_emitted_when_the_job_stops,
        Runs(flows.sliding_windows, 30, judge=exact_in_several_runs(flows.sliding_windows)),
    ),
    (
        faults.rows_in_flight_are_lost_when_the_job_stops,
        Runs(flows.running_finals, 30, judge=exact_in_several_runs(flows.running_finals)),
    ),
    (
        faults.what_was_committed_is_left_to_the_next_run_to_commit,
        Runs(flows.rows_in_order, 30, judge=exact_in_several_runs(flows.rows_in_order, with_crashes(ACTIONS))),
    ),
    (
        faults.job_ends_before_its_savepoint_is_complete,
        Runs(flows.running_finals, 30, judge=exact_in_several_runs(flows.running_finals)),
    ),
    (
        faults.savepoint_has_the_rows_that_the_job_has_committed,
        Runs(flows.rows_in_order, 30, judge=exact_in_several_runs(flows.rows_in_order, with_crashes(ACTIONS))),
    ),
    (
        faults.sources_read_on_behind_the_last_barrier,
        Runs(flows.rows_in_order, 30, judge=exact_in_several_runs(flows.rows_in_order)),
    ),
]


@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
