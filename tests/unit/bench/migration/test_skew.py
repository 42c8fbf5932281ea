"""The loop of loads, and its verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.bench.migration.loop import PERIODS, SHIFT, Loop, key_groups_for, run_loop
from evenflow.bench.migration.skew import part_of_lpt, planned, verdicts


def loop_of(*periods, moves=(), state_bytes=0):
    return Loop(np.array(periods, float).ravel(), np.ones(PERIODS * SHIFT), moves, state_bytes, 1)


EVEN = [1.0] * SHIFT
LATE = [2.0] * 4 + [1.0] * (SHIFT - 4)
NEVER = [2.0] * SHIFT


def test_windows_count_from_the_shift_until_the_load_is_good():
    assert loop_of(EVEN, LATE, NEVER, LATE, EVEN).settled == [0, 4, SHIFT, 4, 0]


def test_a_piece_that_moves_again_counts_unless_the_load_shifted():
    moves = ((3, "group 1"), (5, "group 1"), (8, "group 2"), (11, "group 2"), (15, "group 3"), (19, "group 3"))
    assert loop_of(EVEN, EVEN, EVEN, EVEN, EVEN, moves=moves).moved_again(3) == 1


def test_verdicts_compare_the_bytes_of_the_worst_stream_with_those_of_lpt():
    moved = {("hotspot", 1.0): 20, ("lpt", 1.0): 100, ("hotspot", 1.5): 90, ("lpt", 1.5): 200}
    loops = {(policy, zipf, 16): loop_of(EVEN, LATE, EVEN, EVEN, EVEN, state_bytes=size) for (policy, zipf), size in moved.items()}
    assert [verdict.measured for verdict in verdicts(loops)] == [4, 4, 0, pytest.approx(0.45)]


@pytest.mark.parametrize(("mine", "lpt", "part"), [(0, 0, 0.0), (1, 0, float("inf")), (1, 4, 0.25)])
def test_moving_state_where_lpt_moves_none_is_more_than_any_part_of_it(mine, lpt, part):
    even = (EVEN,) * PERIODS
    assert part_of_lpt(loop_of(*even, state_bytes=mine), loop_of(*even, state_bytes=lpt)) == part


def test_every_shift_counts_for_the_target_however_slight_its_imbalance():
    slight = [1.1] * SHIFT
    loop = loop_of(EVEN, LATE, EVEN, slight, EVEN)
    found = [verdict.measured for verdict in verdicts({("hotspot", 1.0, 16): loop, ("lpt", 1.0, 16): loop})]
    assert found[:2] == [SHIFT, (4 + SHIFT) / 2]


def test_hotspot_acts_below_the_threshold_that_jobs_have_by_default():
    off, hotspot = (run_loop(policy, 1.2, 16) for policy in ("off", "hotspot"))
    assert ((off.imbalance > 1.05 * off.floor) & (off.imbalance < 1.2 * off.floor)).any()
    assert max(hotspot.settled) <= 5


def test_hotspot_balances_the_loop_and_moves_less_than_from_scratch():
    off, hotspot, lpt = (run_loop(policy, 1.0, 8) for policy in ("off", "hotspot", "lpt"))
    assert off.plans == 0
    assert off.last_of_periods[0].mean() > 1.2
    imbalance, floor = hotspot.last_of_periods
    assert (imbalance <= 1.05 * floor).all()
    assert hotspot.moved_again(3) == 0
    assert 0 < hotspot.state_bytes < lpt.state_bytes / 2


def test_all_policies_get_the_same_shifts():
    off, hotspot = run_loop("off", 1.2, 4), run_loop("hotspot", 1.2, 4)
    assert hotspot.floor.tolist() == off.floor.tolist()
    assert hotspot.imbalance[0] == off.imbalance[0]


def test_loops_are_repeatable():
    first, second = run_loop("hotspot", 1.0, 4, seed=3), run_loop("hotspot", 1.0, 4, seed=3)
    assert first.moves == second.moves
    assert first.imbalance.tolist() == second.imbalance.tolist()


def test_splitting_keys_goes_below_the_floor_of_single_owners():
    floor, rules = run_loop("off", 1.5, 8).floor.min(), planned(1.5, 8)
    assert rules["two_choices"] < floor <= rules["consistent"]


@pytest.mark.parametrize(("workers", "groups"), [(2, 1024), (32, 1024), (33, 2048), (1024, 32_768), (5000, 32_768)])
def test_there_are_groups_enough_for_the_workers(workers, groups):
    assert key_groups_for(workers) == groups
