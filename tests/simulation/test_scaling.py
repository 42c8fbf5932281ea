"""Workers join and leave any operator in mid-stream, between moves and losses, in simulated jobs with a random order.

Every run must keep the rules of `test_moving.py`: the oracle's rows, no state in flight, none with a worker that the table
doesn't name. `EVENFLOW_SEEDS=20000 pytest tests/simulation/test_scaling.py` simulates about that many jobs.
"""

from __future__ import annotations

import flows
import pytest
from seeds import blocks, blocks_of, proportion
from watched_worlds import Watcher

from evenflow.scheduler.record.rescaling import RescaleState
from evenflow.testing import check
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import poll_slowly
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.simulation.actions import poll

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

BLOCK, QUICK = 10, 6
"""Seeds per test, so that a failure is found and shown early; those of a quick run."""

IN_ORDER = {
    flows.stateful_map_in_order, flows.rows_in_order, flows.stateful_map_columns, flows.timers_of_a_key, flows.states_that_expire,
    flows.poison_with_states,
}  # fmt: skip
"""Flows that rely on the order of a source's records: a split that moves to another source worker arrives by another channel."""

SEEDS = {
    flows.tumbling_windows: 100,
    flows.sliding_windows: 250,
    flows.windows_of_windows: 50,
    flows.running_updates: 250,
    flows.running_finals: 200,
    flows.stateful_map_in_order: 350,
    flows.rows_in_order: 100,
    flows.stateful_map_columns: 100,
    flows.timers_of_a_key: 50,
    flows.states_that_expire: 50,
    flows.union_and_branches: 50,
    flows.many_widths: 50,
    flows.own_aggregates_and_sketches: 50,
    flows.null_keys_made_by_a_map: 50,
    flows.types_that_come_late: 50,
    flows.poison_without_state: 50,
    flows.poison_with_states: 50,
    flows.no_rows: 50,
}
"""Most for the flows that are quick to run."""

WITH_LOSSES = {
    flows.sliding_windows: 100,
    flows.running_finals: 50,
    flows.stateful_map_in_order: 100,
    flows.rows_in_order: 50,
    flows.running_updates: 50,
}


TIMES = proportion(sum(SEEDS.values()) + sum(WITH_LOSSES.values()))


class Scalings(Watcher):
    """A watcher that counts what became of scalings."""

    def runs_with(self, *changes):
        """Return the number of runs in which workers were `joining`, or `leaving`, to the end."""
        rescales = [world.coordinator.core.record.rescales for world in self.worlds]
        return sum(any(r.state is RescaleState.DONE and any(getattr(r.rescale, c) for c in changes) for r in run) for run in rescales)


@pytest.mark.few(1)
@pytest.mark.parametrize(("make_flow", "seeds"), blocks_of(SEEDS, BLOCK, TIMES, QUICK))
def test_workers_join_and_leave_in_any_order_of_events_and_the_rows_are_those_of_the_oracle(make_flow, seeds):
    watcher = Scalings()
    actions = with_scaling(keyed_only=make_flow in IN_ORDER)
    check(make_flow, seeds, parallelism=(1, 2, 3), actions=(*actions, watcher))
    assert len(watcher.worlds) == len(seeds)
    if make_flow is not flows.no_rows:  # its jobs end before much can happen
        assert watcher.runs_with("joining", "leaving") > len(seeds) * 0.4
        assert watcher.runs_with("joining") > len(seeds) / 4


@pytest.mark.slow
def test_workers_leave_in_many_runs():
    """Count over more runs than a block has: in ten it is sometimes one."""
    watcher, seeds = Scalings(), range(60)
    check(flows.running_updates, seeds, parallelism=(1, 2, 3), actions=(*with_scaling(), watcher))
    assert watcher.runs_with("leaving") > len(seeds) / 5
    assert watcher.runs_with("joining") > len(seeds) / 4


@pytest.mark.few(1)
@pytest.mark.parametrize(("make_flow", "seeds"), blocks_of(WITH_LOSSES, BLOCK, TIMES, QUICK))
def test_losses_while_workers_join_and_leave_change_no_row(make_flow, seeds):
    watcher = Scalings()
    actions = with_crashes(with_scaling(keyed_only=make_flow in IN_ORDER))
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=True, actions=(*actions, watcher))
    assert len(watcher.worlds) == len(seeds)
    assert sum(world.accidents for world in watcher.worlds) > len(seeds), "more than one was lost in a run"
    assert sum(world.coordinator.counts.recoveries for world in watcher.worlds) > len(seeds) / 4, (
        "there often was a checkpoint to go back to"
    )
    assert watcher.runs_with("joining", "leaving") > len(seeds) / 2


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(200, BLOCK, TIMES, QUICK))
def test_rows_of_a_split_keep_their_order_while_other_workers_take_it(seeds):
    hasty = [poll if action is poll_slowly else action for action in with_scaling(3)]  # much is under way when the source is scaled
    check(flows.rows_of_partitions, seeds, parallelism=(1, 2, 3), actions=hasty)


@pytest.mark.slow
def test_sources_are_scaled_in_many_of_these_runs():
    """Count over more runs than a block has."""
    watcher, seeds = Scalings(), range(60)
    check(flows.rows_of_partitions, seeds, parallelism=(1, 2, 3), actions=(*with_scaling(3), watcher))
    rescales = [world.coordinator.core.record.rescales for world in watcher.worlds]
    assert sum(any(r.state is RescaleState.DONE and r.source is not None for r in run) for run in rescales) > len(seeds) / 4


def test_a_request_that_a_worker_leaves_unread_does_not_block_its_sender():
    check(flows.running_updates, [97], parallelism=2, actions=with_scaling())
    check(flows.rows_in_order, [97], parallelism=2, actions=with_scaling(keyed_only=True))


def test_workers_that_joined_a_source_and_found_nothing_to_read_do_not_read_it_after_a_loss():
    check(flows.sliding_windows, [58], parallelism=2, save_state=True, actions=with_crashes(with_scaling()))
