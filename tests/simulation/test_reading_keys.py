"""Keys are read while they move, workers join and leave, and processes are lost: every value is one that the key had meanwhile.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_reading_keys.py` simulates about that many jobs.
"""

from __future__ import annotations

import pytest
from reads_at_random import History, Prefixes, Reads, counted_in_order, n_and_total, rows_of_one_source, totals_of_one_source
from seeds import blocks, proportion

from evenflow.engine.task import handover
from evenflow.scheduler.protocol.effects import JobState
from evenflow.testing import simulate
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, BLOCK, QUICK = 100, 25, 10
"""Seeds per flow and accident, and per test; those of a quick run."""

ACCIDENTS = {
    "moves": (with_moves(5), False),
    "scaling": (with_scaling(keyed_only=True), False),
    "crashes": (with_crashes(with_moves(5, ("sudden", "pause", "fluid", "batched", "lazy", "restart"))), True),
}

BLOCKS = blocks(SEEDS, BLOCK, proportion(SEEDS * 3 * len(ACCIDENTS)), QUICK)


def run(make, seeds, accidents):
    actions, save_state = ACCIDENTS[accidents]
    answers = seen = 0
    for seed in seeds:
        flow, reads = make()
        result = simulate(flow, seed, parallelism=2 + seed % 2, save_state=save_state, actions=(*actions, reads))
        assert result.state is JobState.FINISHED
        answers, seen = answers + reads.answers, seen + reads.seen
    assert answers > 5 * len(seeds), "reads are answered, also while keys move"
    assert seen > answers / 4


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", BLOCKS)
@pytest.mark.parametrize("accidents", ACCIDENTS)
def test_state_of_a_function_is_one_that_it_had_between_request_and_answer(accidents, seeds, monkeypatch):
    if seeds.start // BLOCK % 2:
        monkeypatch.setattr(handover, "CHUNK", 1)  # a few keys are given in several chunks, as many keys are

    def make():
        history = History()
        return counted_in_order(history), Reads(history, "count", tuple)

    run(make, seeds, accidents)


@pytest.mark.few(2)
@pytest.mark.parametrize("seeds", BLOCKS)
@pytest.mark.parametrize("emit", ["update", "final"])
@pytest.mark.parametrize("accidents", ACCIDENTS)
def test_row_of_an_aggregate_counts_every_row_up_to_some_moment_once(accidents, emit, seeds, monkeypatch):
    if seeds.start // BLOCK % 2:
        monkeypatch.setattr(handover, "CHUNK", 1)
    rows = rows_of_one_source()
    run(lambda: (totals_of_one_source(emit), Reads(Prefixes(rows), "count", n_and_total)), seeds, accidents)
