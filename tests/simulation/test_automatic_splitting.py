"""`hotspot` splits and gathers hot keys of joins by the load that simulated workers measure; the rows are those of nested loops.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_automatic_splitting.py` simulates about that many jobs.
"""

from __future__ import annotations

import flows_zipf
import pytest
from seeds import blocks, proportion

from evenflow.scheduler.protocol.reports import MigrationState
from evenflow.testing import ACTIONS, check
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.measuring import acting_on_load, with_measured_load
from evenflow.testing.actions.scaling import with_scaling

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, QUICK = 6, 3
"""Seeds for each flow and kind of accident, and per test; those of a quick run."""

ACCIDENTS = {
    "alone": with_measured_load(ACTIONS),
    "crashes": with_measured_load(with_crashes(ACTIONS, 2)),
    "scaling": with_measured_load(with_scaling()),
}


class Watcher:
    """An action that does nothing: it remembers the migrations of each run."""

    def __init__(self):
        self.histories = {}

    def __call__(self, world):
        core = world.coordinator.core
        self.histories[id(core)] = core, core.migrations.history
        return iter(())

    @property
    def done(self):
        migrations = [m for _, history in self.histories.values() for m in history]
        return [m for m in migrations if m.plan is not None and m.state is MigrationState.DONE]


def run(make_flow, seeds, accidents, watcher):
    for seed in seeds:
        actions = (*ACCIDENTS[accidents], watcher)
        config = acting_on_load(seed)
        check(make_flow, [seed], parallelism=config.parallelism, config=config, save_state=accidents == "crashes", actions=actions)


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, SEEDS, proportion(SEEDS * len(ACCIDENTS) * len(flows_zipf.DEALABLE)), QUICK))
@pytest.mark.parametrize("accidents", ACCIDENTS)
@pytest.mark.parametrize("make_flow", flows_zipf.DEALABLE, ids=lambda make_flow: make_flow.__name__)
def test_hot_keys_are_split_and_gathered_and_each_pair_comes_once(make_flow, accidents, seeds):
    watcher = Watcher()
    run(make_flow, seeds, accidents, watcher)
    for seed in range(seeds.stop, 4 * QUICK) if seeds.start == 0 and accidents == "alone" else ():  # a few jobs may happen to have none
        if not any(m.plan.gathers for m in watcher.done):
            run(make_flow, [seed], accidents, watcher)
    if seeds.start == 0 and accidents != "scaling":  # a later block of a few seeds may happen to have none
        assert any(m.plan.splits for m in watcher.done)
        assert accidents != "alone" or any(m.plan.gathers for m in watcher.done)


@pytest.mark.slow
def test_keys_are_split_while_operators_are_scaled():
    """Count over all flows: rows wait while a source is scaled, and few of these runs are long enough for both."""
    watcher = Watcher()
    for make_flow in flows_zipf.DEALABLE:
        run(make_flow, range(4), "scaling", watcher)
    assert sum(bool(m.plan.splits) for m in watcher.done) >= 4


@pytest.mark.slow
def test_keys_of_a_full_join_stay_whole():
    watcher = Watcher()
    run(flows_zipf.full, range(SEEDS), "alone", watcher)
    assert watcher.done
    assert not any(m.plan.splits for m in watcher.done)
