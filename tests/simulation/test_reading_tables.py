"""Tables of all keys are read while keys move, workers join and leave, and processes are lost: each is the state at one position.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_reading_tables.py` simulates about that many jobs.
"""

from __future__ import annotations

from random import Random

import pytest
from seeds import blocks, proportion
from tables_at_random import Tables, tabled

from evenflow.engine.task import handover
from evenflow.scheduler.protocol.effects import JobState
from evenflow.testing import simulate
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.settings import changed
from evenflow.testing.simulation.simulation import random_config

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, BLOCK, QUICK = 100, 25, 3
"""Seeds per accident, and per test; those of a quick run."""

ACCIDENTS = {
    "moves": with_moves(5),
    "scaling": with_scaling(keyed_only=True),
    "crashes": with_crashes(with_moves(5, ("sudden", "pause", "fluid", "batched", "lazy", "restart"))),
}


def run(seeds, accidents, **settings):
    read = filled = 0
    for seed in seeds:
        tables, workers = Tables(), 2 + seed % 2
        config = changed(random_config(Random(seed), workers), **settings) if settings else None
        result = simulate(tabled(), seed, parallelism=workers, config=config, save_state=True, actions=(*ACCIDENTS[accidents], tables))
        assert result.state is JobState.FINISHED
        read, filled = read + sum(tables.read.values()), filled + tables.filled
    assert read > 5 * len(seeds), "tables are read, also while keys move"
    assert filled > read / 4


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, proportion(SEEDS * len(ACCIDENTS)), QUICK))
@pytest.mark.parametrize("accidents", ACCIDENTS)
def test_a_table_is_the_state_of_all_keys_after_some_row_of_the_source(accidents, seeds, monkeypatch):
    if seeds.start // BLOCK % 2:
        monkeypatch.setattr(handover, "CHUNK", 1)  # a few keys are given in several chunks, as many keys are
    run(seeds, accidents)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["lmdb", "server"])
def test_tables_are_the_same_with_state_in_backends(place, request):
    run(range(3), "crashes", state={"backend": request.getfixturevalue("state_server") if place == "server" else place})
