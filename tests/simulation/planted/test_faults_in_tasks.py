"""Every fault that is planted in a task shows within a stated number of simulated runs."""

from __future__ import annotations

import faults_in_tasks as faults
import flows
import flows_joins
import flows_rows
import pytest
from flows_processing_time import timers_by_the_clock
from judging import every_row_is_counted_once_or_late_once, windows_with_late_rows
from planting import Runs, assert_found

from evenflow.testing import ACTIONS
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.splitting import with_splits
from evenflow.testing.simulation.actions import flush

MOVES, SCALING, CRASHES = with_moves(), with_scaling(), with_crashes(ACTIONS)
LAZY_MOVES = with_moves(5, ("lazy",))
SCALING_WITH_FULL_BUFFERS = tuple(action for action in with_scaling(12) if action is not flush)
"""Rows wait until a signal takes them along."""
MOVES_AND_CRASHES = with_crashes(with_moves(5, ("sudden", "lazy", "restart")))

SPLITS, SPLITS_AND_CRASHES = with_splits(with_moves(0)), with_crashes(with_splits(with_moves(3, ("restart",)), 6, ("sudden", "restart")))

# How soon a fault shows differs with every change of what a seed decides: each number is several times what it took.
PLANTED = [
    (faults.marker_is_not_sent_to_one_worker, Runs(flows.running_updates, 100, MOVES)),
    (faults.marker_overtakes_the_rows_before_it, Runs(flows.running_updates, 100, MOVES, begin=33)),
    (faults.record_set_aside_is_lost, Runs(flows.stateful_map_in_order, 100, MOVES)),
    (faults.record_overtakes_those_that_were_set_aside, Runs(flows.stateful_map_in_order, 300, MOVES)),
    (faults.step_is_over_before_the_records_that_were_set_aside_are_processed, Runs(flows.stateful_map_in_order, 300, MOVES)),
    (faults.records_of_a_requested_key_are_overtaken, Runs(flows.stateful_map_in_order, 300, LAZY_MOVES)),
    (faults.records_of_moving_keys_are_not_set_aside, Runs(flows.stateful_map_in_order, 100, MOVES)),
    (faults.state_given_away_is_kept, Runs(flows.stateful_map_in_order, 100, MOVES)),
    (faults.key_is_left_out_of_the_state_given_away, Runs(flows.stateful_map_in_order, 100, MOVES)),
    (faults.input_is_not_frozen_at_its_marker, Runs(flows.sliding_windows, 100, MOVES)),
    (faults.watermark_of_the_fastest_input_counts, Runs(flows.sliding_windows, 100)),
    (faults.watermark_leaves_before_the_rows_that_wait, Runs(flows.sliding_windows, 100)),
    (faults.event_time_goes_on_while_inputs_are_to_tell_theirs_anew, Runs(flows.sliding_windows, 500, SCALING)),
    (faults.row_in_a_buffer_is_dropped_at_a_rewind, Runs(flows.running_updates, 100, SCALING_WITH_FULL_BUFFERS)),
    (faults.barrier_is_not_awaited_on_one_channel, Runs(flows.running_updates, 100, CRASHES, save_state=True)),
    (faults.elements_behind_a_barrier_are_not_held_back, Runs(flows.stateful_map_in_order, 100, CRASHES, save_state=True)),
    (faults.alignment_releases_in_the_wrong_order, Runs(flows.stateful_map_in_order, 100)),
    (faults.checkpoint_is_prepared_before_the_last_chunk, Runs(flows.stateful_map_in_order, 100, CRASHES, save_state=True)),
    (faults.event_time_is_not_restored, Runs(flows.sliding_windows, 500, CRASHES, save_state=True, begin=77)),
    (faults.delta_forgets_a_key, Runs(flows.stateful_map_in_order, 100, MOVES_AND_CRASHES, save_state=True)),
    (faults.keys_of_other_workers_are_restored_too, Runs(flows.stateful_map_in_order, 100, MOVES_AND_CRASHES, save_state=True)),
    (faults.copy_has_rows_from_behind_the_markers, Runs(flows_joins.join_inner, 100, SPLITS)),
    (faults.dealt_rows_come_home_after_rows_from_behind_the_markers, Runs(flows_joins.join_inner, 300, SPLITS, begin=95)),
    (faults.rows_from_before_the_markers_wait_for_dealt_rows, Runs(flows_joins.join_inner, 100, SPLITS)),
    (faults.copied_rows_are_given_back_too, Runs(flows_joins.join_inner, 100, SPLITS)),
    (faults.copied_rows_of_all_workers_are_restored, Runs(flows_joins.join_inner, 100, SPLITS_AND_CRASHES, save_state=True)),
    (faults.watermark_overtakes_rows_that_wait_for_a_full_batch, Runs(flows_rows.gathered_rows, 100)),
    (faults.barrier_overtakes_rows_that_wait_for_a_full_batch, Runs(flows_rows.gathered_rows, 100, CRASHES, save_state=True)),
    (faults.keys_move_before_their_rows_that_wait_for_a_full_batch, Runs(flows_rows.gathered_rows, 300, MOVES)),
    (faults.timer_fires_twice, Runs(flows.timers_of_a_key, 100)),
    (faults.processing_timer_is_lost_in_a_move, Runs(timers_by_the_clock, 100, MOVES)),
    (faults.processing_timer_is_not_saved, Runs(timers_by_the_clock, 100, MOVES_AND_CRASHES, save_state=True)),
    (faults.processing_timer_fires_early, Runs(timers_by_the_clock, 100)),
    (faults.late_row_is_counted_twice, Runs(windows_with_late_rows, 100, judge=every_row_is_counted_once_or_late_once)),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("fault", "runs"), [pytest.param(fault, runs, id=fault.__name__) for fault, runs in PLANTED])
def test_fault_is_found(fault, runs):
    assert_found(fault, runs)


def test_every_fault_in_the_file_is_planted():
    there = {name for name, value in vars(faults).items() if callable(value) and getattr(value, "__module__", "") == faults.__name__}
    assert there == {fault.__name__ for fault, _ in PLANTED}
