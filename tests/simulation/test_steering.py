"""Policies steer simulated jobs by figures that are drawn at random, nodes come and go, sinks fail in commits: the rows are the oracle's.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_steering.py` simulates about that many jobs.
"""

from __future__ import annotations

import flows
import pytest
from seeds import blocks, proportion
from watched_worlds import Watcher

from evenflow.scheduler.protocol.reports import MigrationState, NodeScalingState, ScalingState
from evenflow.testing import ACTIONS, check
from evenflow.testing.actions.crashing import with_crashes, with_damage
from evenflow.testing.actions.failing_storage import with_failing_commits, with_full_disk
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.steering import with_drains, with_policies
from evenflow.testing.simulation.nodes import NODES

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, QUICK, TESTS = 10, 5, 3
"""Seeds for each flow, and per test; those of a quick run; how many tests run every flow."""

TIMES = proportion(SEEDS * TESTS * len(flows.FLOWS))
BLOCKS = blocks(SEEDS, SEEDS, TIMES, QUICK)

IN_ORDER = {
    flows.stateful_map_in_order, flows.rows_in_order, flows.stateful_map_columns, flows.timers_of_a_key, flows.states_that_expire,
    flows.poison_with_states,
}  # fmt: skip
"""Flows that rely on the order of a source's records: a split that moves to another source worker arrives by another channel."""


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, SEEDS, TIMES))
@pytest.mark.parametrize("make_flow", flows.FLOWS)
def test_rows_are_those_of_the_oracle_whatever_policies_decide(make_flow, seeds):
    watcher = Watcher()
    actions = with_policies(ACTIONS, sources=make_flow not in IN_ORDER)
    check(make_flow, seeds, parallelism=(1, 2, 3), actions=(*actions, watcher))
    if seeds.start == 0 and make_flow not in IN_ORDER | {flows.no_rows}:  # a later block of a few seeds may happen to have none
        scalings = [report for core in watcher.cores for report in (scaling.report() for scaling in core.operator_scaling.operations)]
        assert any(report.state is ScalingState.DONE for report in scalings)


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", BLOCKS)
@pytest.mark.parametrize("make_flow", flows.FLOWS)
def test_losses_while_policies_decide_change_no_row(make_flow, seeds):
    watcher = Watcher()
    actions = with_policies(with_crashes(ACTIONS), sources=make_flow not in IN_ORDER)
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=True, actions=(*actions, watcher))
    assert sum(world.accidents for world in watcher.worlds) > len(seeds) / 2


@pytest.mark.slow
def test_nodes_come_and_go_and_workers_go_on_elsewhere():
    watcher = Watcher()
    actions = (*with_policies(ACTIONS), watcher)
    for make_flow in (flows.running_updates, flows.sliding_windows, flows.many_widths):
        check(make_flow, range(20), parallelism=(2, 3), save_state=True, actions=actions)
    assert any(core.autoscaling.decisions() for core in watcher.cores)
    done = [r for core in watcher.cores for r in core.node_scaling.operations if r.state is NodeScalingState.DONE]
    assert any(report.added for report in done)
    assert any(report.removed is not None and report.parallelism for report in done)
    assert any(report.replaced for report in done), "workers went on in another process, from a checkpoint"


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", BLOCKS)
@pytest.mark.parametrize("make_flow", [flows.running_updates, flows.sliding_windows, flows.stateful_map_in_order])
def test_nodes_that_drain_are_emptied_while_workers_and_coordinators_are_lost(make_flow, seeds):
    watcher = Watcher()
    actions = (*with_drains(with_crashes(with_moves(5, ("sudden", "lazy", "restart")), 2)), watcher)
    check(make_flow, seeds, parallelism=(2, 3), save_state=True, actions=actions)
    for seed in range(seeds.stop, 3 * QUICK) if seeds.start == 0 else ():  # a few jobs may happen to have none
        if not any(world.coordinator.nodes.home != NODES[0] for world in watcher.worlds):
            check(make_flow, [seed], parallelism=(2, 3), save_state=True, actions=actions)
    done = [r for core in watcher.cores for r in core.node_scaling.operations if r.state is NodeScalingState.DONE]
    assert any(report.replaced for report in done)
    if seeds.start == 0:
        assert any(world.coordinator.nodes.home != NODES[0] for world in watcher.worlds), "a coordinator has left its node"


@pytest.mark.slow
def test_balancers_move_keys_automatically():
    watcher = Watcher()
    check(flows.running_updates, range(60), parallelism=(2, 3), actions=(*with_policies(ACTIONS, sources=False), watcher))
    moved = [m for core in watcher.cores for m in core.migrations.history if "automatic" in m.reason]
    assert any(migration.state is MigrationState.DONE for migration in moved)


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", BLOCKS)
@pytest.mark.parametrize("make_flow", flows.FLOWS)
def test_sinks_that_fail_in_commits_lose_no_row_and_show_none_twice(make_flow, seeds):
    watcher = Watcher()
    actions = with_full_disk(with_failing_commits(with_damage(with_crashes(with_moves(5, ("sudden", "lazy", "restart")), 2), 1)))
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=True, actions=(*actions, watcher))
    assert sum(world.coordinator.all_storage.commits_failed for world in watcher.worlds) > len(seeds) / 2
