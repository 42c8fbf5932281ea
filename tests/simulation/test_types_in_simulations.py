"""Streams whose columns change their types in mid-stream, in simulated jobs: the rows are the oracle's, whichever worker saw a type first.

`EVENFLOW_SEEDS=2000 pytest tests/simulation/test_types_in_simulations.py` simulates about that many jobs.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from flows_types import FLOWS
from seeds import blocks, proportion

from evenflow.testing import ACTIONS, check
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.settings import changed
from evenflow.testing.simulation.simulation import random_config

SEEDS, BLOCK, QUICK = 20, 10, 2
"""Seeds for each flow and kind of run, per test, and per test of a quick run."""

RUNS: dict[str, dict[str, Any]] = {
    "any order": {"actions": ACTIONS, "parallelism": (1, 2, 3, 4)},
    "moves": {"actions": with_moves(), "parallelism": (2, 3)},
    "scaling": {"actions": with_scaling(), "parallelism": (1, 2, 3)},
    "crashes": {"actions": with_crashes(with_moves(5, ("sudden", "lazy", "restart"))), "parallelism": (1, 2, 3), "save_state": True},
}
TIMES = proportion(SEEDS * len(FLOWS) * len(RUNS))


@pytest.mark.few(3)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, TIMES, QUICK))
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_types_that_change_leave_the_rows_of_the_oracle(make_flow, run, seeds):
    check(make_flow, seeds, **RUNS[run])


@pytest.mark.few(2)
@pytest.mark.parametrize("place", ["lmdb", "server"])
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_types_that_change_leave_the_rows_of_the_oracle_in_a_backend(make_flow, place, request):
    backend = request.getfixturevalue("state_server") if place == "server" else place
    for seed in blocks(SEEDS, BLOCK, TIMES, 2)[0]:
        config = changed(random_config(Random(seed), 2), state={"backend": backend})
        check(make_flow, [seed], parallelism=2, config=config, save_state=True, actions=with_crashes(with_moves(5)))
