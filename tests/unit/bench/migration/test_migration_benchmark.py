from __future__ import annotations

import numpy as np
import pytest

from evenflow.bench.harness.trace import TRACE
from evenflow.bench.migration.memory import Memory
from evenflow.bench.migration.run import KEYS, RESTART, Move, cases_of, doubts, longest_wait, of_groups, touch, verdicts
from evenflow.scheduler.protocol.reports import MigrationReport, MigrationState

KEEPS = Memory(100.0, 1.0, 150.0, 140.0)


def move(p99, *, steady=2.0, first=4.0, memory=KEEPS):
    report = MigrationReport(
        number=0, state=MigrationState.DONE, reason="by hand", seconds=1.5, operator="stateful_map", strategy="lazy", plan=None,
        groups=256, routed_keys=0, steps=1, steps_done=1, keys_moved=250_000, state_bytes=20 << 20,
    )  # fmt: skip
    return Move(steady, p99, p99, first, report, memory, [], 0.0, 1.0)


def test_state_is_a_count_of_64_bytes():
    state, row = touch(None, {"key": 1})
    assert touch(state, row)[0] == (2).to_bytes(64, "little")


def test_a_quarter_of_the_keys_moves():
    trace = np.zeros(10_000, TRACE)
    trace["key"] = np.random.default_rng(0).integers(0, KEYS, len(trace))
    assert len(of_groups(trace)) == pytest.approx(len(trace) / 4, rel=0.1)


def test_targets_are_ratios_to_the_steady_latency_and_to_the_state_moved():
    found = {v.claim: v.measured for v in verdicts({"batched": [move(3.0), move(5.0)], "lazy": [move(8.0)], "pause": [move(99.0)]})}
    assert found == {
        "steady p99 in ms, all jobs": 2.0,
        "batched: p99 while it moves / steady p99": 2.0,
        "lazy: p99 while it moves / steady p99": 4.0,
        "batched: memory beyond what is kept / state moved": 0.5,
        "lazy: first result of a moved key (p99) / steady p99": 2.0,
    }


def test_latency_is_held_against_a_tenth_of_that_of_a_restart():
    found = {v.claim: v.met for v in verdicts({"batched": [move(90.0)], "lazy": [move(110.0)], RESTART: [move(1000.0)]})}
    assert found["batched: largest latency / restart's"]
    assert not found["lazy: largest latency / restart's"]


def test_rows_due_while_a_source_restarts_wait_for_the_first_result_after_the_gap():
    trace = np.zeros(4, TRACE)
    trace["created"] = np.array([0, 1, 901, 902]) * 1_000_000
    trace["latency"] = [2.0, 3.0, 50.0, 40.0]
    assert longest_wait(trace) == 950.0
    assert longest_wait(trace[:0]) == 0.0


def test_a_ratio_is_not_decided_if_it_depends_on_which_steady_phase_it_is_held_against():
    calm, rough = move(8.0, steady=2.0), move(7.0, steady=5.0)
    assert not doubts({"lazy": [move(9.0, steady=2.0)], RESTART: [move(1000.0, steady=900.0)]})
    assert [doubt.partition(":")[0] for doubt in doubts({"batched": [rough], "sudden": [calm]})] == ["batched"]


def test_memory_is_not_decided_if_it_scatters_more_than_the_limit():
    quiet, restless = (Memory(100.0, scatter, 100.0, 100.0) for scatter in (1.9, 2.1))
    assert not doubts({"fluid": [move(1.0, memory=quiet)]})
    assert "memory scatters by 2.1 MiB" in doubts({"fluid": [move(1.0, memory=restless)]})[0]


def test_a_strategy_is_reported_with_a_value_per_repeat():
    cases = {case.name: case.values for case in cases_of("lazy", [move(4.0), move(6.0)])}
    assert cases["lazy/ratio of the two"] == (2.0, 3.0)
    assert cases["lazy/memory for the move"] == (10.0, 10.0)


def test_a_restart_has_its_stall_only():
    assert [case.name for case in cases_of(RESTART, [move(900.0)])] == ["restart/largest", "restart/duration"]
