"""Row operators on keyed streams, branches, first rows, lookups, coroutines and event time from mid-stream, in simulated jobs.

The rows are those of plain Python.
"""

from __future__ import annotations

import flows_rows
import flows_times
import pytest
from seeds import blocks, proportion

from evenflow.testing import ACTIONS, check
from evenflow.testing.actions.crashing import with_crashes, with_damage
from evenflow.testing.actions.failing_storage import with_full_disk
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.steering import with_policies
from evenflow.testing.actions.zombies import with_zombies

# A block of seeds takes seconds of a core, and a busy machine gives it only a part of one.
# A simulated crash closes no event loop, like a real one.
pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]

SEEDS = 1
"""Seeds for each flow and kind of accident, and per test."""
STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")
FLOWS = (*flows_rows.FLOWS, *flows_times.FLOWS)
IN_ORDER = {flows_rows.awaited_rows, flows_rows.gathered_rows, flows_rows.first_rows, flows_times.times_behind_an_exchange}
"""Flows that rely on the order of a source's records: a split that moves to another source worker arrives by another channel."""


def scaled(make_flow):
    return with_scaling(keyed_only=make_flow in IN_ORDER)


ACCIDENTS = {
    "none": lambda make_flow: (),
    "moves": lambda make_flow: with_moves(),
    "crashes": lambda make_flow: with_damage(with_crashes(with_moves(5, STRATEGIES))),
    "full disks": lambda make_flow: with_full_disk(with_damage(with_crashes(with_moves(5, STRATEGIES)))),
    "zombies": lambda make_flow: with_zombies(with_damage(with_crashes(with_moves(5, STRATEGIES), 2), 1)),
    "scaling": scaled,
    "crashes while it scales": lambda make_flow: with_crashes(scaled(make_flow)),
}
UNSAVED = ("none", "moves", "scaling")
"""Kinds of runs without losses, which need no checkpoint."""


@pytest.mark.few(3)
@pytest.mark.parametrize("seeds", blocks(SEEDS, SEEDS, proportion(SEEDS * len(ACCIDENTS) * len(FLOWS))))
@pytest.mark.parametrize("accidents", ACCIDENTS)
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_rows_are_those_of_plain_python_whatever_happens(make_flow, accidents, seeds):
    actions = ACCIDENTS[accidents](make_flow)
    options = {"actions": actions} if actions else {}
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=accidents not in UNSAVED, **options)


def test_worker_that_joins_gets_no_time_that_is_behind_that_of_the_others():
    """Check a case in which a window was emitted twice, when a source's event time fell after its splits were reassigned, or a
    recovery.
    """
    flow = flows_times.times_from_a_column
    check(flow, [39], parallelism=1, save_state=True, actions=with_crashes(with_scaling()))
    check(flow, [17], parallelism=3, save_state=True, actions=with_policies(with_crashes(ACTIONS), sources=True))
