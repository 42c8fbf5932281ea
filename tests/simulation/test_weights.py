"""Chains of two or three aggregates at random over random rows, while keys move, workers join, leave and are lost, with each state
backend: the rows are those of an oracle that knows neither updates nor weights.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_weights.py` simulates about that many jobs, each of a chain of its own.
"""

from __future__ import annotations

from functools import partial
from random import Random

import pytest
from flows_weights import chain, counted_users, logged_users, users_by_place
from seeds import blocks, proportion

from evenflow.engine.task import handover
from evenflow.testing import ACTIONS, check
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.failing_storage import with_full_disk
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.restarting import with_lost_replies, with_restarts
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.zombies import with_zombies
from evenflow.testing.settings import changed
from evenflow.testing.simulation.simulation import random_config

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, BLOCK, QUICK = 1_000, 50, 4
"""Seeds for each kind of action, per test, and per test of a quick run."""
STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")
KINDS = {
    "move": with_moves,
    "crash": lambda: with_crashes(with_moves(5, STRATEGIES)),
    "scale": with_scaling,
    "restart": lambda: with_lost_replies(with_restarts(with_crashes(with_moves(5), most=2))),
    "disk": lambda: with_full_disk(with_crashes(with_moves(5, STRATEGIES))),
    "zombies": lambda: with_zombies(with_moves(5, STRATEGIES)),
}
PLACES = ("memory", "memory", "lmdb", "server")


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, proportion(SEEDS * len(KINDS)), QUICK))
@pytest.mark.parametrize("kind", KINDS)
def test_aggregates_over_aggregates_are_exact_whatever_happens(kind, seeds, state_server, monkeypatch):
    for seed in seeds:
        own = seed * len(KINDS) + list(KINDS).index(kind)
        workers, place = 1 + own % 3, PLACES[own // 3 % len(PLACES)]
        monkeypatch.setattr(handover, "CHUNK", 1 if seed % 2 else 2_048)
        config = changed(random_config(Random(own), workers), state={"backend": state_server if place == "server" else place})
        save = kind not in ("move", "scale")
        check(partial(chain, own), [own], parallelism=workers, config=config, save_state=save, actions=KINDS[kind]())


@pytest.mark.few(1)
@pytest.mark.parametrize("make_flow", [users_by_place, counted_users, logged_users])
def test_last_updates_are_exact_however_rows_are_cut_into_batches(make_flow):
    check(make_flow, range(10), parallelism=(1, 2, 3), actions=ACTIONS)
