"""Programs are started again at random moments, after everything was lost or while the job still runs; the rows are the oracle's.

The store of their checkpoints also holds those of another run, loses replies, and is full or out of reach for a while.
`EVENFLOW_SEEDS=5000 pytest tests/simulation/test_restarting.py` tries about that many jobs.
"""

from __future__ import annotations

import pytest
from flows import FLOWS, no_rows, rows_in_order, running_finals, running_updates, stateful_map_in_order
from seeds import blocks, proportion
from watched_worlds import Watcher

from evenflow.testing import ACTIONS, check
from evenflow.testing.actions.crashing import with_crashes, with_damage
from evenflow.testing.actions.failing_storage import with_full_disk
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.restarting import with_lost_replies, with_restarts
from evenflow.testing.actions.zombies import with_zombies

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, BLOCK = 40, 20
TIMES = proportion(SEEDS * (len(FLOWS) + 8))
TOGETHER = 8


def watched(make_flows, seeds, actions):
    watcher = Watcher()
    for make_flow in make_flows:
        check(make_flow, seeds, parallelism=(1, 2, 3), save_state=True, actions=(*actions, watcher))
    return watcher.worlds


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, TIMES, 4))
@pytest.mark.parametrize("first", range(0, len(FLOWS), TOGETHER))
def test_program_that_is_started_again_gives_the_rows_of_one_that_was_not(first, seeds):
    actions = with_lost_replies(with_restarts(with_crashes(with_moves(5), most=2)))
    worlds = watched(FLOWS[first : first + TOGETHER], seeds, actions)
    assert sum(world.restarts for world in worlds) > len(worlds) / 4
    assert sum(world.coordinator.all_storage.troubles["lost replies"] for world in worlds) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seeds", blocks(2 * SEEDS, BLOCK, TIMES, 4))
def test_store_may_be_full_or_out_of_reach_at_any_moment(seeds):
    actions = with_full_disk(with_restarts(with_crashes(ACTIONS, most=2)), troubles=("full", "slow", "unreachable"))
    worlds = watched((rows_in_order, running_updates, stateful_map_in_order), seeds, with_lost_replies(actions))
    storages = [world.coordinator.all_storage for world in worlds]
    assert sum(storage.troubles["unreachable"] for storage in storages) > len(storages)
    assert sum(storage.refused > 0 for storage in storages) > len(storages) / 4


@pytest.mark.slow
@pytest.mark.parametrize("seeds", blocks(2 * SEEDS, BLOCK, TIMES, 4))
def test_owners_that_were_taken_over_from_change_nothing(seeds):
    actions = with_restarts(with_zombies(with_damage(with_crashes(ACTIONS, most=1), most=1), most=2), most=3)
    worlds = watched((rows_in_order, running_finals, no_rows), seeds, actions)
    assert sum(world.zombies_made for world in worlds) > len(worlds) / 2
    assert sum(world.superseded for world in worlds) > 0, "owners found that another had begun"


@pytest.mark.parametrize("seeds", blocks(2 * SEEDS, BLOCK, TIMES, 4))
def test_program_continues_with_another_number_of_workers(seeds):
    worlds = watched((running_finals,), seeds, with_restarts(with_crashes(ACTIONS, most=1), parallelism=(None, 1, 2, 3, 4)))
    assert sum(world.restarts for world in worlds) > 0
