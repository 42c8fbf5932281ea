"""The code of any operator is exchanged in mid-stream, between moves, scalings and losses, in simulated jobs with a random order.

Every run must keep the rules of `test_moving.py`: the oracle's rows, no state in flight, none with a worker that the table doesn't name.
`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_upgrading.py` simulates about that many jobs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import flows
import flows_joins
import pytest
from flows_versions import PROGRAMS, migrating
from seeds import blocks, blocks_of, proportion
from watched_worlds import Watcher

from evenflow.engine.operators.keyed import KeyedOperator
from evenflow.engine.plan.task_spec import ChainedOperator
from evenflow.scheduler.protocol.reports import UpgradeState
from evenflow.testing import check
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.upgrading import with_upgrades

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

BLOCK, QUICK = 10, 6
"""Seeds per test, so that a failure is found and shown early; those of a quick run."""

IN_ORDER = {flows.stateful_map_in_order, flows.rows_in_order, flows.stateful_map_columns, flows.timers_of_a_key, flows.states_that_expire}
"""Flows that rely on the order of a source's records."""

SEEDS = {
    flows.tumbling_windows: 100,
    flows.sliding_windows: 50,
    flows.windows_of_windows: 50,
    flows.running_updates: 150,
    flows.running_finals: 50,
    flows.stateful_map_in_order: 150,
    flows.rows_in_order: 150,
    flows.stateful_map_columns: 50,
    flows.timers_of_a_key: 50,
    flows.states_that_expire: 50,
    flows.union_and_branches: 50,
    flows_joins.join_inner: 50,
    flows.no_rows: 50,
}

WITH_LOSSES = {
    flows.sliding_windows: 50,
    flows.running_updates: 100,
    flows.stateful_map_in_order: 100,
    flows.rows_in_order: 100,
    flows.timers_of_a_key: 50,
    flows.union_and_branches: 50,
}

TIMES = proportion(sum(SEEDS.values()) + sum(WITH_LOSSES.values()))


class Upgrades(Watcher):
    """A watcher that counts what became of upgrades."""

    @property
    def outcomes(self):
        """Count the upgrades by their states."""
        return Counter(upgrade.state for world in self.worlds for upgrade in world.coordinator.core.upgrading.operations)


@pytest.mark.few(1)
@pytest.mark.parametrize(("make_flow", "seeds"), blocks_of(SEEDS, BLOCK, TIMES, QUICK))
def test_rows_are_those_of_the_oracle_whatever_code_is_exchanged_when(make_flow, seeds):
    watcher, in_order = Upgrades(), make_flow in IN_ORDER
    actions = with_upgrades(with_scaling(2, keyed_only=True) if in_order else with_moves(), in_order=in_order)
    check(make_flow, seeds, parallelism=(1, 2, 3), actions=(*actions, watcher))
    assert len(watcher.worlds) == len(seeds)
    assert watcher.outcomes


@pytest.mark.few(1)
@pytest.mark.parametrize(("make_flow", "seeds"), blocks_of(WITH_LOSSES, BLOCK, TIMES, QUICK))
def test_losses_while_code_is_exchanged_change_no_row(make_flow, seeds):
    watcher, in_order = Upgrades(), make_flow in IN_ORDER
    actions = with_crashes(with_upgrades(with_moves(), in_order=in_order))
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=True, actions=(*actions, watcher))
    assert sum(world.accidents for world in watcher.worlds) > len(seeds), "more than one was lost in a run"
    assert watcher.outcomes


@pytest.mark.slow
def test_upgrades_come_to_every_end():
    """Count over more runs than a block has."""
    watcher, seeds = Upgrades(), range(60)
    check(flows.running_updates, seeds, parallelism=(1, 2, 3), save_state=True, actions=(*with_upgrades(with_moves()), watcher))
    assert watcher.outcomes[UpgradeState.DONE] > len(seeds) / 4
    assert watcher.outcomes[UpgradeState.ROLLED_BACK] > len(seeds) / 8


class Versions:
    """Rows by the version of the code that processed them, in the order in which it did."""

    def __init__(self):
        self.seen = []
        self.first = {}
        """The functions of the first version, by stage: those of later ones note rows already."""

    def code(self, stage, version):
        """Return the stage's operators; the first one notes its version with each row."""
        head, *others = stage.chain
        if not isinstance(head.operator, KeyedOperator):
            return stage.chain
        function = self.first.setdefault(stage.name, head.operator.function)

        def noting(state, row):
            self.seen.append((row["key"], row["seq"], version))
            return function(state, row)

        return [ChainedOperator(head.name, replace(head.operator, function=noting), head.inputs), *others]


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(40))
def test_each_row_is_processed_by_one_version_and_those_of_a_key_by_rising_ones(seed):
    versions, watcher = Versions(), Upgrades()
    actions = with_upgrades(with_moves(), in_order=True, aborted=0.0, new=versions.code)
    check(flows.rows_in_order, [seed], parallelism=(1, 2, 3), actions=(*actions, watcher))
    numbers = [number for _, number, _ in versions.seen]
    assert len(numbers) == len(set(numbers))
    if not watcher.outcomes[UpgradeState.ROLLED_BACK]:
        newest = {}
        for key, _, version in versions.seen:
            assert version >= newest.get(key, 1)
            newest[key] = version


@pytest.mark.few(2)
@pytest.mark.parametrize("seeds", blocks(100, BLOCK, TIMES, QUICK))
@pytest.mark.parametrize("program", PROGRAMS)
def test_state_is_migrated_once_wherever_it_is_when_the_code_is_exchanged(program, seeds):
    watcher = Upgrades()
    actions = with_upgrades(with_moves(), in_order=True, new=migrating(program), readable=False)
    check(PROGRAMS[program][0], seeds, parallelism=(1, 2, 3), save_state=True, actions=(*with_crashes(actions), watcher))
    assert watcher.outcomes
