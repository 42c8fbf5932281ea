"""Aggregates that keep values, in simulated jobs while keys move, workers join, leave and are lost, with each state backend.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_kept_values.py` simulates about that many jobs.
"""

from __future__ import annotations

from random import Random

import pytest
from flows_aggregates import FLOWS
from seeds import blocks, proportion

from evenflow.engine.task import handover
from evenflow.testing import ACTIONS, check
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.failing_storage import with_full_disk
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.zombies import with_zombies
from evenflow.testing.settings import changed
from evenflow.testing.simulation.simulation import random_config

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS = 1
"""Seeds for each flow and kind of action, and per test."""
KINDS = ("plain", "move", "crash", "disk", "zombies", "scale")

STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")
PLACES = ("memory", "memory", "lmdb", "server")


def actions(name):
    return {
        "plain": lambda: ACTIONS,
        "move": with_moves,
        "crash": lambda: with_crashes(with_moves(5, STRATEGIES)),
        "disk": lambda: with_full_disk(with_crashes(with_moves(5, STRATEGIES))),
        "zombies": lambda: with_zombies(with_moves(5, STRATEGIES)),
        "scale": with_scaling,
    }[name]()


@pytest.mark.few(3)
@pytest.mark.parametrize("seeds", blocks(SEEDS, SEEDS, proportion(SEEDS * len(KINDS) * len(FLOWS))))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_rows_are_those_of_the_oracle_whatever_happens(make_flow, kind, seeds, state_server, monkeypatch):
    for seed in seeds:
        workers, place = 1 + (seed + len(kind)) % 3, PLACES[(seed + len(kind) + len(make_flow.__name__)) % len(PLACES)]
        monkeypatch.setattr(handover, "CHUNK", 1 if seed % 2 else 2_048)
        config = changed(random_config(Random(seed), workers), state={"backend": state_server if place == "server" else place})
        check(make_flow, [seed], parallelism=workers, config=config, save_state=kind not in ("plain", "move"), actions=actions(kind))
