"""Every fault that is planted in changes of a running job's settings shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_settings as faults
import flows
import pytest
from planting import Runs, assert_found

from evenflow.testing import ACTIONS
from evenflow.testing.actions.changing_settings import with_new_settings
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling

LOSSES = with_new_settings(with_crashes(ACTIONS))
MOVES = with_new_settings(with_moves())
SCALINGS = with_new_settings(with_scaling())

PLANTED = [
    (faults.changed_settings_are_not_remembered, Runs(flows.running_updates, 30, LOSSES, save_state=True)),
    (faults.store_forgets_the_settings_of_a_coordinator_that_took_over, Runs(flows.running_updates, 100, LOSSES, save_state=True)),
    (faults.interval_that_changes_is_not_restarted, Runs(flows.running_updates, 30, MOVES)),
    (faults.workers_that_start_later_have_the_first_settings, Runs(flows.running_updates, 30, SCALINGS)),
]


@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
