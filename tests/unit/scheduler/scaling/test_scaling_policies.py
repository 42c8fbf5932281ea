"""What all scaling policies have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenflow.engine.errors import FlowError
from evenflow.scheduler.scaling.figures import OperatorFigures
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
