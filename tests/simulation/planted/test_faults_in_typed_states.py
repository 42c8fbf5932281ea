"""Every fault that is planted in states of declared types shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_typed_states as faults
import flows_typed_states as flows
import pytest
from planting import Runs, assert_found

from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves

MOVES = with_moves()

PLANTED = [
    (faults.fields_are_restored_as_their_defaults, Runs(flows.states_of_declared_types, 10, MOVES)),
    (faults.only_the_newest_parts_of_a_list_are_saved, Runs(flows.dataclasses_of_stateful_map, 10, with_crashes(MOVES), save_state=True)),
]


@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)
