"""Every fault that is planted in the rows of tables shows within a stated number of simulated runs."""

from __future__ import annotations

from functools import partial

import faults_in_tables as faults
import flows_tables
import pytest
from planting import Runs, assert_found

from evenflow.testing.actions.scaling import with_scaling

SCALING = with_scaling()
ROWS = partial(flows_tables.by_place, 3)

PLANTED = [
    (faults.change_that_arrives_last_is_the_newest, Runs(ROWS, 10, SCALING)),
    (faults.deleted_key_is_forgotten, Runs(ROWS, 10, SCALING)),
    (faults.deleted_rows_are_emitted, Runs(ROWS, 3)),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)
