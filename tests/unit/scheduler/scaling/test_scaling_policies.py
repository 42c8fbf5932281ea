"""What all scaling policies have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.engine.errors import FlowError
from evenflow.scheduler.scaling.figures import InstanceFigures, OperatorFigures
from evenflow.scheduler.scaling.policies import POLICIES, named
from evenflow.scheduler.scaling.settings import PolicySettings
from evenflow.scheduler.scaling.snapshot import DataflowSnapshot, Edge

BUSY = DataflowSnapshot(
    (
        OperatorFigures("source", 1, source_rate=5000, backpressure=0.9),
        OperatorFigures("count", 4, true_processing_rate=400, observed_processing_rate=400, latency_ms=900, queue_records=4000),
    ),
    (Edge("source", "count"),),
    PolicySettings(latency_target_ms=100, violations=1, max_parallelism=6),
)


def test_an_unknown_policy_is_refused_with_the_names_of_all():
    with pytest.raises(
        FlowError, match="'magic' is not a scaling policy: use one of ds2, dhalion, threshold, queueing, pid, latency, stela"
    ):
        named("magic")


@pytest.mark.parametrize("name", POLICIES)
def test_equal_snapshots_and_memories_give_equal_decisions(name):
    policy = named(name)
    assert policy.decide(BUSY, policy.start()) == policy.decide(BUSY, policy.start())


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_keeps_the_bounds_and_gives_a_reason(name):
    policy, memory = named(name), named(name).start()
    for look in range(10):
        decision, memory = policy.decide(replace(BUSY, time=10.0 * look), memory)
        assert decision.reason
        assert all(workers <= 6 for workers in decision.parallelism.values())


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_gives_a_bottleneck_more_workers(name):
    policy = named(name)
    decision, _ = policy.decide(BUSY, policy.start())
    assert decision.parallelism["count"] > 4


@pytest.mark.parametrize("name", POLICIES)
def test_no_policy_stumbles_over_operators_of_which_nothing_is_known(name):
    policy = named(name)
    blank = DataflowSnapshot((OperatorFigures("a", 2), OperatorFigures("b", 1)), (Edge("a", "b"),), PolicySettings(latency_target_ms=100))
    decision, _ = policy.decide(blank, policy.start())
    assert not decision.changes


RATE = st.none() | st.floats(0, 1e4)


@st.composite
def any_snapshot(draw) -> DataflowSnapshot:
    """Operators of which anything may be known or not, with any edges that lead forward."""
    operators = []
    for index in range(draw(st.integers(1, 4))):
        parallelism = draw(st.integers(1, 4))
        one = st.builds(InstanceFigures, RATE, RATE, RATE, RATE, RATE, st.none() | st.floats(0, 1))
        instances = draw(st.lists(one, min_size=parallelism, max_size=parallelism))
        others = {
            "source_rate": draw(RATE),
            "backlog_growth": draw(st.none() | st.floats(-1e3, 1e3)),
            "latency_ms": draw(RATE),
            "key_groups": draw(st.none() | st.integers(1, 8)),
            "hottest_key_share": draw(st.none() | st.floats(0, 1)),
            "nodes": tuple(draw(st.sampled_from("abc")) for _ in range(parallelism)) if draw(st.booleans()) else (),
        }
        operators.append(OperatorFigures.summed(f"o{index}", instances, **others))
    pairs = [(a, b) for b in range(len(operators)) for a in range(b)]
    chosen = draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    goals = PolicySettings(
        latency_target_ms=100, violations=1, max_parallelism=20, catch_up_s=draw(st.none() | st.floats(1, 100)), scale_down_delay_s=0.0
    )
    return DataflowSnapshot(tuple(operators), tuple(Edge(f"o{a}", f"o{b}") for a, b in sorted(chosen)), goals)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=25, deadline=None)
@given(snapshots=st.lists(any_snapshot(), min_size=1, max_size=2))
def test_whatever_is_known_the_decision_is_within_bounds_and_changes_what_it_names(name, snapshots):
    policy, memory = named(name), named(name).start()
    for look, snapshot in enumerate(snapshots):
        decision, memory = policy.decide(replace(snapshot, time=10.0 * look), memory)
        for operator, workers in decision.parallelism.items():
            figures = snapshot.operator(operator)
            assert 1 <= workers <= min(20, figures.key_groups or 20)
            assert workers != figures.parallelism
        assert set(decision.rebalance) <= set(snapshot.order)
