"""Every fault that is planted in restored state that waits to be installed shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_pending_state as faults
import flows
import pytest
from planting import Runs, assert_found

from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.simulation.actions import Action, install_state


def _waiting(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return the actions without slices in the background: state waits until something needs it."""
    return tuple(action for action in actions if action is not install_state)


CRASHES = _waiting(with_crashes(with_moves()))
RESTARTS = _waiting(with_crashes(with_moves(5, ("restart",))))

PLANTED = [
    (faults.record_overtakes_the_state_of_its_key, Runs(flows.running_updates, 20, CRASHES, save_state=True)),
    (faults.state_is_installed_twice, Runs(flows.running_updates, 20, CRASHES, save_state=True)),
    (faults.older_state_of_a_key_is_restored_too, Runs(flows.running_updates, 100, RESTARTS, save_state=True)),
    (faults.row_is_skipped, Runs(flows.running_updates, 20, CRASHES, save_state=True)),
    (faults.move_leaves_without_the_state_that_waits, Runs(flows.running_updates, 20, CRASHES, save_state=True)),
    (faults.installing_forgets_the_changes_of_the_state, Runs(flows.running_updates, 100, RESTARTS, save_state=True)),
    (faults.full_snapshot_lacks_the_state_that_waits, Runs(flows.running_updates, 100, RESTARTS, save_state=True)),
]


@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
