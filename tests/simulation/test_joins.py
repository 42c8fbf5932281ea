"""Joins in simulated jobs, with all accidents that a job may have: the rows are those of nested loops over the whole inputs.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_joins.py` simulates about that many jobs.
"""

from __future__ import annotations

import pytest
from crashes_of_new_workers import with_crashes_of_new_workers
from flows_joins import (
    JOINS,
    asof_with_a_side_that_comes_late,
    join_full,
    join_with_a_side_that_comes_late,
    join_with_itself,
    join_with_left_that_comes_late,
    sessions_with_a_side_that_comes_late,
    windows_with_a_side_that_comes_late,
)
from seeds import blocks, proportion

from evenflow.testing import check
from evenflow.testing.actions.crashing import with_crashes, with_damage, with_lost_manifests
from evenflow.testing.actions.failing_storage import with_full_disk
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.zombies import with_zombies

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, QUICK = 2, 1
"""Seeds for each flow and kind of accident, and per test; those of a quick run."""
STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")

ACCIDENTS = {
    "none": (),
    "moves": with_moves(),
    "crashes": with_damage(with_crashes(with_moves(5, STRATEGIES))),
    "full disks": with_full_disk(with_damage(with_crashes(with_moves(5, STRATEGIES)))),
    "lost manifests": with_lost_manifests(with_damage(with_crashes(with_moves(5, STRATEGIES), most=2), most=1)),
    "zombies": with_zombies(with_damage(with_crashes(with_moves(5, STRATEGIES), 2), 1)),
    "scaling": with_scaling(),
    "crashes while it scales": with_crashes(with_scaling()),
}
UNSAVED = ("none", "moves", "scaling")
"""Kinds of runs without losses, which need no checkpoint."""


@pytest.mark.few(3)
@pytest.mark.parametrize("seeds", blocks(SEEDS, SEEDS, proportion(SEEDS * len(ACCIDENTS) * len(JOINS)), QUICK))
@pytest.mark.parametrize("accidents", ACCIDENTS)
@pytest.mark.parametrize("make_flow", JOINS, ids=lambda make_flow: make_flow.__name__)
def test_joins_give_the_rows_of_nested_loops_whatever_happens(make_flow, accidents, seeds):
    options = {"actions": ACCIDENTS[accidents]} if ACCIDENTS[accidents] else {}
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=accidents not in UNSAVED, **options)


def test_worker_that_joins_after_all_rows_of_a_side_have_come_knows_its_columns():
    check(join_full, [7], parallelism=(1, 2, 3), save_state=True, actions=ACCIDENTS["crashes while it scales"])


def test_both_exchanges_to_a_join_of_a_stream_with_itself_are_switched():
    check(join_with_itself, [1], parallelism=(1, 2, 3), save_state=True, actions=ACCIDENTS["crashes"])


AHEAD = {
    join_with_a_side_that_comes_late: (30, 42, 45),
    join_with_left_that_comes_late: (30, 42),
    windows_with_a_side_that_comes_late: (30, 32, 59),
    sessions_with_a_side_that_comes_late: (45, 47, 98),
    asof_with_a_side_that_comes_late: (32, 64),
}
"""Seeds with which workers that know more columns than a new one, and are ahead of it, give it keys."""


@pytest.mark.few(2)
@pytest.mark.parametrize(("make_flow", "seed"), [(make_flow, seed) for make_flow, seeds in AHEAD.items() for seed in seeds])
def test_new_worker_takes_over_columns_and_event_time_of_the_workers_that_give_it_keys(make_flow, seed):
    check(make_flow, [seed], parallelism=2, actions=with_scaling(keyed_only=True))


@pytest.mark.parametrize(("make_flow", "seed"), [(windows_with_a_side_that_comes_late, 22), (sessions_with_a_side_that_comes_late, 58)])
def test_worker_that_joins_a_restored_join_takes_over_its_columns_and_its_event_time(make_flow, seed):
    check(make_flow, [seed], parallelism=(1, 2, 3), save_state=True, actions=with_crashes(with_scaling(keyed_only=True)))


def test_job_goes_back_to_a_checkpoint_in_which_new_workers_have_no_keys_yet():
    check(
        windows_with_a_side_that_comes_late,
        [16],
        parallelism=(1, 2, 3),
        save_state=True,
        actions=with_crashes_of_new_workers(with_scaling(keyed_only=True)),
    )
