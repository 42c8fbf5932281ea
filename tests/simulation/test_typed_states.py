"""States of declared types in simulated jobs: objects survive moves, scaling, crashes and restarts, and the rows are the oracle's.

`EVENFLOW_SEEDS=2000 pytest tests/simulation/test_typed_states.py` simulates about that many jobs.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from flows_typed_states import FLOWS
from seeds import blocks, proportion

from evenflow.testing import check
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.restarting import with_restarts
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.settings import changed
from evenflow.testing.simulation.simulation import random_config

SEEDS, BLOCK, QUICK = 20, 10, 2
"""Seeds for each flow and kind of run, per test, and per test of a quick run."""

RUNS: dict[str, dict[str, Any]] = {
    "moves": {"actions": with_moves(), "parallelism": (2, 3)},
    "scaling": {"actions": with_scaling(keyed_only=True), "parallelism": (1, 2, 3)},
    "crashes": {"actions": with_restarts(with_crashes(with_moves(5, ("sudden", "lazy", "restart")))), "parallelism": (1, 2, 3)},
}
BACKENDS = ("memory", "lmdb")
TIMES = proportion(SEEDS * len(FLOWS) * len(RUNS) * len(BACKENDS))


@pytest.mark.few(3)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, TIMES, QUICK))
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_states_of_declared_types_leave_the_rows_of_the_oracle(make_flow, run, backend, seeds):
    for seed in seeds:
        workers = RUNS[run]["parallelism"][seed % len(RUNS[run]["parallelism"])]
        config = changed(random_config(Random(seed), workers), state={"backend": backend})
        check(make_flow, [seed], parallelism=workers, config=config, save_state=run == "crashes", actions=RUNS[run]["actions"])
