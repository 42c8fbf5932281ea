"""The benchmark of a growing operator: what is reported, and judged."""

from __future__ import annotations

from evenflow.bench.migration.growth import STATE_BYTES, Growth, cases_of, touch, verdicts
from evenflow.bench.migration.run import RESTART

LIVE, STALL = Growth(10.0, 15.0, 80.0, 9.0, 0.1), Growth(10.0, 5.0, 19_000.0, 22.0, 0.1)


def test_a_restart_has_its_stall_only():
    assert {case.name: case.median for case in cases_of(RESTART, [STALL])} == {"restart/largest": 19_000.0, "restart/duration": 22.0}
    assert len(cases_of("batched", [LIVE])) == 4


def test_live_strategies_are_judged_by_the_median_of_their_ratios():
    found = verdicts({"batched": [LIVE, Growth(10.0, 40.0, 90.0, 9.0, 0.1), LIVE], RESTART: [STALL]})
    assert [(verdict.measured, verdict.met) for verdict in found] == [(1.5, True)]


def test_state_has_ten_kilobytes_whatever_the_count():
    state, _ = touch(touch(None, {"key": 1})[0], {"key": 1})
    assert (len(state), state[0]) == (STATE_BYTES, 2)
