"""Workers and the coordinator are lost at random moments, also while keys move and while the job recovers; the rows are the oracle's.

Every flow runs with a few hundred seeds, so that all flows together have more than 5,000; `EVENFLOW_SEEDS=100000 pytest
tests/unit/test_crashing.py` tries that many for each. A seed that once failed becomes a test with a name.
"""

from __future__ import annotations

import os

import pytest
from flows import FLOWS

from evenflow.testing import check
from evenflow.testing.crashing import with_crashes
from evenflow.testing.moving import with_moves

SEEDS = int(os.environ.get("EVENFLOW_SEEDS", "360"))
BLOCK = 60
"""Seeds per test, so that a failure is found and shown early."""

STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")


class Watcher:
    """An action that never does anything, but keeps the worlds that it sees."""

    def __init__(self):
        self.worlds = []

    def __call__(self, world):
        if not self.worlds or self.worlds[-1] is not world:
            self.worlds.append(world)
        return iter(())


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_whatever_is_lost_and_when_the_rows_are_those_of_the_oracle(make_flow, first):
    watcher, seeds = Watcher(), range(first, min(first + BLOCK, SEEDS))
    actions = with_crashes(with_moves(5, STRATEGIES))
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=True, actions=(*actions, watcher))
    coordinators = [world.coordinator for world in watcher.worlds]
    assert len(coordinators) == len(seeds)
    assert sum(world.accidents for world in watcher.worlds) > len(seeds), "more than one was lost in a run"
    assert sum(coordinator.restarts for coordinator in coordinators) > len(seeds) / 2
    assert sum(coordinator.recoveries for coordinator in coordinators) > len(seeds) / 4, "there often was a checkpoint to go back to"
