"""Random queries have exactly the rows that DuckDB has, also while keys move and workers join and leave.

`EVENFLOW_SEEDS=2000 pytest tests/unit/evenflow/sql/test_random_queries.py` runs 2,000 queries, without accidents and with each kind.
"""

from __future__ import annotations

import random

import pytest
from random_queries import Maker, expected, flow_of, last_rows, stream_of
from seeds import TOLD

from evenflow.testing import simulate
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling

BLOCK = 25
"""Queries of a test."""
BLOCKS = max(1, (int(TOLD) if TOLD else 150) // BLOCK)
"""Tests without accidents, and with each kind."""

STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")


def made(seed: int):
    query = Maker(random.Random(seed)).query()
    return query, {"t": stream_of(f"t{seed}"), "u": stream_of(f"u{seed}")}


def check(seed: int, rows) -> None:
    query, inputs = made(seed)
    found, wanted = last_rows(query, rows), expected(query, inputs)
    assert found == wanted, f"{query.flink}\nmissing: {[*(wanted - found)][:3]}\ntoo many: {[*(found - wanted)][:3]}"


@pytest.mark.few(1)
@pytest.mark.parametrize("first", range(0, BLOCK * BLOCKS, BLOCK))
def test_rows_are_those_of_duckdb(first, waiting_for_jobs):
    for seed in range(first, first + BLOCK):
        query, inputs = made(seed)
        rows = []
        flow_of(query, inputs, rows).run(runtime="local", parallelism=1 + seed % 2).wait("60s")
        check(seed, rows)


ACCIDENTS = {
    "moves": lambda: with_moves(),
    "scaling": lambda: with_scaling(),
    "crashes": lambda: with_crashes(with_moves(5, STRATEGIES)),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("first", range(0, BLOCK * BLOCKS, BLOCK))
@pytest.mark.parametrize("accidents", ACCIDENTS)
def test_rows_are_those_of_duckdb_whatever_happens(accidents, first):
    for seed in range(first, first + BLOCK):
        query, inputs = made(seed)
        if query.key is None:  # rows of a key before and after a move arrive on two channels
            result = simulate(flow_of(query, inputs, []), seed, actions=ACCIDENTS[accidents](), save_state=accidents == "crashes")
            assert not any(result.late_records.values())
            check(seed, result.rows["to_list"])
