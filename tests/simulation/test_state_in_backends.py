"""Whole jobs with their state in LMDB files or in a real Valkey server, while keys move and workers are lost: the rows are the oracle's.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_state_in_backends.py` simulates about that many jobs.
"""

from __future__ import annotations

from random import Random

import pytest
from flows import (
    null_keys_made_by_a_map,
    own_aggregates_and_sketches,
    rows_in_order,
    running_finals,
    running_updates,
    sliding_windows,
    stateful_map_columns,
    stateful_map_in_order,
    states_that_expire,
    timers_of_a_key,
    tumbling_windows,
    types_that_come_late,
)
from flows_joins import (
    co_group,
    co_process,
    join_always,
    join_anti,
    join_asof,
    join_full,
    join_in_windows,
    join_inner,
    join_left,
    join_right,
    join_semi,
    join_with_itself,
)
from flows_rows import first_rows
from seeds import blocks, proportion
from split_watcher import SplitWatcher

import evenflow as ef
from evenflow.engine.task import handover
from evenflow.state.backends.remote import RemoteBackend
from evenflow.testing import check
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.splitting import with_splits
from evenflow.testing.settings import changed
from evenflow.testing.simulation.simulation import random_config

SEEDS, QUICK, PLACES = 3, 2, ("lmdb", "server")
"""Seeds for each flow and backend, and per test; those of a quick run."""
MORE = 1_000_000
"""The first of the seeds that follow if those of a block have copied no rows of a split key."""
FLOWS = (
    stateful_map_in_order, rows_in_order, timers_of_a_key, states_that_expire, stateful_map_columns, tumbling_windows, sliding_windows,
    running_updates, running_finals, own_aggregates_and_sketches, null_keys_made_by_a_map, types_that_come_late,
    first_rows,
)  # fmt: skip
JOINS = (join_full, join_always, join_with_itself, join_asof, co_process, co_group)
"""Flows whose rows are in the backend, and whose indexes are in memory."""
SPLIT = (join_inner, join_left, join_right, join_semi, join_anti, join_always, join_in_windows, join_asof)
"""Joins whose sides may be dealt."""
STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")


@pytest.fixture(params=PLACES)
def place(request):
    return request.getfixturevalue("state_server") if request.param == "server" else request.param


@pytest.mark.few(2)
@pytest.mark.parametrize("seeds", blocks(SEEDS, SEEDS, proportion(SEEDS * len(FLOWS + JOINS) * len(PLACES)), QUICK))
@pytest.mark.parametrize("make_flow", FLOWS + JOINS, ids=lambda make_flow: make_flow.__name__)
def test_moves_and_losses_leave_the_rows_of_the_oracle_in_every_state_backend(make_flow, seeds, place, monkeypatch):
    for seed in seeds:
        workers = 1 + seed % 3
        monkeypatch.setattr(handover, "CHUNK", 1 if seed % 2 else 2_048)
        config = changed(random_config(Random(seed), workers), state={"backend": place})
        actions = with_crashes(with_moves(5, STRATEGIES))
        check(make_flow, [seed], parallelism=workers, config=config, save_state=True, actions=actions)


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, SEEDS, proportion(SEEDS * len(SPLIT) * len(PLACES)), QUICK))
@pytest.mark.parametrize("make_flow", SPLIT, ids=lambda make_flow: make_flow.__name__)
def test_split_keys_leave_the_rows_of_the_oracle_in_every_state_backend(make_flow, seeds, place, monkeypatch):
    watcher = SplitWatcher()
    for seed in (*seeds, *range(MORE, MORE + 20)):
        if seed >= MORE and watcher.rows:
            break
        workers = 2 + seed % 3
        monkeypatch.setattr(handover, "CHUNK", 1 if seed % 2 else 2_048)
        config = changed(random_config(Random(seed), workers), state={"backend": place})
        actions = (*with_crashes(with_splits(with_moves(3, STRATEGIES), 6, STRATEGIES)), watcher)
        check(make_flow, [seed], parallelism=workers, config=config, save_state=True, actions=actions)
    assert watcher.rows, "rows were copied or returned"


@pytest.mark.parametrize("backend", ["rocksdb", "redis://", "redis://host:port/0", "redis://host/zero", "rediss://host/0", None, 5])
def test_unknown_backend_is_refused_with_the_names_of_all(backend):
    with pytest.raises(ef.FlowError, match="StateConfig: "):
        ef.JobConfig(state=ef.StateConfig(backend))


@pytest.mark.few(1)
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_key_groups_change_owners_in_the_server_without_sending_their_state(make_flow, state_server, monkeypatch):
    passed = []
    pass_on = RemoteBackend.pass_on

    def watched(backend, groups, target):
        passed.extend(groups)
        return pass_on(backend, groups, target)

    monkeypatch.setattr(RemoteBackend, "pass_on", watched)
    for seed in range(4):
        config = changed(random_config(Random(seed), 2), state={"backend": state_server})
        check(make_flow, [seed], parallelism=2, config=config, actions=with_moves())
    assert passed
