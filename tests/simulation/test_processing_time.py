"""Processing-time timers and windows in simulated jobs, while keys move, workers join and leave and are lost: each timer fires once and
none early, and each row is in one window.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_processing_time.py` simulates about that many jobs.
"""

from __future__ import annotations

import pytest
from flows_processing_time import FLOWS, timers_that_tell_when, windows_by_the_clock
from seeds import blocks, proportion

from evenflow.testing import ACTIONS, check, simulate
from evenflow.testing.actions.crashing import with_crashes, with_damage
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.zombies import with_zombies

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS = 2
"""Seeds for each flow and kind of accident, and per test."""
STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")
ACCIDENTS = {
    "none": ACTIONS,
    "moves": with_moves(),
    "crashes": with_damage(with_crashes(with_moves(5, STRATEGIES))),
    "zombies": with_zombies(with_moves(5, STRATEGIES)),
    "scaling": with_scaling(),
    "crashes while it scales": with_crashes(with_scaling()),
}
UNSAVED = ("none", "moves", "scaling")
"""Kinds of runs without losses, which need no checkpoint."""


@pytest.mark.few(2)
@pytest.mark.parametrize("seeds", blocks(SEEDS, SEEDS, proportion(SEEDS * len(ACCIDENTS) * len(FLOWS))))
@pytest.mark.parametrize("accidents", ACCIDENTS)
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_every_timer_fires_once_and_none_early_whatever_happens(make_flow, accidents, seeds):
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=accidents not in UNSAVED, actions=ACCIDENTS[accidents])


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, SEEDS, proportion(SEEDS * len(ACCIDENTS))))
@pytest.mark.parametrize("accidents", ACCIDENTS)
def test_every_row_is_in_one_window_and_each_window_is_emitted_once(accidents, seeds):
    check(windows_by_the_clock, seeds, parallelism=(1, 2, 3), save_state=accidents not in UNSAVED, actions=ACCIDENTS[accidents])


def test_timers_fire_while_the_stream_goes_on():
    found = [simulate(timers_that_tell_when(), seed, actions=ACCIDENTS["moves"]).rows["to_list"] for seed in range(4)]
    fired = [row["ended"] for rows in found for row in rows]
    assert fired.count(False) > len(fired) / 4
