from __future__ import annotations

import pytest

from evenflow.bench.scaling.course import Course, Phase

PHASES = (Phase(0.0, 10.0, 100.0, {"split": 1, "count": 2}), Phase(10.0, 20.0, 200.0, {"split": 2, "count": 4}))


def course(counts, decisions=(), splits=None, **others):
    splits = splits or [1] * 10 + [2] * 10
    samples = tuple((float(t), {"split": s, "count": c}) for t, (s, c) in enumerate(zip(splits, counts, strict=True)))
    return Course(PHASES, samples, decisions, **others)


def test_steps_and_reactions_count_from_the_change_of_demand():
    found = course([2] * 10 + [4] * 10, (3.0, 9.9, 10.0))
    assert found.steps == [2, 1]
    assert found.reactions == [3.0, 0.0]


def test_phase_without_a_decision_has_no_reaction():
    assert course([2] * 20, (12.0,)).reactions == [2.0]


def test_settled_is_the_last_change_within_the_phase():
    assert course([1] * 4 + [2] * 6 + [2] * 3 + [4] * 7).settled == [4.0, 3.0]


def test_worker_seconds_over_do_not_make_up_for_those_under_the_optimum():
    found = course([1] * 5 + [2] * 5 + [4] * 5 + [6] * 5)
    assert found.provisioned == (10.0, 5.0)
    assert found.off == [0, 2]


def test_following_the_demand_is_no_oscillation():
    down = (Phase(0.0, 10.0, 200.0, {"count": 4}), Phase(10.0, 20.0, 100.0, {"count": 2}))
    samples = tuple((float(t), {"count": 1 if t < 5 else 4 if t < 10 else 2}) for t in range(20))
    assert Course(down, samples, ()).turns == 0


def test_scaling_up_and_down_at_one_demand_is_oscillation():
    assert course([1, 2, 3, 2, 3, 3, 2, 2, 2, 2] + [4] * 10).turns == 3


def test_lost_results_and_latency_are_reported_where_they_are_known():
    known, unknown = course([2] * 20, lost=0, latency_p99=7.0).cases("ds2"), course([2] * 20).cases("ds2")
    assert {case.name for case in known} - {case.name for case in unknown} == {"ds2/results lost", "ds2/p99 latency"}


def test_the_picture_has_the_optimum_of_each_moment():
    drawn = course([2] * 20).drawn
    assert drawn["optimum"]["count"] == [2] * 10 + [4] * 10
    assert len(drawn["time"]) == len(drawn["workers"]["split"]) == 20


def test_samples_before_the_first_phase_do_not_count():
    early = Course(PHASES[:1], ((-5.0, {"split": 9, "count": 9}), (0.0, {"split": 1, "count": 2}), (5.0, {"split": 1, "count": 2})), ())
    assert early.provisioned == (0.0, 0.0)
    assert early.settled == [0.0]


@pytest.mark.parametrize("what", ["steps", "settled", "p99 7 ms", "0 results lost"])
def test_the_summary_line_contains(what):
    assert what in course([2] * 20, lost=0, latency_p99=7.0).line("Ray, ds2")
