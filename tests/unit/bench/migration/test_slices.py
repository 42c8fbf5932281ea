from __future__ import annotations

import pytest

from evenflow.bench.migration.run import touch
from evenflow.bench.migration.slices import cases_of, line_of, measure_slices


@pytest.mark.parametrize("strategy", ["batched", "lazy", "sudden"])
def test_slices_of_a_move_are_measured_by_worker_and_kind(strategy):
    found = measure_slices(strategy, lambda rows: rows.stateful_map(touch), 400, 2_000.0, 16, range(4))
    assert {worker.partition("-")[0] for worker in found.slices} == {"keyed"}
    assert {"batch", "marker", "give", "install"} <= set(found.kinds)
    assert found.gap >= found.of_kind("give")[2]
    assert line_of(strategy, found).startswith(f"{strategy} on virtual processors: p99 ")
    cases = {case.name: case for case in cases_of(strategy, found)}
    assert set(cases[f"{strategy}/virtual/longest without a batch"].details[0]["timeline"]) == set(found.slices)
