"""The measurements of a run of Stela's topologies, and the checks of its results."""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.bench.harness.errors import BenchmarkError
from evenflow.bench.harness.plots import save_plot
from evenflow.bench.harness.record import Run
from evenflow.bench.papers.stela import TOPOLOGIES
from evenflow.bench.papers.stela.course import Course, curve, measure
from evenflow.bench.papers.stela.run import Outcome, case_name, cases_of, checks_of, cpus_of, draw, verdicts


def rows_at(*pieces):
    """Return the times of rows in pieces of (from, to, rows/s)."""
    return np.concatenate([np.arange(begun, ended, 1.0 / rate) for begun, ended, rate in pieces])


def test_a_faster_job_has_converged_when_it_is_as_fast_as_in_the_end():
    found = measure(rows_at((0, 15, 10), (15, 40, 20)), ordered=10.0, ended=40.0, window=10.0)
    assert (found.before, found.after) == pytest.approx((10.0, 20.0), rel=0.02)
    assert found.converged == pytest.approx(4.25, abs=0.5)


def test_a_pause_is_the_downtime_and_the_job_has_converged_after_it():
    found = measure(rows_at((0, 12, 10), (16, 40, 8)), ordered=10.0, ended=40.0, window=10.0)
    assert found.downtime == pytest.approx(4.1, abs=0.11)
    assert found.longest_before == pytest.approx(0.1)
    assert 5.0 < found.converged < 6.5


def test_a_job_that_nothing_happened_to_has_converged_at_once():
    assert measure(rows_at((0, 40, 10)), ordered=10.0, ended=40.0, window=10.0).converged == 0.0


def test_a_job_without_rows_afterwards_was_down_all_the_time():
    assert measure(rows_at((0, 5, 10)), ordered=10.0, ended=40.0, window=10.0).downtime >= 30.0


def test_the_curve_counts_rows_by_second():
    assert curve(rows_at((0, 2, 8), (2, 4, 16)), ordered=2.0, begun=0.0, ended=4.0) == [(-2.0, 8), (-1.0, 8), (0.0, 16), (1.0, 16)]


def outcome(after, missing=0, wrong=0):
    return Outcome(Course(50.0, after, 5.0, 0.5, 0.1), [(0.0, after)], "a node", {"b2": (2, 3)}, {"sink": (100, missing, wrong)}, 0.0)


OUTCOMES = {case_name("linear", "more", "stela"): [outcome(90.0)], case_name("linear", "more", "round_robin"): [outcome(60.0)]}


def test_stela_is_compared_with_round_robin_where_both_ran():
    (verdict,) = verdicts(OUTCOMES, ["linear", "star"])
    assert verdict.measured == 1.5
    assert verdict.met


def test_each_figure_is_a_case_and_right_rows_are_reported():
    (name, several), *_ = OUTCOMES.items()
    assert [(case.name.split("/")[1], case.values) for case in cases_of(name, several)] == [
        ("before", (50.0,)), ("after", (90.0,)), ("converged", (5.0,)), ("downtime", (0.5,)),
    ]  # fmt: skip
    assert checks_of(OUTCOMES) == ["200 rows at the sinks of 2 kinds of runs, all those of the sequential computation"]


@pytest.mark.parametrize(("missing", "wrong"), [(1, 0), (0, 1)])
def test_a_run_with_a_wrong_row_has_no_result(missing, wrong):
    with pytest.raises(BenchmarkError, match=f"stela: sink sink lacks {missing} rows and has {wrong} wrong ones"):
        checks_of({**OUTCOMES, "star, a node less, stela": [outcome(50.0, missing, wrong)]})


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_three_nodes_have_slots_for_all_workers(topology):
    assert 4 <= cpus_of(topology) <= 7


def test_a_run_has_a_picture(tmp_path):
    series = {name: several[0].curve for name, several in OUTCOMES.items()}
    finished = Run("stela", "2026-01-01T00:00:00+00:00", {}, {}, "abc", {"directions": ["more", "less"]}, (), series=series)
    assert save_plot(finished, tmp_path / "stela.png", draw)
    assert (tmp_path / "stela.png").stat().st_size > 1_000
