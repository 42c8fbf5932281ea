"""Every fault that is planted in the migration of states shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_state_versions as faults
import pytest
from flows_versions import SUMS, VISITS
from planting import Runs, assert_found

from evenflow.testing import ACTIONS
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.stopping import check_stops

CRASHES = with_crashes(with_moves(5), most=2)


def stopped(program, within, actions=ACTIONS):
    """Return runs of a program that is stopped and continues in its later versions."""
    first, *later = program

    def judge(seed):
        check_stops(first, [seed], parallelism=(1, 2, 3), actions=actions, later=later)

    return Runs(first, within, judge=judge)


PLANTED = [
    (faults.state_is_migrated_twice, stopped((VISITS[1], VISITS[2]), 20)),
    (faults.chunk_is_installed_unmigrated, stopped(SUMS, 20)),
    (faults.versions_are_not_saved, stopped(SUMS, 20, CRASHES)),
    (faults.migrated_records_lose_their_timers, stopped(VISITS, 20)),
    (faults.renamed_states_are_forgotten, stopped(VISITS, 20)),
]


@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
