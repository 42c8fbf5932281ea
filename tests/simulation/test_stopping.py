"""Jobs stop at a barrier at random moments, also while keys move, workers join and leave, and processes are lost.

Another run continues from their last checkpoint, and the rows of all runs together are those of the oracle.
"""

from __future__ import annotations

import flows
import flows_joins
import flows_rows
import flows_times
import flows_windows
import pytest
from seeds import blocks, proportion

from evenflow.testing import ACTIONS
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.failing_storage import with_full_disk
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.stopping import check_stops
from evenflow.testing.actions.zombies import with_zombies

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, BLOCK, QUICK = 60, 12, 2
"""Seeds for each flow and kind of disturbance, per test, and in a quick run."""

MANY = 100
"""Runs whose share of stops is near that of all runs."""

MOVES = with_moves(5, ("sudden", "pause", "fluid", "batched", "lazy", "restart"))

DISTURBANCES = {
    "alone": ACTIONS,
    "moves": with_crashes(MOVES, most=2),
    "scaling": with_crashes(with_scaling(keyed_only=True), most=2),
    "full disk": with_full_disk(with_crashes(ACTIONS, most=2)),
    "zombies": with_zombies(with_crashes(MOVES, most=2)),
}

FLOWS = (*flows.FLOWS, *flows_joins.JOINS, *flows_rows.FLOWS, *flows_times.FLOWS, *flows_windows.FLOWS)


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, proportion(SEEDS * len(FLOWS)), QUICK))
@pytest.mark.parametrize("disturbance", DISTURBANCES)
def test_runs_that_are_stopped_and_go_on_give_together_the_rows_of_the_oracle(disturbance, seeds):
    """Check every fifth flow in a block of seeds: in five blocks a flow meets each disturbance."""
    first = (list(DISTURBANCES).index(disturbance) + seeds.start // BLOCK) % len(DISTURBANCES)
    stops = [
        check_stops(make_flow, seeds, parallelism=(1, 2, 3), actions=DISTURBANCES[disturbance])
        for make_flow in FLOWS[first :: len(DISTURBANCES)]
    ]
    runs = len(seeds) * len(stops)
    assert sum(stops) > (0.5 if runs >= MANY else 0.25) * runs, "half of many jobs stop, and a quarter of a few"


def test_an_operator_that_has_removed_keys_before_it_had_any_saves_what_changed():
    check_stops(flows_rows.first_rows, [105], actions=with_crashes(with_scaling(keyed_only=True)))


def test_end_of_an_input_that_completes_a_barrier_counts_before_it_at_every_worker_of_a_join():
    check_stops(flows_joins.join_with_an_empty_side, [11], parallelism=(3,), actions=DISTURBANCES["scaling"])
