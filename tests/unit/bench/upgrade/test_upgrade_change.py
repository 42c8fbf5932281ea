"""The figures and the phases of a change."""

from __future__ import annotations

import argparse

import numpy as np
import pytest

from evenflow.bench.harness.errors import BenchmarkError
from evenflow.bench.harness.plots import save_plot
from evenflow.bench.harness.record import Run
from evenflow.bench.harness.trace import TRACE
from evenflow.bench.registry import BENCHMARKS
from evenflow.bench.upgrade import run as benchmark
from evenflow.bench.upgrade.change import Change, change_of, joined, longest_gap
from evenflow.bench.upgrade.run import LIVE, RESTART, SPARES, cases_of, draw, phase_cases, verdicts
from evenflow.bench.upgrade.stream import NEW, OLD
from evenflow.bench.upgrade.timeline import Phase, phases
from evenflow.engine.protocol.ids import CodeVersion, worker_id
from evenflow.scheduler.protocol.reports import OperationReport, UpgradeState
from evenflow.scheduler.record.upgrade import Task


def report(number, reason, begun, seconds):
    return OperationReport(number=number, state=UpgradeState.DONE, reason=reason, began_at=begun, seconds=seconds)


def test_the_phase_cases_an_upgrade_follow_each_other():
    moved = [(Task.CANARY, 14.0, 1.0), (Task.EMPTY, 20.0, 2.0), (Task.EMPTY, 26.0, 3.0), (Task.CLEAR, 33.0, 4.0)]
    moves = [report(0, "by hand", 1.0, 1.0), *(report(n, f"upgrade 0: {t.value}", at, took) for n, (t, at, took) in enumerate(moved, 1))]
    joins = {worker_id("count", index, CodeVersion(2)): at for index, at in ((2, 13.0), (0, 24.0), (1, 31.0))}
    found = phases(report(0, "by hand", 10.0, 30.0), [report(7, "for upgrade 0", 10.5, 1.5)], moves, joins, 2)
    assert [phase.begun for phase in found] == [10.0, 12.0, 13.0, 14.0, 15.0, 20.0, 22.0, 24.0, 26.0, 29.0, 31.0, 33.0, 37.0]
    assert [phase.ended for phase in found] == [*[phase.begun for phase in found[1:]], 40.0]
    assert {phase.name: phase.seconds for phase in found}["worker 1: start of its replacement"] == 2.0


def trace(latency):
    """Return a row every 10 ms for 60 s, with `latency(seconds)` each, of the new code in one of four rows from 30 s on."""
    found = np.zeros(6000, TRACE)
    found["created"] = np.arange(6000) * 10_000_000
    found["latency"] = [latency(n / 100) for n in range(6000)]
    found["key"] = [NEW if n >= 3000 and n % 4 == 0 else OLD for n in range(6000)]
    return found


def test_a_change_has_the_latencies_before_during_and_after_it_and_the_longest_gap():
    rows = trace(lambda second: 3.0 if second < 30 else 1000.0 - (second - 30.0) * 1000 if second < 31 else 70.0 if second < 40 else 9.0)
    watch = Phase("watch", 32.0, 36.0)
    found = change_of(rows, 30.0, 40.0, 8.0, 4.0, [watch], "watch", "right", 0.1)
    assert (found.before, found.after, found.during[0]) == ((3.0, 3.0), (9.0, 9.0), 70.0)
    assert found.gap == pytest.approx(1.007)
    assert found.steady_gap == pytest.approx(0.010)
    assert found.disturbed == pytest.approx(0.75, abs=0.06)
    assert (found.largest, found.seconds, found.canary) == (1000.0, 10.0, 0.25)
    assert list(found.slowest) == [(70.0, 70.0)]


def test_a_job_that_stands_still_after_the_change_is_refused():
    rows = trace(lambda second: 3.0)
    with pytest.raises(BenchmarkError, match=r"due 1\.0 s after the change: expected 4 s"):
        change_of(rows[:4101], 30.0, 40.0, 8.0, 4.0, [], "watch", "right", 0.0)


def test_a_gap_is_one_of_all_workers_together():
    rows = np.array([(0, 1.0, OLD), (100_000_000, 301.0, OLD), (200_000_000, 1.0, OLD), (700_000_000, 1.0, OLD)], TRACE)
    assert longest_gap(rows, 0.0, 1.0) == pytest.approx(0.3)
    assert longest_gap(rows[:1], 0.0, 1.0) == 0.0


def test_rows_of_two_jobs_are_joined_by_due_time():
    rows = trace(lambda second: 1.0)
    assert joined(rows[100:], rows[:100])["created"].tolist() == rows["created"].tolist()


def change(gap, p99=10.0, names=("watch",)):
    phases = [Phase(name, 1.0, 1.0 + gap) for name in names]
    slowest, points = [(3.0, 4.0)] * len(phases), [(0.0, 1.0, 2.0), (0.05, 3.0, 4.0)]
    return Change((1.0, 5.0), (2.0, p99), (1.0, 5.0), 20.0, gap, 0.01, 0.0, 9.0, 0.05, phases, slowest, points, "", 0.0)


def test_targets_are_a_gap_a_ratio_of_latency_and_a_part_of_the_restart():
    found = verdicts({LIVE: [change(0.2), change(0.24), change(9.0)], SPARES: [change(0.3, p99=11.0)], RESTART: [change(5.0, p99=4000.0)]})
    assert [(verdict.claim.partition(":")[0], verdict.measured, verdict.met) for verdict in found] == [
        (LIVE, 0.24, True), (LIVE, 2.0, True), (LIVE, pytest.approx(0.048), True),
        (SPARES, 0.3, False), (SPARES, 2.2, False), (SPARES, pytest.approx(0.06), False),
    ]  # fmt: skip


def test_each_phase_is_reported_with_a_value_per_repeat():
    changes = [change(0.25, names=("watch", "leave")), change(0.5, names=("watch", "leave"))]
    found = phase_cases(LIVE, changes)
    assert [case.name for case in found] == ["live/phase: watch", "live/phase: leave"]
    assert found[0].details == ({"p99_ms": 3.0, "largest_ms": 4.0},) * 2
    cases = {case.name: case.values for case in cases_of(LIVE, changes)}
    assert cases["live/phase: leave"] == (0.25, 0.5)
    assert cases["live/p99 during"] == (10.0, 10.0)
    assert cases["live/rows of the new code during the watch"] == (0.05, 0.05)
    assert not any("new code" in case.name for case in cases_of(RESTART, changes))


def test_changes_alternate_and_wrong_rows_of_a_query_end_the_run(monkeypatch):
    made = []

    def changed(name):
        return lambda rate, number: made.append((name, rate, number)) or change(0.1)

    monkeypatch.setattr(benchmark, "start_cluster", lambda: None)
    monkeypatch.setattr(benchmark, "CHANGES", {name: changed(name) for name in (LIVE, RESTART)})
    given = argparse.Namespace(changes=[LIVE, RESTART], repeat=2, rate=500, queries=[])
    found = benchmark.run(given, print)
    assert made == [(LIVE, 500, 0), (RESTART, 500, 0), (LIVE, 500, 1), (RESTART, 500, 1)]
    assert found.facts["rate"] == 500
    wrong = benchmark.Upgraded("q5", 100, 0, 3, 1, 1, (9.0, 8.0))
    monkeypatch.setattr(benchmark, "upgraded", lambda query: wrong)
    with pytest.raises(benchmark.BenchmarkError, match=r"q5: 100 rows.*3 are wrong"):
        benchmark.run(argparse.Namespace(changes=[], repeat=0, rate=None, queries=["q5"]), print)


def test_queries_and_their_upgrades_are_reported_as_checks(monkeypatch):
    monkeypatch.setattr(benchmark, "start_cluster", lambda: None)
    monkeypatch.setattr(benchmark, "upgraded", lambda query: benchmark.Upgraded(query, 100, 0, 0, 4, 5, (9.0, 8.0)))
    given = BENCHMARKS["upgrade"].parse(["--repeat", "0", "--queries", "q8"])
    found = benchmark.run(given, print)
    assert found.checks == ["q8: 100 rows, 4 of the old filter alone and 5 of the new one alone while both ran; all are right"]
    assert [case.values for case in found.cases] == [(9.0, 8.0)]


def test_curves_are_drawn(tmp_path):
    series = {LIVE: [change(0.1).curve], RESTART: [change(4.0).curve]}
    assert save_plot(Run("upgrade", "now", {}, {}, "", {}, (), (), (), (), series, 0.0), tmp_path / "upgrade.png", draw)
    assert (tmp_path / "upgrade.png").stat().st_size > 10_000
