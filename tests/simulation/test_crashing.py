"""Workers and the coordinator are lost at random moments, also while keys move and while the job recovers; the rows are the oracle's.

In every second block of seeds the disk is also full, or slow, for a while, whatever is being written then.

All flows together have about 5,000 seeds, those that take longer fewer, and run a part of them; `EVENFLOW_SEEDS=100000 pytest
tests/simulation/test_crashing.py` tries that many, in the same proportion. A seed that once failed becomes a test with a name.
"""

from __future__ import annotations

import pytest
from flows import (
    FLOWS,
    no_rows,
    rows_in_order,
    running_updates,
    stateful_map_columns,
    stateful_map_in_order,
    states_that_expire,
    timers_of_a_key,
)
from seeds import blocks, proportion
from watched_worlds import Watcher

from evenflow.engine.keyed_state import pending
from evenflow.testing import check
from evenflow.testing.actions.crashing import with_crashes, with_damage, with_lost_manifests
from evenflow.testing.actions.failing_storage import with_full_disk
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.zombies import with_zombies

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

FEW, MANY = 100, 550
"""Seeds for each flow."""
BLOCK, LOSSES, WITH_ZOMBIES, FLOWS_WITH_ZOMBIES = 25, 5, 8, 6
QUICK_BLOCK, QUICK_ZOMBIES = 6, 4
"""Seeds per test, and those of a quick run; flows per test of zombies."""

QUICK = {
    no_rows, rows_in_order, running_updates, stateful_map_columns, stateful_map_in_order, states_that_expire, timers_of_a_key,
}  # fmt: skip

STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")


SEEDS = {make_flow: MANY if make_flow in QUICK else FEW for make_flow in FLOWS}
TIMES = proportion(sum(SEEDS.values()) + (LOSSES + WITH_ZOMBIES) * len(FLOWS))
BLOCKS = [
    pytest.param(make_flow, block, id=f"{make_flow.__name__}-{block.start}")
    for make_flow, seeds in SEEDS.items()
    for block in blocks(seeds, BLOCK, TIMES, QUICK_BLOCK)
]


@pytest.fixture(autouse=True)
def few_keys_are_installed_in_several_slices(monkeypatch):
    monkeypatch.setattr(pending, "SLICE", 1)


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(LOSSES, LOSSES, TIMES))
@pytest.mark.parametrize("make_flow", FLOWS)
def test_rows_of_checkpoints_whose_manifests_are_gone_are_retracted(make_flow, seeds):
    watcher = Watcher()
    actions = with_lost_manifests(with_damage(with_crashes(with_moves(5, STRATEGIES), most=2), most=1))
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=True, actions=(*actions, watcher))
    assert sum(world.deletions for world in watcher.worlds) > 0
    assert make_flow is no_rows or sum(world.coordinator.all_storage.retractions for world in watcher.worlds) > 0, "rows were taken back"


@pytest.mark.few(2)
@pytest.mark.parametrize(("make_flow", "seeds"), BLOCKS)
def test_rows_are_those_of_the_oracle_whatever_is_lost_and_when(make_flow, seeds):
    watcher = Watcher()
    actions = with_damage(with_crashes(with_moves(5, STRATEGIES)))
    disk_is_full = seeds.start // BLOCK % 2 == 1
    if disk_is_full:
        actions = with_full_disk(actions)
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=True, actions=(*actions, watcher))
    coordinators = [world.coordinator for world in watcher.worlds]
    assert len(coordinators) == len(seeds)
    assert sum(world.accidents for world in watcher.worlds) > len(seeds), "more than one was lost in a run"
    assert sum(coordinator.all_storage.retractions for coordinator in coordinators) > 0, "rows were taken back"
    refused = sum(coordinator.all_storage.refused > 0 for coordinator in coordinators)
    assert (refused > len(seeds) / 4) == disk_is_full, "something could not be written in many a run"
    assert sum(coordinator.counts.restarts for coordinator in coordinators) > len(seeds) / 2
    assert sum(coordinator.counts.recoveries for coordinator in coordinators) > len(seeds) / 4, "there often was a checkpoint to go back to"


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(WITH_ZOMBIES, WITH_ZOMBIES, TIMES, QUICK_ZOMBIES))
@pytest.mark.parametrize("first", range(0, len(FLOWS), FLOWS_WITH_ZOMBIES))
def test_rows_are_those_of_the_oracle_whatever_zombies_send_save_and_commit(first, seeds):
    watcher = Watcher()
    actions = with_zombies(with_damage(with_crashes(with_moves(5, STRATEGIES), 2), 1))
    for make_flow in FLOWS[first : first + FLOWS_WITH_ZOMBIES]:
        check(make_flow, seeds, parallelism=(1, 2, 3), save_state=True, actions=(*actions, watcher))
    assert sum(world.zombies_made for world in watcher.worlds) > len(watcher.worlds)
    assert sum(world.superseded for world in watcher.worlds) > 0, "coordinators found that another had begun"


@pytest.mark.parametrize("seed", [308, 1013])
def test_updates_of_a_key_that_moved_are_put_in_order_after_its_coordinator_is_lost_too(seed):
    check(running_updates, [seed], parallelism=3, save_state=True, actions=with_crashes(with_moves()))
