from __future__ import annotations

import numpy as np
import pytest

from evenflow.bench.migration import KEYS, Move, cases_of, of_groups, touch, verdicts
from evenflow.bench.trace import TRACE
from evenflow.scheduler.migration import MigrationReport, MigrationState


def move(p99, *, steady=2.0, first=4.0, memory=(100.0, 150.0, 140.0)):
    report = MigrationReport(0, "stateful_map", "lazy", "by hand", None, MigrationState.DONE, 256, 0, 1, 1, 250_000, 20 << 20, 1.5)
    return Move(steady, p99, p99, first, report, *memory, [], 0.0)


def test_state_is_a_count_of_64_bytes():
    state, row = touch(None, {"key": 1})
    assert touch(state, row)[0] == (2).to_bytes(64, "little")


def test_a_quarter_of_the_keys_moves():
    trace = np.zeros(10_000, TRACE)
    trace["key"] = np.random.default_rng(0).integers(0, KEYS, len(trace))
    assert len(of_groups(trace)) == pytest.approx(len(trace) / 4, rel=0.1)


def test_targets_are_ratios_to_the_steady_latency_and_to_the_state_moved():
    found = {v.claim: v.measured for v in verdicts({"batched": [move(3.0), move(5.0)], "lazy": [move(8.0)], "sudden": [move(99.0)]})}
    assert found == {
        "batched: p99 while it moves / steady p99": 2.0,
        "lazy: p99 while it moves / steady p99": 4.0,
        "batched: memory beyond what is kept / state moved": 0.5,
        "lazy: first result of a moved key (p99) / steady p99": 2.0,
    }


def test_a_strategy_is_reported_with_a_value_per_repeat():
    cases = {case.name: case.values for case in cases_of("lazy", [move(4.0), move(6.0)])}
    assert cases["lazy/ratio of the two"] == (2.0, 3.0)
    assert cases["lazy/memory for the move"] == (10.0, 10.0)
