"""Patterns in simulated jobs, with all accidents that a job may have: the matches are those of the definition.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_patterns.py` simulates about that many jobs.
"""

from __future__ import annotations

from random import Random

import pytest
from flows_patterns import FLOWS, patterns
from seeds import blocks, proportion

from evenflow.testing import check
from evenflow.testing.actions.crashing import with_crashes, with_damage
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.zombies import with_zombies
from evenflow.testing.oracle import oracle
from evenflow.testing.settings import changed
from evenflow.testing.simulation.simulation import random_config

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, PLACES = 1, ("lmdb", "server")
STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")

ACCIDENTS = {
    "none": (),
    "moves": with_moves(),
    "crashes": with_damage(with_crashes(with_moves(5, STRATEGIES))),
    "zombies": with_zombies(with_damage(with_crashes(with_moves(5, STRATEGIES), 2), 1)),
    "scaling": with_scaling(),
    "crashes while it scales": with_crashes(with_scaling()),
}
UNSAVED = ("none", "moves", "scaling")
"""Kinds of runs without losses, which need no checkpoint."""

BLOCKS = blocks(SEEDS, SEEDS, proportion(SEEDS * len(FLOWS) * (len(ACCIDENTS) + len(PLACES))))


def test_every_pattern_of_the_flows_has_matches():
    for make_flow in FLOWS:
        for name, rows in oracle(make_flow()).items():
            assert len(rows) > 3, f"{name}: {len(rows)} rows"


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", BLOCKS)
@pytest.mark.parametrize("accidents", ACCIDENTS)
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_matches_are_those_of_the_definition_whatever_happens(make_flow, accidents, seeds):
    options = {"actions": ACCIDENTS[accidents]} if ACCIDENTS[accidents] else {}
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=accidents not in UNSAVED, **options)


@pytest.fixture(params=PLACES)
def place(request):
    return request.getfixturevalue("state_server") if request.param == "server" else request.param


@pytest.mark.slow
@pytest.mark.parametrize("seeds", BLOCKS)
def test_matches_are_those_of_the_definition_in_every_state_backend(seeds, place):
    for seed in seeds:
        config = changed(random_config(Random(seed), 2), state={"backend": place})
        check(patterns, [seed], parallelism=2, config=config, save_state=True, actions=with_crashes(with_moves(5, STRATEGIES)))
