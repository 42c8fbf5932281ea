"""Keyed state moves between workers in mid-stream, in simulated jobs with a random order: the results must not show it.

Apart from the rows, every run must keep this: a key's rows arrive in order, no record stays set aside, no state is in flight or
with a worker that the routing table doesn't name. `EVENFLOW_SEEDS=20000 pytest tests/simulation/test_moving.py` simulates about that
many jobs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import flows
import pytest
from seeds import blocks, proportion

import evenflow as ef
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.engine.task import core, handover
from evenflow.scheduler.configs.job import LIVE
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import Stop
from evenflow.testing import ACTIONS, Choice, check, simulate
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.simulation.actions import poll

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

BLOCK, QUICK = 25, 10
"""Seeds per test, so that a failure is found and shown early; those of a quick run."""

SEEDS = {
    flows.tumbling_windows: 100,
    flows.sliding_windows: 100,
    flows.windows_of_windows: 50,
    flows.running_updates: 200,
    flows.running_finals: 50,
    flows.stateful_map_in_order: 200,
    flows.rows_in_order: 200,
    flows.stateful_map_columns: 200,
    flows.timers_of_a_key: 50,
    flows.states_that_expire: 50,
    flows.own_aggregates_and_sketches: 50,
    flows.null_keys_made_by_a_map: 50,
    flows.types_that_come_late: 50,
    flows.poison_without_state: 50,
    flows.poison_with_states: 50,
    flows.many_widths: 50,
    flows.union_and_branches: 50,
}
"""Most for the flows that are quick to run. As many runs again, in which workers also join and leave, are in test_scaling.py."""

WHOLE = {
    flows.windows_of_windows, flows.running_finals, flows.null_keys_made_by_a_map, flows.types_that_come_late, flows.many_widths,
}  # fmt: skip
"""Flows with a whole block in a quick run: in its first seeds keys don't move by every strategy."""

BLOCKS = [
    pytest.param(make_flow, block, id=f"{make_flow.__name__}-{block.start}")
    for make_flow, seeds in SEEDS.items()
    for block in blocks(seeds, BLOCK, proportion(sum(SEEDS.values())), BLOCK if make_flow in WHOLE else QUICK)
]


class Watcher:
    """An action that does nothing: it remembers the migrations of every run."""

    def __init__(self):
        self.histories = {}

    def __call__(self, world):
        self.histories[id(world)] = world, world.coordinator.core.migrations.history
        return iter(())

    def runs(self):
        """Return, for each run, the migrations by which keys got to another worker."""
        return [[migration for migration in history if migration.keys_moved] for _, history in self.histories.values()]


@pytest.mark.few(1)
@pytest.mark.parametrize(("make_flow", "seeds"), BLOCKS)
def test_moves_in_any_order_of_events_leave_the_rows_of_the_oracle(make_flow, seeds, monkeypatch):
    if seeds.start // BLOCK % 2:
        monkeypatch.setattr(handover, "CHUNK", 1)  # a few keys are given in several chunks, as many keys are
        monkeypatch.setattr(core, "REPLAYED", 1)  # and a few records are processed in pieces
    watcher = Watcher()
    check(make_flow, seeds, parallelism=(2, 3, 4), actions=(*with_moves(), watcher))
    runs = watcher.runs()
    assert len(runs) == len(seeds)
    assert sum(map(bool, runs)) > len(seeds) / 2, "keys moved in most of the runs"
    assert {migration.strategy for run in runs for migration in run} == set(LIVE)


@pytest.mark.few(1)
@pytest.mark.parametrize("strategy", LIVE)
def test_job_that_is_stopped_while_state_moves_finishes_with_whole_rows(strategy):
    moved = Counter()
    for seed in range(30):
        flow = ef.Dataflow("stopped")
        rows = flow.read(ef.generate(total=60, keys=5))
        rows.write(ef.to_list([], name="rows"))
        rows.key_by("key").aggregate(n=ef.count(), emit="final").write(ef.to_list([], name="counts"))
        result = simulate(flow, seed, parallelism=3, actions=(*with_moves(2, [strategy]), stop_while_state_moves))
        assert result.state is JobState.FINISHED
        assert sum(row["n"] for row in result.rows["counts"]) == len(result.rows["rows"]) <= 60
        moved[len(result.rows["rows"]) < 60] += 1
    assert moved[True] > 10, "most jobs were stopped in mid-stream"


def stop_while_state_moves(world):
    core = world.coordinator.core
    if core.migrations.in_step and core.state is JobState.RUNNING and world.random.random() < 0.1:
        world.coordinator.ask(Stop(drain=True))
    return iter(())


SUMS = {(0, 0), (0, 2), (0, 6), (0, 12), (0, 20), (1, 1), (1, 4), (1, 9), (1, 16), (1, 25)}
"""Parity and running sum, for 0 to 9."""


def sums_by_parity() -> ef.Dataflow:
    def running_sum(state: int | None, row: dict[str, Any]) -> tuple[int, dict[str, int]]:
        total = (state or 0) + row["item"]
        return total, {"parity": row["item"] % 2, "sum": total}

    flow = ef.Dataflow("parity")
    numbers = flow.read(ef.from_items(range(10)))
    numbers.key_by(lambda row: row["item"] % 2, column="parity").stateful_map(running_sum).write(ef.to_list([]))
    return flow


def poll_one_row(world):
    """Poll rarely, so that there is time for a move between two records."""
    if world.coordinator.core.state is not JobState.RUNNING or world.random.random() > 0.1:
        return
    for name, worker in world.workers.items():
        if worker.may_poll:
            yield Choice(name, "poll", worker.poll, (1, False, world.now))


ACTIONS_ONE_BY_ONE = (*(action for action in ACTIONS if action is not poll), poll_one_row)
ONE_BY_ONE = ef.JobConfig(key_groups=4, network=ef.NetworkConfig(batch_rows=1), checkpoint=ef.CheckpointConfig(interval=None))


class SwapAt:
    """An action that exchanges the two workers' keys at step `moment` of a run; `begun`: True if the job ran then.

    Steps in which nothing but time passes don't count: before and after them the job is the same.
    """

    def __init__(self, moment, strategy):
        self.moment, self.strategy, self.begun, self.now = moment, strategy, None, 0.0

    def __call__(self, world):
        if world.now > self.now:
            self.now = world.now
            return iter(())
        self.moment -= 1
        core = world.coordinator.core
        if self.moment == 0:
            self.begun = core.state is JobState.RUNNING
        if self.moment == 0 and self.begun:
            self.swap(world, core)
        return iter(())

    def swap(self, world, core):
        stage = next(stage for stage in core.plan.stages if stage.is_keyed)
        target = RoutingTable(1 - core.migrations.tables[stage.name].groups)
        self.history = core.migrations.history
        world.coordinator.do(lambda: core.reconfiguration.move(stage, self.strategy, target, "by the test"))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", LIVE)
def test_running_sums_by_parity_are_exactly_those_of_megaphone_whenever_the_keys_move(strategy):
    keys_moved = Counter()
    for seed in range(3):
        moment, begun = 0, False
        while begun is not None:
            moment += 1
            swap = SwapAt(moment, strategy)
            rows = simulate(sums_by_parity(), seed, config=ONE_BY_ONE, actions=(*ACTIONS_ONE_BY_ONE, swap)).rows["to_list"]
            assert len(rows) == len(SUMS)
            assert {(row["parity"], row["sum"]) for row in rows} == SUMS, f"moved at step {moment} of seed {seed}"
            begun = swap.begun
            if begun:
                keys_moved[swap.history[0].keys_moved] += 1
    assert keys_moved.total() > 100
    assert set(keys_moved) == {0, 1, 2}, "before the first record, between the first two, and behind them"
