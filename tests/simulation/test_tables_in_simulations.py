"""Aggregates and changelogs over the changes of a table, while keys move, workers join, leave and are lost: the rows are those that
remain if each change is applied to a dict.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_tables_in_simulations.py` simulates about that many jobs.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import partial
from random import Random
from statistics import fmean
from typing import Any

import pytest
from flows_tables import by_place, logged, rows_at_the_end
from seeds import blocks, proportion

from evenflow.testing import check, oracle
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.restarting import with_lost_replies, with_restarts
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.settings import changed
from evenflow.testing.simulation.simulation import random_config

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, BLOCK, QUICK = 1_000, 50, 3
"""Seeds for each kind of action, per test, and per test of a quick run."""
STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")
KINDS = {
    "move": with_moves,
    "crash": lambda: with_crashes(with_moves(5, STRATEGIES)),
    "scale": with_scaling,
    "restart": lambda: with_lost_replies(with_restarts(with_crashes(with_moves(5), most=2))),
}
FLOWS = (by_place, logged)


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, proportion(SEEDS * len(KINDS)), QUICK))
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_table_are_exact_whatever_happens(kind, seeds):
    for seed in seeds:
        own = seed * len(KINDS) + list(KINDS).index(kind)
        workers = 1 + own % 3
        config = changed(random_config(Random(own), workers), state={"backend": ("memory", "memory", "lmdb")[own // 3 % 3]})
        save = kind not in ("move", "scale")
        check(partial(FLOWS[own % 2], own), [own], parallelism=workers, config=config, save_state=save, actions=KINDS[kind]())


def test_oracle_has_the_rows_that_remain_if_changes_are_applied_to_a_dict():
    for seed in range(10):
        rows = rows_at_the_end(seed)
        expected: dict[str, list[Any]] = defaultdict(list)
        for row in rows:
            expected[row["place"]].append(row["cents"])
        found = {row["place"]: row for row in oracle(by_place(seed))["results"]}
        assert {place: row["rows"] for place, row in found.items()} == {place: len(cents) for place, cents in expected.items()}
        for place, row in found.items():
            cents = [cent for cent in expected[place] if cent is not None]
            assert row["cents"] == (sum(cents) if cents else None)
            assert row["mean"] == (fmean(map(Fraction, cents)) if cents else None)
            assert (row["least"], row["most"]) == (min(cents, default=None), max(cents, default=None))
            assert row["kinds"] == len(set(cents))
        left = sorted(({**row, "times": 1} for row in rows if row["place"] != "c"), key=str)
        assert sorted(oracle(logged(seed))["results"], key=str) == left
