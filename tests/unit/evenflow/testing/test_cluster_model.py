"""The simulated cluster keeps every record, and has correct queues, skew and backpressure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.errors import FlowError, JobBusyError, SnapshotError
from evenflow.scheduler.policies.decision import ScalingDecision
from evenflow.testing.load_model.cluster_model import ClusterModel, ModelOperator
from evenflow.testing.load_model.model_operator import OperatorState

LINE = [("source", "map"), ("map", "sink")]


def line(demand: float, rate: float = 100.0, sink: float = 1000.0, **model) -> ClusterModel:
    operators = [ModelOperator("source", 2000.0, demand=lambda time: demand), ModelOperator("map", rate), ModelOperator("sink", sink)]
    return ClusterModel(operators, LINE, **model)


@given(st.floats(1, 500), st.floats(20, 500), st.floats(20, 500), st.integers(1, 4))
def test_no_record_is_lost_or_made(demand, rate, sink, workers):
    model = line(demand, rate, sink)
    model.advance(5.0)
    model.carry_out(ScalingDecision({"map": workers}))
    model.advance(5.0)
    assert model.waiting() + model.processed("sink") == pytest.approx(demand * 10.0)


def test_a_slow_operator_holds_its_senders_back():
    model = line(300.0)
    model.advance(60.0)
    snapshot = model.snapshot()
    assert snapshot.operator("source").backpressure > 0.5
    assert snapshot.operator("map").backpressure == 0.0
    assert snapshot.operator("map").observed_processing_rate == pytest.approx(100.0, rel=0.01)
    assert model.backlog > 10_000


def test_a_slow_sink_is_felt_by_all_before_it():
    model = line(300.0, rate=500.0, sink=100.0)
    model.advance(60.0)
    snapshot = model.snapshot()
    assert snapshot.operator("map").backpressure > 0.5
    assert snapshot.operator("source").backpressure > 0.5


def test_true_rates_are_those_of_useful_time():
    model = line(50.0)
    model.advance(30.0)
    assert model.snapshot().operator("map").true_processing_rate == pytest.approx(100.0)


def test_a_decision_takes_its_time_and_the_operator_works_on():
    model = line(300.0, reconfiguration_s=5.0)
    model.advance(10.0)
    model.carry_out(ScalingDecision({"map": 3}))
    model.advance(4.0)
    assert (model.parallelism["map"], model.reconfiguring) == (1, True)
    assert model.snapshot().operator("map").observed_processing_rate > 90
    model.advance(2.0)
    assert (model.parallelism["map"], model.reconfiguring) == (3, False)


def test_an_operator_that_halts_meanwhile_does_nothing():
    model = line(300.0, reconfiguration_s=5.0, halts=True)
    model.advance(10.0)
    model.snapshot()
    model.carry_out(ScalingDecision({"map": 3}))
    model.advance(4.0)
    assert model.snapshot().operator("map").observed_processing_rate == 0.0


def test_a_second_decision_waits_for_the_first():
    model = line(300.0)
    model.carry_out(ScalingDecision({"map": 3}))
    with pytest.raises(JobBusyError, match="a reconfiguration is under way until 2 s"):
        model.carry_out(ScalingDecision({"map": 4}))


def test_two_sources_get_their_turn_at_a_full_queue():
    operators = [ModelOperator(name, 500.0, demand=lambda time: 100.0) for name in ("left", "right")] + [ModelOperator("join", 100.0)]
    model = ClusterModel(operators, [("left", "join"), ("right", "join")])
    model.advance(60.0)
    snapshot = model.snapshot()
    left, right = (snapshot.operator(name).observed_processing_rate for name in ("left", "right"))
    assert left == pytest.approx(right, rel=0.2)


def test_the_hot_worker_limits_an_operator():
    operators = [ModelOperator("source", 2000.0, demand=lambda time: 300.0), ModelOperator("count", 100.0, 4, hot_keys=(0.4,))]
    model = ClusterModel(operators, [("source", "count")])
    model.advance(60.0)
    count = model.snapshot().operator("count")
    assert count.observed_processing_rate == pytest.approx(100 / 0.55, rel=0.02)
    assert count.hottest_key_share == 0.4
    model.carry_out(ScalingDecision(rebalance=("count",)))
    model.advance(60.0)
    assert model.snapshot().operator("count").observed_processing_rate == pytest.approx(100 / 0.4, rel=0.02)


@given(st.lists(st.floats(0, 0.2), max_size=5), st.integers(1, 8), st.booleans())
def test_shares_are_parts_of_a_whole_and_balancing_never_makes_them_worse(hot_keys, workers, balanced):
    state = OperatorState(ModelOperator("count", 100.0, workers, hot_keys=tuple(hot_keys)))
    before = state.shares.max()
    if balanced:
        state.rebalance()
    assert state.shares.sum() == pytest.approx(1.0)
    assert state.shares.max() <= before + 1e-9
    if balanced:
        assert state.shares.max() <= max(1 / workers, 2 * max(hot_keys, default=0.0)) + 1e-9


def test_overhead_makes_every_further_instance_worth_less():
    assert ModelOperator("count", 100.0, overhead=0.1).rate_of(11) == 50.0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: OperatorState(ModelOperator("count", 100.0, hot_keys=(0.7, 0.7))), "hot_keys have 1.4 of the records"),
        (lambda: ClusterModel([ModelOperator("count", 100.0, queue_s=0.1)], []), "queue_s is 0.1, it must be two ticks at least"),
        (lambda: ClusterModel([ModelOperator("count", 100.0)], [("count", "count")]), "there is a cycle"),
    ],
)
def test_an_impossible_model_is_refused(build, message):
    with pytest.raises((FlowError, SnapshotError), match=message):
        build()
