"""Target utilisation, by the busiest instance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.scheduler.policies.base import settled
from evenflow.scheduler.policies.dataflow.figures import InstanceFigures, OperatorFigures
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.threshold import ThresholdMemory, ThresholdPolicy, busiest_rate


def dataflow(
    demand: float, count: OperatorFigures, time: float = 0.0, backlog: float = 0.0, reconfiguration_s: float = 0.0, **settings
) -> DataflowSnapshot:
    source = OperatorFigures("source", 1, source_rate=demand, queue_records=backlog)
    return DataflowSnapshot((source, count), (Edge("source", "count"),), PolicySettings(**settings), time, reconfiguration_s)


def working(parallelism: int, each: float = 100.0) -> OperatorFigures:
    return OperatorFigures("count", parallelism, true_processing_rate=each * parallelism)


def wanted(snapshot: DataflowSnapshot, **own) -> int:
    return settled(ThresholdPolicy(**own), snapshot).parallelism.get("count", snapshot.operator("count").parallelism)


@given(st.integers(1, 50), st.floats(0, 1e5), st.floats(1, 5), st.floats(0.3, 1))
def test_more_demand_never_takes_fewer_workers(parallelism, demand, factor, target):
    own = {"target_utilisation": target, "utilisation_band": 0.0}
    assert wanted(dataflow(demand * factor, working(parallelism)), **own) >= wanted(dataflow(demand, working(parallelism)), **own)


@given(st.integers(1, 50), st.floats(0, 1e5))
def test_decision_applied_to_its_own_prediction_is_a_fixed_point(parallelism, demand):
    workers = wanted(dataflow(demand, working(parallelism)))
    assert wanted(dataflow(demand, working(workers))) == workers


def test_the_busiest_instance_counts_not_the_mean():
    hot = OperatorFigures.summed(
        "count", [InstanceFigures(100, observed_processing_rate=90), InstanceFigures(100, observed_processing_rate=30)]
    )
    assert busiest_rate(hot) == pytest.approx(120 / 0.9)
    assert wanted(dataflow(140, hot)) == 3
    assert wanted(dataflow(140, working(2))) == 2


def test_within_the_band_nothing_changes():
    assert wanted(dataflow(95, working(1))) == 1
    assert wanted(dataflow(105, working(1))) == 2


def test_a_backlog_is_caught_up_with():
    assert wanted(dataflow(100, working(2), backlog=5000, catch_up_s=10)) == 7
    assert wanted(dataflow(100, working(2), backlog=5000)) == 2


def test_the_time_that_a_change_takes_is_caught_up_with():
    assert wanted(dataflow(210, working(2), reconfiguration_s=5, catch_up_s=10)) == 5
    assert wanted(dataflow(210, working(2), catch_up_s=10)) == 3


def test_fewer_workers_must_have_been_enough_for_a_while_and_the_most_of_that_time_stay():
    memory, decided = ThresholdMemory(), []
    for time, demand in ((0, 70), (20, 140), (40, 70), (60, 70)):
        decision, memory = ThresholdPolicy().decide(dataflow(demand, working(9), time), memory)
        decided.append(decision.parallelism)
    assert decided == [{}, {}, {}, {"count": 2}]


def test_a_busy_look_in_between_restarts_the_wait():
    memory, decided = ThresholdMemory(), []
    for time, demand in ((0, 70), (20, 600), (40, 70), (60, 70), (100, 70)):
        decision, memory = ThresholdPolicy().decide(dataflow(demand, working(9), time), memory)
        decided.append(decision.parallelism)
    assert decided == [{}, {}, {}, {}, {"count": 1}]


def test_no_worker_is_taken_while_a_backlog_is_worked_off():
    assert wanted(dataflow(70, working(9), backlog=5000)) == 9


def test_workers_that_bring_nothing_are_not_followed_by_more():
    def hot(parallelism: int) -> OperatorFigures:
        others = [InstanceFigures(100, observed_processing_rate=50 / (parallelism - 1)) for _ in range(parallelism - 1)]
        return OperatorFigures.summed("count", [InstanceFigures(100, observed_processing_rate=100), *others])

    first, memory = ThresholdPolicy().decide(dataflow(300, hot(2)), ThresholdMemory())
    assert first.parallelism == {"count": 6}
    second, memory = ThresholdPolicy().decide(dataflow(300, hot(6)), memory)
    assert second.parallelism == {}
    assert "more of them brought next to nothing" in second.reason
    assert ThresholdPolicy().decide(dataflow(300, hot(6)), memory)[0].parallelism == {}


def test_workers_that_help_are_followed_by_more():
    _, memory = ThresholdPolicy().decide(dataflow(300, working(2)), ThresholdMemory())
    decision, _ = ThresholdPolicy().decide(dataflow(900, working(5)), memory)
    assert decision.parallelism == {"count": 13}


def decided(*looks: tuple[int, float, float]) -> list[int]:
    """Return the decided workers for each (workers, demand, rate), as if each decision were carried out in between or not."""
    policy = ThresholdPolicy(target_utilisation=1.0)
    memory, found = policy.start(), []
    for workers, demand, rate in looks:
        decision, memory = policy.decide(dataflow(demand, working(workers, rate / workers)), memory)
        found.append(decision.parallelism.get("count", workers))
    return found


def test_every_look_judges_the_last_scale_out_again_as_flink_s_autoscaler_does():
    """Repeat its JobVertexScalerTest: 20 workers should add 90; they add 4 at first, which is too little, then 10."""
    assert decided((5, 100, 50), (10, 180, 90), (20, 180, 94), (20, 180, 98), (20, 180, 100)) == [10, 20, 20, 20, 36]


def test_an_ineffective_scale_out_is_forgotten_once_another_change_of_workers_is_seen():
    assert decided((10, 180, 90), (20, 180, 94), (10, 180, 90), (20, 180, 100)) == [20, 20, 20, 36]


def test_a_look_without_figures_does_not_make_it_forget_what_the_last_scale_out_brought():
    policy = ThresholdPolicy(target_utilisation=1.0)
    _, memory = policy.decide(dataflow(180, working(10, 9)), policy.start())
    _, memory = policy.decide(dataflow(180, OperatorFigures("count", 20)), memory)
    decision, _ = policy.decide(dataflow(180, working(20, 4.7)), memory)
    assert decision.parallelism == {}


def test_capacity_expected_of_workers_is_the_one_asked_for_without_what_rounding_up_adds():
    """Check Flink's expectation: 101 for 100 are a hundredth more, although 2 workers could do twice as much."""
    assert decided((1, 101, 100), (2, 150, 105)) == [2, 3]


def test_an_operator_without_figures_is_left_alone():
    assert wanted(dataflow(300, OperatorFigures("count", 2))) == 2
