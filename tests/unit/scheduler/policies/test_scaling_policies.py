"""Properties that all scaling policies have in common."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.engine.errors import FlowError, RequestError, SnapshotError
from evenflow.scheduler.policies.base import settled
from evenflow.scheduler.policies.bounds import largest
from evenflow.scheduler.policies.dataflow.figures import InstanceFigures, OperatorFigures
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.dhalion import Dhalion
from evenflow.scheduler.policies.ds2 import Ds2
from evenflow.scheduler.policies.latency import LatencyPolicy
from evenflow.scheduler.policies.pid import PidPolicy
from evenflow.scheduler.policies.queueing import QueueingPolicy
from evenflow.scheduler.policies.registry import POLICIES, named
from evenflow.scheduler.policies.stela import Stela
from evenflow.scheduler.policies.threshold import ThresholdPolicy

BUSY = DataflowSnapshot(
    (
        OperatorFigures("source", 1, source_rate=5000, backpressure=0.9),
        OperatorFigures("count", 4, true_processing_rate=400, observed_processing_rate=400, latency_ms=900, queue_records=4000),
    ),
    (Edge("source", "count"),),
    PolicySettings(latency_target_ms=100, max_parallelism=6),
)


def test_an_unknown_policy_is_refused_with_the_names_of_all():
    with pytest.raises(
        RequestError, match="'magic' is not a scaling policy: use one of ds2, dhalion, threshold, queueing, pid, latency, stela"
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
    assert settled(named(name), BUSY).parallelism["count"] > 4


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_accepts_operators_without_figures(name):
    policy = named(name)
    blank = DataflowSnapshot((OperatorFigures("a", 2), OperatorFigures("b", 1)), (Edge("a", "b"),), PolicySettings(latency_target_ms=100))
    decision, _ = policy.decide(blank, policy.start())
    assert not decision.changes


RATE = st.none() | st.floats(0, 1e4)


@st.composite
def any_snapshot(draw) -> DataflowSnapshot:
    """Draw operators with any figures known or missing, and any edges that lead forward."""
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
    goals = PolicySettings(latency_target_ms=100, max_parallelism=20, catch_up_s=draw(st.none() | st.floats(1, 100)))
    return DataflowSnapshot(tuple(operators), tuple(Edge(f"o{a}", f"o{b}") for a, b in sorted(chosen)), goals)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=25, deadline=None)
@given(snapshots=st.lists(any_snapshot(), min_size=1, max_size=2))
def test_any_figures_give_a_decision_within_bounds_that_changes_the_named_operators(name, snapshots):
    policy = named(name).at_once()
    memory = policy.start()
    for look, snapshot in enumerate(snapshots):
        decision, memory = policy.decide(replace(snapshot, time=10.0 * look), memory)
        for operator, workers in decision.parallelism.items():
            figures = snapshot.operator(operator)
            assert 1 <= workers <= min(20, figures.key_groups or 20)
            assert workers != figures.parallelism
        assert set(decision.rebalance) <= set(snapshot.order)


ODD = st.sampled_from([0.0, 5e-324, 1e-300, 1e-18, 1e-9, 1.0, 99.0, 1e9, 1e17, 1e18]) | st.floats(0, 1e18)
ODD_COUNT = st.integers(1, 5) | st.sampled_from([1000, 65_535])


@st.composite
def odd_snapshot(draw) -> DataflowSnapshot:
    """Draw figures that are never measured but can be in a file: tiny and huge ones, any of them missing, diamonds, chains."""
    operators, workers, chained = [], {}, draw(st.sampled_from([None, "x"]))
    for index in range(draw(st.integers(1, 5))):
        chain = draw(st.sampled_from([None, chained]))
        parallelism = workers.setdefault(chain, draw(ODD_COUNT)) if chain else draw(ODD_COUNT)
        rates = {
            name: draw(st.none() | ODD)
            for name in (
                "source_rate", "true_processing_rate", "true_output_rate", "observed_processing_rate", "observed_output_rate",
                "arrival_rate", "latency_ms",
            )
        }  # fmt: skip
        others = {
            "backlog_growth": draw(st.none() | ODD.map(lambda rate: -rate) | ODD),
            "queue_records": draw(ODD),
            "backpressure": draw(st.sampled_from([0.0, 5e-324, 0.5, 1.0])) * parallelism,
            "starvation": draw(st.sampled_from([0.0, 0.5])) * parallelism,
            "kind": draw(st.sampled_from(["continuous", "window", "join"])),
            "chain": chain,
            "hottest_key_share": draw(st.none() | st.sampled_from([0.0, 5e-324, 1.0])),
            "keyed": draw(st.booleans()),
            "min_parallelism": draw(st.none() | ODD_COUNT),
            "max_parallelism": draw(st.none() | ODD_COUNT),
            "key_groups": draw(st.none() | ODD_COUNT),
        }
        if parallelism < 10 and draw(st.booleans()):
            one = st.builds(InstanceFigures, *[st.none() | ODD] * 5)
            others["instances"] = tuple(draw(st.lists(one, min_size=parallelism, max_size=parallelism)))
        operators.append(OperatorFigures(f"o{index}", parallelism, **rates, **others))
    pairs = [(a, b) for b in range(len(operators)) for a in range(b)]
    chosen = draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    shares = st.sampled_from([0, 5e-324, 0.3, 1.0])
    goals = PolicySettings(
        latency_target_ms=draw(st.sampled_from([1e-9, 100, 1e18])),
        catch_up_s=draw(st.none() | st.sampled_from([1e-9, 1e18])),
        max_parallelism=draw(st.none() | ODD_COUNT),
        max_change=draw(st.none() | ODD_COUNT),
        interval_s=draw(st.sampled_from([1e-9, 1e18])),
    )
    edges = tuple(Edge(f"o{a}", f"o{b}", draw(shares)) for a, b in sorted(chosen))
    return DataflowSnapshot(tuple(operators), edges, goals, draw(ODD), draw(ODD))


ODD_POLICIES = st.tuples(
    st.builds(Ds2, activation_window=st.sampled_from([1, 100_000_000]), min_change=ODD_COUNT),
    st.builds(Dhalion, blacklist=st.sampled_from([0, "3650000d"])),
    st.builds(ThresholdPolicy, target_utilisation=st.sampled_from([1e-9, 1.0]), scale_down_delay=st.sampled_from([0, "3650000d"])),
    st.builds(QueueingPolicy, processors=st.none() | ODD_COUNT),
    st.builds(
        PidPolicy,
        integral=st.sampled_from([0, 1e18]),
        derivative=st.sampled_from([0, 1e18]),
        band=st.sampled_from([0, 5e-324, 1.0]),
    ),
    st.builds(LatencyPolicy, violations=st.sampled_from([1, 100_000_000]), slowest=ODD_COUNT, window_step=ODD_COUNT),
    st.builds(Stela, slots=st.none() | st.integers(0, 20), congestion=st.sampled_from([1e-9, 1.2, 1e18])),
)
"""Every policy with settings of its own that a file can have."""


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(odd_snapshot(), ODD_POLICIES)
def test_odd_figures_give_a_decision_within_bounds_with_a_reason(snapshot, policies):
    assert [policy.name for policy in policies] == list(POLICIES)
    for policy in policies:
        decision = settled(policy, snapshot)
        assert json.loads(decision.to_json())["reason"]
        assert not {"nan", "inf"} & set(decision.reason.replace(",", " ").replace("%", " ").split()), policy.name
        for operator, workers in decision.parallelism.items():
            figures = snapshot.operator(operator)
            assert workers != figures.parallelism
            assert 1 <= workers <= largest(figures, snapshot.settings)


def test_latency_gives_workers_to_operators_of_a_chain_that_say_nothing_of_their_latency():
    chain = (
        OperatorFigures("map", 2, observed_processing_rate=100, latency_ms=900, chain="x"),
        OperatorFigures("count", 2, chain="x"),
    )
    snapshot = DataflowSnapshot((OperatorFigures("source", 1, source_rate=300), *chain), (Edge("source", "map"),), BUSY.settings)
    decision = settled(named("latency"), snapshot)
    assert decision.parallelism == {"map": 6, "count": 6}
    assert "map adds 900.0 ms; count is in one chain with such an operator" in decision.reason


def test_latency_does_not_call_sinks_punctual_whose_latency_is_unknown():
    nothing = DataflowSnapshot((OperatorFigures("a", 1), OperatorFigures("b", 1)), (Edge("a", "b"),), BUSY.settings)
    assert settled(named("latency"), nothing).reason == "no operator's latency is known"
    some = replace(nothing, operators=(OperatorFigures("a", 1, latency_ms=7), OperatorFigures("b", 1)))
    assert settled(named("latency"), some).reason == "every sink is within 100 ms, where that is known: b say nothing"


@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e18])
@pytest.mark.parametrize("name", POLICIES)
def test_rates_at_the_ends_of_floating_point_are_no_reason_to_stumble(name, rate):
    snapshot = DataflowSnapshot(
        (
            OperatorFigures("source", 1, source_rate=1e18),
            OperatorFigures("count", 1, true_processing_rate=rate, observed_processing_rate=rate, latency_ms=rate),
        ),
        (Edge("source", "count"),),
        PolicySettings(latency_target_ms=100, max_parallelism=6),
    )
    assert settled(named(name), snapshot).parallelism.get("count", 1) <= 6


def test_figures_beyond_all_measure_are_refused():
    for rate in (1e300, 10**400, float("inf"), float("nan")):
        with pytest.raises(SnapshotError, match=r"operator `count`: source_rate is .*: it must be a finite number, 0 or more"):
            OperatorFigures("count", 1, source_rate=rate)
    with pytest.raises(SnapshotError, match="no operator has more than 65535 workers"):
        OperatorFigures("count", 10**400)
    with pytest.raises(SnapshotError, match=r"chain is \[\]"):
        OperatorFigures("count", 1, chain=[])


def test_slots_by_the_million_are_refused_and_not_counted_one_by_one():
    with pytest.raises(FlowError, match="at most 4096 slots are filled at a time, not 1000000"):
        settled(Stela(slots=1_000_000), BUSY)


def strained(demand: float, backpressure: float, latency_ms: float) -> DataflowSnapshot:
    source = OperatorFigures("source", 1, source_rate=demand, backpressure=backpressure)
    count = OperatorFigures(
        "count", 4, true_processing_rate=400, true_output_rate=400, observed_processing_rate=min(demand, 400), latency_ms=latency_ms
    )
    goals = PolicySettings(latency_target_ms=100, max_parallelism=1000)
    return DataflowSnapshot((source, count), (Edge("source", "count"),), goals)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=30, deadline=None)
@given(st.tuples(st.floats(0, 5000), st.floats(0, 1), st.floats(1, 1000)), st.tuples(st.floats(1, 3), st.floats(0, 0.5), st.floats(1, 3)))
def test_more_of_what_a_policy_goes_by_never_takes_fewer_workers(name, less, growth):
    demand, backpressure, latency_ms = less
    more = (demand * growth[0], min(1.0, backpressure + growth[1]), latency_ms * growth[2])
    before, after = (
        settled(named(name), strained(*figures)).parallelism.get("count", 4) for figures in ((demand, backpressure, latency_ms), more)
    )
    assert after >= before
