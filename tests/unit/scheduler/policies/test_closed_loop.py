"""Every policy on a simulated cluster: which ones converge, to which sizes, and which ones oscillate."""

from __future__ import annotations

import pytest

from evenflow.scheduler.policies.controller import ADVISED
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.registry import named
from evenflow.testing.load_model.closed_loop import ClusterModel, Controller, LoopCourse, ModelOperator, closed_loop

OPTIMUM = {"source": 1, "flat_map": 5, "count": 10}
"""The best sizes for 480 sentences/s of 20 words: a worker splits 100 sentences/s, or counts 1,000 words/s."""


def word_count(demand=lambda time: 480.0, start=(1, 1), model=None, hot_keys=(), overhead=0.0, unseen=0.0, **settings) -> ClusterModel:
    operators = [
        ModelOperator("source", 5000.0, demand=demand),
        ModelOperator("flat_map", 100.0, start[0], 20.0, overhead=overhead, unseen=unseen),
        ModelOperator("count", 1000.0, start[1], overhead=overhead, unseen=unseen, hot_keys=hot_keys),
    ]
    goals = {"latency_target_ms": 100, "max_parallelism": 64, **settings}
    return ClusterModel(operators, [("source", "flat_map"), ("flat_map", "count")], PolicySettings(**goals), **(model or {}))


def run(policy: str, seconds: float = 600.0, own=None, **others) -> LoopCourse:
    return closed_loop(word_count(**others), Controller(named(policy, **(own or {}))), seconds)


def keeps_up(course: LoopCourse) -> bool:
    """Return True if the sources' final backlog is at most a second's input, or is being worked off."""
    return course.samples[-1].backlog < 480 or course.samples[-1].backlog < course.samples[-60].backlog


def doubles_then_halves(time: float) -> float:
    return 240.0 if time < 200 else 480.0 if time < 400 else 120.0


def test_ds2_converges_in_one_step_where_scaling_is_linear():
    course = run("ds2")
    assert (course.steps, course.final, course.settled_at) == (1, OPTIMUM, 12.0)
    assert keeps_up(course)


@pytest.mark.parametrize("overhead", [0.01, 0.02, 0.03])
def test_ds2_converges_within_three_steps_where_it_is_not(overhead):
    course = run("ds2", overhead=overhead)
    assert course.steps <= 3
    assert keeps_up(course)
    assert course.turns("flat_map") == course.turns("count") == 0


@pytest.mark.few(2)
@pytest.mark.parametrize("start", [(1, 1), (20, 1), (1, 30), (64, 64), (4, 11)])
def test_ds2_ends_where_it_ends_from_wherever_it_starts(start):
    course = run("ds2", start=start)
    assert (course.final, course.steps) == (OPTIMUM, 1)


def test_ds2_follows_demand_within_two_intervals():
    course = run("ds2", 800.0, demand=doubles_then_halves, start=(3, 5))
    doubled, halved = course.decisions
    assert (doubled.decided.parallelism, halved.decided.parallelism) == ({"flat_map": 5, "count": 10}, {"flat_map": 2, "count": 3})
    assert doubled.time <= 220.0
    assert halved.time <= 420.0


def test_ds2_corrects_what_its_measurements_do_not_show():
    course = run("ds2", unseen=0.1)
    assert course.final == {"source": 1, "flat_map": 6, "count": 11}
    assert keeps_up(course)


def test_ds2_takes_back_a_change_that_made_it_worse():
    course = run("ds2", demand=lambda time: 130.0, start=(1, 3), overhead=1.5)
    assert course.sizes("flat_map") == [1, 2, 1]
    assert course.decisions[-1].decided.reason.startswith("rolled back: flat_map 1 -> 2")


EVEN_ENOUGH = (0.08, 0.08, 0.05)
"""Hot keys that land unevenly, though no one is hotter than a worker's share."""


def test_ds2_with_a_rebalance_reaches_the_target_under_skew():
    course = run("ds2", hot_keys=EVEN_ENOUGH)
    assert course.final == OPTIMUM
    assert [record.decided.rebalance for record in course.decisions] == [(), ("count",)]
    assert keeps_up(course)


def test_ds2_that_does_not_look_for_skew_misses_the_target():
    course = run("ds2", hot_keys=EVEN_ENOUGH, own={"skew_tolerance": 100.0})
    assert course.final == OPTIMUM
    assert not keeps_up(course)


def test_a_key_that_is_hotter_than_a_worker_is_not_answered_with_workers():
    course = run("ds2", hot_keys=(0.3,))
    assert course.steps == 2
    assert not keeps_up(course)


def test_threshold_converges_in_one_step_to_its_utilisation():
    course = run("threshold")
    assert (course.steps, course.final) == (1, {"source": 1, "flat_map": 7, "count": 14})
    assert keeps_up(course)


def test_threshold_scales_down_after_its_delay():
    course = run("threshold", 800.0, demand=doubles_then_halves, start=(3, 5))
    assert course.final == {"source": 1, "flat_map": 2, "count": 4}
    assert course.decisions[-1].time >= 460.0


def test_threshold_stops_when_more_workers_bring_nothing():
    course = run("threshold", hot_keys=(0.3,), max_parallelism=1000)
    assert course.steps == 2
    assert course.final["count"] < 100


@pytest.mark.slow
def test_threshold_without_a_limit_of_effect_climbs_for_ever_under_skew():
    course = run("threshold", hot_keys=(0.3,), max_parallelism=1000, own={"least_effect": 0.0})
    assert course.final["count"] == 1000


def wobbles(time: float) -> float:
    return 480.0 if int(time) % 80 < 40 else 320.0


@pytest.mark.slow
def test_threshold_swings_with_the_load_unless_it_has_a_band_and_patience():
    hasty = run("threshold", demand=wobbles, own={"utilisation_band": 0.0, "scale_down_delay": 0})
    patient = run("threshold", demand=wobbles)
    assert hasty.turns("count") >= 5
    assert patient.turns("count") == 0


def test_queueing_converges_in_one_step_to_its_latency():
    course = run("queueing")
    assert (course.steps, course.final) == (1, {"source": 1, "flat_map": 6, "count": 10})
    assert keeps_up(course)


@pytest.mark.slow
def test_dhalion_overshoots_and_comes_down_one_operator_at_a_time():
    course = run("dhalion", 3600.0, own={"blacklist": "1h"})
    assert course.final == OPTIMUM
    assert course.settled_at < 1500.0
    assert course.steps > 20
    assert max(course.sizes("flat_map")) > 20
    assert all(len(record.decided.parallelism) == 1 for record in course.decisions)
    assert keeps_up(course)


@pytest.mark.slow
def test_dhalion_tries_again_what_is_no_longer_on_its_blacklist():
    course = run("dhalion", 3600.0, own={"blacklist": "10m"})
    assert course.settled_at > 2000.0


def test_dhalion_takes_more_steps_than_ds2_when_demand_changes():
    course = run("dhalion", 900.0, demand=doubles_then_halves, start=(3, 5))
    assert course.final == {"source": 1, "flat_map": 2, "count": 3}
    assert course.steps > 10


@pytest.mark.slow
def test_dhalion_swings_for_ever_without_its_blacklist():
    calm = run("dhalion", 1800.0, start=(6, 12), own={"blacklist": "30m"})
    forgetful = run("dhalion", 1800.0, start=(6, 12), own={"blacklist": 0})
    assert calm.settled_at < 900.0
    assert forgetful.settled_at > 1700.0
    assert forgetful.turns("count") > 20


@pytest.mark.slow
def test_pid_converges_and_gives_every_operator_what_the_slowest_needs():
    course = run("pid", 1200.0)
    assert course.final["flat_map"] == course.final["count"]
    assert course.final["count"] >= 10
    assert course.settled_at < 1000
    assert keeps_up(course)


@pytest.mark.slow
def test_pid_with_large_gains_swings():
    calm, nervous = run("pid", 1200.0), run("pid", 1200.0, own={"proportional": 1.5, "integral": 0.1, "band": 0.9})
    assert calm.turns("count") <= 2
    assert nervous.turns("count") > 2 * calm.turns("count") + 2


def test_latency_violations_are_answered_until_there_are_none():
    course = run("latency", own={"slowest": 2})
    assert course.final["flat_map"] >= 5
    assert course.final["count"] >= 10
    assert course.turns("count") == course.turns("flat_map") == 0
    assert keeps_up(course)


def test_latency_violations_alone_feed_the_operator_that_waits_for_the_slow_one():
    course = run("latency", own={"slowest": 1})
    assert course.final["flat_map"] > 5
    assert course.final["count"] == 1
    assert not keeps_up(course)


def test_stela_converges_a_worker_at_a_time_to_where_nothing_is_congested():
    course = run("stela", own={"congestion": 1.0})
    assert course.final == OPTIMUM
    assert course.steps == 13
    assert course.turns("count") == course.turns("flat_map") == 0


def test_stela_takes_less_than_a_fifth_too_few_for_no_congestion():
    course = run("stela")
    assert course.final == {"source": 1, "flat_map": 4, "count": 7}
    assert not keeps_up(course)


@pytest.mark.parametrize("policy", ["ds2", "threshold", "queueing"])
def test_a_halt_during_the_change_is_caught_up_with_and_not_answered(policy):
    course = run(policy, model={"reconfiguration_s": 20.0, "halts": True})
    assert course.steps == 1
    assert keeps_up(course)


@pytest.mark.parametrize("policy", ["ds2", "dhalion", "threshold", "queueing", "pid", "latency", "stela"])
def test_advice_changes_nothing(policy):
    course = closed_loop(word_count(), Controller(named(policy), "advise"), 120.0)
    assert course.final == {"source": 1, "flat_map": 1, "count": 1}
    assert {record.done for record in course.decisions} == {ADVISED}


def backlog_at_first_decision(knows: bool) -> float:
    """Return the backlog when `pid` first decided after a minute's pause with enough workers; `knows`: True if it knew of the
    pause.
    """
    model, controller = word_count(demand=lambda time: 400.0, start=(5, 10)), Controller(named("pid"))
    assert closed_loop(model, controller, 100.0).steps == 0
    model.stand_still(60.0)
    if knows:
        controller.disturbed()
    course = closed_loop(model, controller, 400.0)
    return next(sample.backlog for sample in course.samples if sample.time >= course.decisions[0].time)


def test_backlog_that_a_recovery_leaves_is_worked_off_before_it_counts_as_slowness():
    assert backlog_at_first_decision(knows=False) > 60 * 400 * 0.9
    assert backlog_at_first_decision(knows=True) <= 10 * 400


def test_ds2_with_time_to_catch_up_takes_a_backlog_for_demand_and_gives_the_workers_back():
    model, controller = word_count(demand=lambda time: 400.0, start=(4, 8), catch_up_s=120), Controller(named("ds2"))
    closed_loop(model, controller, 100.0)
    model.stand_still(60.0)
    controller.disturbed()
    course = closed_loop(model, controller, 500.0)
    assert max(course.sizes("flat_map")) > 4
    assert (course.final["flat_map"], course.samples[-1].backlog) == (4, 0)
