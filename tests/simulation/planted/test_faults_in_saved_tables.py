"""Every fault that is planted in tables of saved state shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_saved_tables as faults
import pytest
from planting import Runs, assert_found
from tables_at_random import Tables, tabled

from evenflow.testing import simulate
from evenflow.testing.actions.moving import with_moves


def exact(seed):
    """Judge a run in which tables are read: each must be the state after the rows that the source had given at the barrier."""
    simulate(tabled(), seed, parallelism=2 + seed % 2, save_state=True, actions=(*with_moves(5), Tables()))


PLANTED = [
    (faults.changes_do_not_replace_older_rows, 20),
    (faults.workers_parts_are_of_two_checkpoints, 20),
    (faults.newest_file_of_a_chain_is_left_out, 20),
]


@pytest.mark.parametrize(("fault", "within"), [pytest.param(fault, within, id=fault.__name__) for fault, within in PLANTED])
def test_fault_is_found(fault, within):
    assert_found(fault, Runs(tabled, within, judge=exact))


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
