"""Whole jobs in a random order of everything, compared row by row with the oracle.

Every flow runs with a few seeds; `EVENFLOW_SEEDS=20000 pytest tests/simulation/test_simulation.py` simulates that many jobs. A seed
that once failed becomes a test with a name.
"""

from __future__ import annotations

from typing import Any

import pytest
from flows import FLOWS
from seeds import blocks, proportion

import evenflow as ef
from evenflow.testing import check, simulate

SEEDS, BLOCK = 30, 10
"""Seeds for each flow, and per test."""


@pytest.mark.few(3)
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, proportion(SEEDS * len(FLOWS))))
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_every_order_of_events_gives_the_rows_of_the_oracle(make_flow, seeds):
    check(make_flow, seeds, parallelism=(1, 2, 3, 4))


def test_running_sums_by_parity_are_exactly_those_of_megaphone():
    def running_sum(state: int | None, row: dict[str, Any]) -> tuple[int, tuple[int, int]]:
        total = (state or 0) + row["item"]
        return total, {"parity": row["item"] % 2, "sum": total}

    expected = {(0, 0), (0, 2), (0, 6), (0, 12), (0, 20), (1, 1), (1, 4), (1, 9), (1, 16), (1, 25)}
    for seed in range(10):
        flow = ef.Dataflow("parity")
        numbers = flow.read(ef.from_items(range(10)))
        numbers.key_by(lambda row: row["item"] % 2, column="parity").stateful_map(running_sum).write(ef.to_list([]))
        rows = simulate(flow, seed).rows["to_list"]
        assert len(rows) == len(expected)
        assert {(row["parity"], row["sum"]) for row in rows} == expected
