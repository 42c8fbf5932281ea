"""Simulated jobs that stop, and continue with newer versions of their program and other numbers of workers: the rows are the oracle's.

`EVENFLOW_SEEDS=2000 pytest tests/simulation/test_state_versions.py` simulates about that many jobs.
"""

from __future__ import annotations

from typing import Any

import pytest
from flows_versions import PROGRAMS
from seeds import blocks, proportion

from evenflow.testing import ACTIONS
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.stopping import check_stops

SEEDS, BLOCK, QUICK = 40, 10, 5
"""Seeds for each program and kind of run, per test, and in a quick run."""

RUNS: dict[str, Any] = {
    "alone": ACTIONS,
    "moves": with_crashes(with_moves(5, ("sudden", "lazy", "restart")), most=2),
    "scaling": with_crashes(with_scaling(keyed_only=True), most=2),
}
PLACES = ("memory", "lmdb", "server")
TIMES = proportion(SEEDS * len(PROGRAMS) * len(RUNS) * len(PLACES))


@pytest.fixture(params=PLACES)
def place(request):
    return request.getfixturevalue("state_server") if request.param == "server" else request.param


@pytest.mark.few(4)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, TIMES, QUICK))
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_newer_programs_continue_with_the_rows_of_one_that_was_never_changed(program, run, seeds, place):
    first, *later = PROGRAMS[program]
    stops = check_stops(first, seeds, parallelism=(1, 2, 3), actions=RUNS[run], later=later, state=place)
    skipping = check_stops(first, seeds, parallelism=(2, 3, 1), actions=RUNS[run], later=later[-1:], state=place)
    assert stops + skipping > len(seeds) / 4
