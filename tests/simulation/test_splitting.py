"""Hot keys of joins are split over several workers and gathered again in mid-stream, in simulated jobs, whatever happens to them.

Each pair must come once, whichever worker its rows are at. `EVENFLOW_SEEDS=20000 pytest tests/simulation/test_splitting.py` simulates
about that many jobs.
"""

from __future__ import annotations

import flows_joins
import pytest
from seeds import blocks, proportion
from split_watcher import SplitWatcher

from evenflow.testing import check
from evenflow.testing.actions.crashing import with_crashes, with_damage
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.splitting import with_splits

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, QUICK = 4, 3
"""Seeds for each flow and kind of accident, and per test; those of a quick run."""
MOST = 40
"""Further seeds that a test tries until a split has copied or returned rows: a third of the seeds of each flow do."""
STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")

DEALABLE = (
    flows_joins.join_inner, flows_joins.join_left, flows_joins.join_right, flows_joins.join_semi, flows_joins.join_anti,
    flows_joins.join_always, flows_joins.join_in_windows, flows_joins.join_asof, flows_joins.join_with_itself,
)  # fmt: skip
"""The flows with a join whose sides may be dealt."""

ACCIDENTS = {
    "moves": with_splits(with_moves(3)),
    "crashes": with_damage(with_crashes(with_splits(with_moves(3, STRATEGIES), 6, STRATEGIES))),
    "scaling": with_splits(with_scaling()),
    "crashes while it scales": with_crashes(with_splits(with_scaling())),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("seeds", blocks(SEEDS, SEEDS, proportion(SEEDS * len(ACCIDENTS) * len(DEALABLE)), QUICK))
@pytest.mark.parametrize("accidents", ACCIDENTS)
@pytest.mark.parametrize("make_flow", DEALABLE, ids=lambda make_flow: make_flow.__name__)
def test_split_keys_are_joined_as_if_they_were_at_one_worker(make_flow, accidents, seeds):
    watcher = SplitWatcher()

    def simulate(seeds):
        check(make_flow, seeds, parallelism=(2, 3, 4), save_state="crashes" in accidents, actions=(*ACCIDENTS[accidents], watcher))

    simulate(seeds)
    for seed in range(seeds.stop, seeds.stop + MOST):
        if watcher.rows:
            return
        simulate([seed])
    assert watcher.rows, "no split has copied or returned rows"
