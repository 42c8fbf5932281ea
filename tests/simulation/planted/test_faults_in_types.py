"""Every fault that is planted in the types of columns shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_types as faults
import flows_types
import pytest
from planting import Runs, assert_found

from evenflow.testing.actions.moving import with_moves

MOVES = with_moves()

PLANTED = [
    (faults.later_values_are_forced_into_the_first_type, Runs(flows_types.types_that_widen, 20)),
    (faults.keys_are_forced_into_the_first_type, Runs(flows_types.types_that_widen, 20, MOVES)),
]


@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)
