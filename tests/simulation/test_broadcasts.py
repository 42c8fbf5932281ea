"""Broadcast streams in simulated jobs, with all accidents that a job may have: every worker has the same rows in the same order.

When a job has finished, the simulation compares the copies of all workers.
`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_broadcasts.py` simulates about that many jobs.
"""

from __future__ import annotations

from random import Random

import pytest
from flows_broadcasts import FLOWS, IN_ORDER, replaced_and_deleted, rules_all_the_time
from seeds import blocks, proportion

from evenflow.testing import check
from evenflow.testing.actions.crashing import with_crashes, with_damage
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.restarting import with_restarts
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.zombies import with_zombies
from evenflow.testing.oracle import oracle
from evenflow.testing.settings import changed
from evenflow.testing.simulation.simulation import random_config

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, PLACES = 3, ("lmdb", "server")
STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")

ACCIDENTS = {
    "none": lambda _: (),
    "moves": lambda _: with_moves(),
    "crashes": lambda _: with_damage(with_crashes(with_moves(5, STRATEGIES))),
    "seldom crashes": lambda _: with_crashes(with_moves(2), 20, later=0.01),
    "zombies": lambda _: with_zombies(with_damage(with_crashes(with_moves(5, STRATEGIES), 2), 1)),
    "restarts": lambda _: with_restarts(with_crashes(with_moves(3, STRATEGIES), 1), parallelism=(None, 1, 2, 4)),
    "scaling": lambda in_order: with_scaling(keyed_only=in_order),
    "crashes while it scales": lambda in_order: with_crashes(with_scaling(keyed_only=in_order)),
}
UNSAVED = ("none", "moves", "scaling")
"""Kinds of runs without losses, which need no checkpoint."""

BLOCKS = blocks(SEEDS, SEEDS, proportion(SEEDS * len(FLOWS) * (len(ACCIDENTS) + len(PLACES))))


def test_rules_of_the_flows_are_replaced_deleted_and_read():
    (rows,) = oracle(replaced_and_deleted()).values()
    assert len(rows) == 48
    assert len({row["rules"] for row in rows}) == 1
    assert 4 < rows[0]["rules"].count("rule") < 14
    counts = {len(row["rules"].split()) for row in oracle(rules_all_the_time())["by_key"]}
    assert len(counts) > 10


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", BLOCKS)
@pytest.mark.parametrize("accidents", ACCIDENTS)
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_rows_are_those_of_the_oracle_and_all_copies_are_equal_whatever_happens(make_flow, accidents, seeds):
    actions = ACCIDENTS[accidents](make_flow in IN_ORDER)
    options = {"actions": actions} if actions else {}
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=accidents not in UNSAVED, **options)


@pytest.fixture(params=PLACES)
def place(request):
    return request.getfixturevalue("state_server") if request.param == "server" else request.param


@pytest.mark.slow
@pytest.mark.parametrize("seeds", BLOCKS)
def test_rows_are_those_of_the_oracle_in_every_state_backend(seeds, place):
    for seed in seeds:
        config = changed(random_config(Random(seed), 2), state={"backend": place})
        actions = with_crashes(with_moves(5, STRATEGIES))
        check(replaced_and_deleted, [seed], parallelism=2, config=config, save_state=True, actions=actions)
