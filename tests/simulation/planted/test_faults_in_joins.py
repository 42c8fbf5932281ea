"""Every fault that is planted in a join shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_joins as faults
import flows_joins as flows
import pytest
from planting import Runs, assert_found

from evenflow.testing import ACTIONS
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling

MOVES, CRASHES = with_moves(), with_crashes(ACTIONS)
MOVES_AND_CRASHES, SCALING_AND_CRASHES = with_crashes(with_moves(5, ("sudden", "lazy", "restart"))), with_crashes(with_scaling())
KEYED_SCALING = with_scaling(keyed_only=True)

PLANTED = [
    (faults.rows_are_forgotten_before_the_others_are_decided, Runs(flows.join_left, 20)),
    (faults.row_is_not_kept_once_it_has_a_partner, Runs(flows.join_inner, 20)),
    (faults.last_time_of_the_bounds_is_left_out, Runs(flows.join_inner, 20)),
    (faults.rows_that_are_due_are_decided_once_more, Runs(flows.join_left, 20)),
    (faults.null_keys_are_equal, Runs(flows.join_inner, 20)),
    (faults.keys_that_left_stay_among_the_rows_that_came, Runs(flows.join_always, 500, MOVES_AND_CRASHES, save_state=True, begin=151)),
    (faults.rows_that_a_move_brought_are_not_saved, Runs(flows.join_always, 200, MOVES_AND_CRASHES, save_state=True)),
    (faults.row_that_leaves_also_stays, Runs(flows.join_always, 100, MOVES)),
    (faults.new_owner_is_not_told_the_columns, Runs(flows.join_full, 500, SCALING_AND_CRASHES, save_state=True)),
    (faults.only_one_exchange_of_a_self_join_switches, Runs(flows.join_with_itself, 50, MOVES)),
    (faults.window_is_joined_before_its_last_rows_came, Runs(flows.join_in_windows, 20)),
    (faults.rows_without_a_partner_do_not_wait_for_the_columns, Runs(flows.join_with_a_side_that_comes_late, 20)),
    (faults.new_owner_keeps_its_own_event_time, Runs(flows.join_with_a_side_that_comes_late, 500, KEYED_SCALING, (2,), begin=141)),
    (faults.nans_are_many_keys, Runs(flows.join_by_floats, 20)),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
