"""Settings of simulated jobs change at random moments, among moves, scalings and losses; the rows are the oracle's.

After each step the settings hold: in the job, in its workers, and in a coordinator that takes over.
`EVENFLOW_SEEDS=5000 pytest tests/simulation/test_changing_settings.py` tries about that many jobs.
"""

from __future__ import annotations

import flows
import pytest
from seeds import blocks, proportion

from evenflow.testing import ACTIONS, check
from evenflow.testing.actions.changing_settings import SettingsHold, with_new_settings
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.restarting import with_restarts
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.steering import with_policies
from evenflow.testing.actions.zombies import with_zombies

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, BLOCK = 10, 10
TIMES = proportion(SEEDS * (3 * len(flows.FLOWS) + 6))


def checked(make_flow, seeds, actions, **settings):
    """Check the flow, and return the action that has looked at its settings."""
    actions = with_new_settings(actions)
    check(make_flow, seeds, parallelism=(1, 2, 3), actions=actions, **settings)
    (holds,) = (action for action in actions if isinstance(action, SettingsHold))
    return holds


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, TIMES))
@pytest.mark.parametrize("make_flow", flows.FLOWS)
def test_settings_change_while_keys_move_and_workers_join_and_leave(make_flow, seeds):
    holds = checked(make_flow, seeds, with_scaling(keyed_only=True))
    assert holds.changes > len(seeds) or make_flow is flows.no_rows


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, TIMES))
@pytest.mark.parametrize("make_flow", flows.FLOWS)
def test_settings_outlive_workers_and_coordinators(make_flow, seeds):
    holds = checked(make_flow, seeds, with_crashes(with_scaling(keyed_only=True)), save_state=True)
    assert holds.checks > 0 or len(seeds) < BLOCK


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, TIMES))
@pytest.mark.parametrize("make_flow", [flows.running_updates, flows.sliding_windows, flows.many_widths])
def test_settings_change_while_policies_decide(make_flow, seeds):
    checked(make_flow, seeds, with_policies(with_crashes(ACTIONS)), save_state=True)


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, TIMES))
@pytest.mark.parametrize("make_flow", [flows.running_updates, flows.rows_in_order, flows.running_finals])
def test_another_start_of_the_program_has_its_own_settings(make_flow, seeds):
    checked(make_flow, seeds, with_restarts(with_zombies(with_crashes(ACTIONS, most=2), most=2)), save_state=True)
