"""DS2 needs one step to the right size, and none after that."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.scheduler.policies.dataflow.figures import InstanceFigures, OperatorFigures
from evenflow.scheduler.policies.dataflow.settings import DEFAULTS, PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.ds2 import Ds2, Ds2Memory, needs

RATES = st.floats(1, 1e6)


def dataflow(demand: float, *operators: OperatorFigures, settings: PolicySettings = DEFAULTS, **source) -> DataflowSnapshot:
    all_of_it = (OperatorFigures("source", 1, source_rate=demand, **source), *operators)
    edges = tuple(Edge(a.name, b.name) for a, b in pairwise(all_of_it))
    return DataflowSnapshot(all_of_it, edges, settings)


def working(name: str, parallelism: int, each: float, selectivity: float = 1.0, **others) -> OperatorFigures:
    """Return an operator that scales linearly: every instance has the same true rate."""
    total = each * parallelism
    return OperatorFigures(name, parallelism, true_processing_rate=total, true_output_rate=total * selectivity, **others)


def decide(snapshot: DataflowSnapshot, memory: Ds2Memory | None = None, **own) -> tuple:
    return Ds2(**own).decide(snapshot, memory or Ds2Memory())


def wanted(snapshot: DataflowSnapshot) -> dict[str, int]:
    return {**snapshot.parallelism, **decide(snapshot)[0].parallelism}


@st.composite
def linear_dataflows(draw) -> DataflowSnapshot:
    """Draw any acyclic dataflow after one source, every operator linear; needs stay below a few hundred workers."""
    count = draw(st.integers(1, 5))
    operators = [OperatorFigures("o0", 1, source_rate=draw(st.floats(0, 1000)))]
    operators += [working(f"o{i}", draw(st.integers(1, 50)), draw(st.floats(10, 1e5)), draw(st.floats(0, 3))) for i in range(1, count + 1)]
    edges = []
    for target in range(1, count + 1):
        before = draw(st.sets(st.integers(0, target - 1), min_size=1, max_size=2))
        edges += [Edge(f"o{source}", f"o{target}", draw(st.sampled_from([1.0, 0.5]))) for source in sorted(before)]
    return DataflowSnapshot(tuple(operators), tuple(edges))


def with_parallelism(snapshot: DataflowSnapshot, workers: dict[str, int]) -> DataflowSnapshot:
    """Return the measurements that the model predicts once the operators have these numbers of workers."""

    def scaled(operator: OperatorFigures) -> OperatorFigures:
        factor = workers[operator.name] / operator.parallelism
        if operator.true_processing_rate is None:
            return operator
        return replace(
            operator,
            parallelism=workers[operator.name],
            true_processing_rate=operator.true_processing_rate * factor,
            true_output_rate=operator.true_output_rate * factor,
        )

    return replace(snapshot, operators=tuple(scaled(operator) for operator in snapshot.operators))


def with_demand(snapshot: DataflowSnapshot, factor: float) -> DataflowSnapshot:
    operators = tuple(o if o.source_rate is None else replace(o, source_rate=o.source_rate * factor) for o in snapshot.operators)
    return replace(snapshot, operators=operators)


@given(linear_dataflows())
def test_decision_applied_to_its_own_prediction_is_a_fixed_point(snapshot):
    assert decide(with_parallelism(snapshot, wanted(snapshot)))[0].parallelism == {}


@given(linear_dataflows(), st.floats(1, 10))
def test_more_demand_never_takes_fewer_workers(snapshot, factor):
    fewer, more = wanted(snapshot), wanted(with_demand(snapshot, factor))
    assert all(more[name] >= workers for name, workers in fewer.items())


@given(linear_dataflows())
def test_at_linear_scaling_workers_are_enough_and_one_fewer_is_not(snapshot):
    decided = with_parallelism(snapshot, wanted(snapshot))
    for name, need in needs(decided)[0].items():
        workers = decided.operator(name).parallelism
        assert need <= workers * (1 + 1e-6)
        assert workers == 1 or need > (workers - 1) * (1 - 1e-6)


@given(linear_dataflows(), st.data())
def test_the_present_parallelism_does_not_matter_at_linear_scaling(snapshot, data):
    other = {name: data.draw(st.integers(1, 20)) for name in snapshot.order if snapshot.operator(name).true_processing_rate}
    assert wanted(with_parallelism(snapshot, {**snapshot.parallelism, **other})) == wanted(snapshot)


def test_rates_are_not_rounded_on_the_way():
    snapshot = dataflow(10, working("a", 1, 4, 0.3), working("b", 1, 1))
    assert needs(snapshot)[0] == {"a": 2.5, "b": pytest.approx(3.0)}
    assert wanted(snapshot)["b"] == 3


def test_a_join_gets_what_both_sides_send():
    operators = (
        OperatorFigures("left", 1, source_rate=300),
        OperatorFigures("right", 1, source_rate=200),
        working("filter", 1, 100, 0.5),
        working("join", 1, 100),
    )
    edges = (Edge("left", "filter"), Edge("filter", "join"), Edge("right", "join"))
    assert wanted(DataflowSnapshot(operators, edges)) == {"left": 1, "right": 1, "filter": 3, "join": 4}


def test_chained_operators_share_their_workers():
    one, two = working("parse", 2, 100, chain="x"), working("map", 2, 50, chain="x")
    snapshot = dataflow(100, one, two, working("count", 1, 1000))
    decision, _ = decide(snapshot)
    assert decision.parallelism == {"parse": 3, "map": 3}


def test_demand_is_what_comes_not_what_a_throttled_source_reads():
    snapshot = dataflow(1000, working("count", 1, 100), observed_output_rate=100, backpressure=0.9)
    assert wanted(snapshot)["count"] == 10


def test_a_growing_backlog_is_demand():
    source = OperatorFigures("source", 1, observed_output_rate=100, backlog_growth=300)
    assert wanted(DataflowSnapshot((source, working("count", 1, 100)), (Edge("source", "count"),)))["count"] == 4


def test_a_backlog_is_worked_off_in_the_time_that_is_asked_for():
    snapshot = dataflow(100, working("count", 1, 100), settings=PolicySettings(catch_up_s=10), queue_records=2000)
    assert wanted(snapshot)["count"] == 3


def test_a_source_that_is_too_slow_gets_workers():
    assert wanted(dataflow(1000, working("count", 10, 100), true_output_rate=400))["source"] == 3


def test_a_source_with_a_known_demand_alone_keeps_its_workers():
    decision, _ = decide(dataflow(1000, working("count", 10, 100)))
    assert (decision.parallelism, decision.reason) == ({}, "every operator has the workers that the demand needs")


def test_an_operator_without_figures_is_left_alone_and_named():
    decision, _ = decide(dataflow(1000, OperatorFigures("mute", 3), working("count", 1, 100)))
    assert decision.parallelism == {}
    assert "mute stays unchanged" in decision.reason
    assert "count stays unchanged" in decision.reason


def test_no_demand_takes_one_worker():
    assert wanted(dataflow(0, working("count", 5, 100)))["count"] == 1


def test_a_decision_waits_for_its_activation_window_and_takes_the_median():
    memory, decided = Ds2Memory(), []
    for rate in (300, 900, 400):
        decision, memory = decide(dataflow(rate, working("count", 1, 100)), memory, activation_window=3)
        decided.append(decision.parallelism)
    assert decided == [{}, {}, {"count": 4}]


def test_small_changes_are_noise_where_so_set():
    assert decide(dataflow(350, working("count", 3, 100)), min_change=2)[0].parallelism == {}
    assert decide(dataflow(450, working("count", 3, 100)), min_change=2)[0].parallelism == {"count": 5}


def test_a_change_that_made_it_worse_is_rolled_back_and_not_tried_again():
    before = dataflow(300, working("count", 2, 100), observed_output_rate=200)
    decision, memory = decide(before)
    assert decision.parallelism == {"count": 3}
    worse = dataflow(300, working("count", 3, 100), observed_output_rate=120)
    doubt, memory = decide(worse, memory)
    assert doubt.parallelism == {}
    assert doubt.reason == "count 2 -> 3 made it worse, sources read 120 records/s; 1 of 2 observations that a rollback takes"
    back, memory = decide(worse, memory)
    assert back.parallelism == {"count": 2}
    assert "rolled back: count 2 -> 3 made it worse" in back.reason
    again, memory = decide(before, memory)
    assert again.parallelism == {}
    assert "rolled back at this demand" in again.reason
    more, _ = decide(dataflow(600, working("count", 2, 100), observed_output_rate=200), memory)
    assert more.parallelism == {"count": 6}


def test_a_pause_after_a_change_is_no_reason_to_roll_back_even_if_it_comes_again():
    _, memory = decide(dataflow(300, working("count", 2, 100), observed_output_rate=200))
    pause, fine = (dataflow(300, working("count", 3, 100), observed_output_rate=read) for read in (20, 300))
    for seen in (pause, fine, pause, pause):
        decision, memory = decide(seen, memory)
        assert decision.parallelism == {}


@pytest.mark.parametrize(("read_before", "read_after"), [(200, 0), (300, 0), (300, 220)])
def test_sources_that_read_in_bursts_are_no_reason_to_roll_back(read_before, read_after):
    busy, busier = (working("count", n, 100, observed_processing_rate=100 * n) for n in (2, 3))
    _, memory = decide(dataflow(300, busy, observed_output_rate=read_before))
    assert decide(dataflow(300, busier, observed_output_rate=read_after), memory)[0].parallelism == {}


def test_a_lower_rate_at_a_lower_demand_is_no_reason_to_roll_back():
    _, memory = decide(dataflow(300, working("count", 2, 100), observed_output_rate=200))
    decision, _ = decide(dataflow(100, working("count", 3, 100), observed_output_rate=100), memory)
    assert decision.parallelism == {"count": 1}


def test_a_decision_that_was_not_carried_out_is_not_judged():
    before = dataflow(300, working("count", 2, 100), observed_output_rate=200)
    _, memory = decide(before)
    assert decide(dataflow(300, working("count", 2, 100), observed_output_rate=100), memory)[0].parallelism == {"count": 3}


def test_a_loss_that_the_measured_rates_do_not_show_is_corrected():
    short = dataflow(300, working("count", 3, 100), observed_output_rate=250, backpressure=0.2)
    decision, memory = decide(short)
    assert memory.correction == pytest.approx(1.2)
    assert decision.parallelism == {"count": 4}
    assert decision.reason.endswith("needs are 1.20 times those of the measured rates, at which less got through")


def test_a_source_that_does_not_wait_for_credit_is_no_reason_to_correct():
    slow = dataflow(300, working("count", 3, 100), observed_output_rate=250)
    assert decide(slow)[1].correction == 1.0


def test_a_stream_that_has_just_begun_is_no_reason_to_correct():
    """Check sources that have read 25 of 300 records a second, and waited for credit for less than a hundredth of the time."""
    begun = dataflow(300, working("count", 4, 100), observed_output_rate=25, backpressure=0.006)
    assert decide(begun)[1].correction == 1.0


def test_operators_that_wait_for_a_cpu_are_no_reason_to_correct_and_the_reason_says_so():
    short = dataflow(300, working("count", 3, 100, starvation=1.5), observed_output_rate=250, backpressure=0.2)
    decision, memory = decide(short)
    assert (memory.correction, decision.parallelism) == (1.0, {})
    assert decision.reason.endswith("count waits for a CPU; more workers would not add one")


def nexmark(aggregate: OperatorFigures, read: float, **bid) -> DataflowSnapshot:
    """Return the observation of NexMark's Q11: 2,760 bids a second, for which four workers are enough."""
    source = OperatorFigures("bid", 2, source_rate=2760, observed_output_rate=read, max_parallelism=2, min_parallelism=2, **bid)
    return DataflowSnapshot((source, aggregate), (Edge("bid", "aggregate"),))


def test_records_that_did_not_arrive_are_not_missing():
    """Check a stream that began within the window: nearly all its rows were read, as the sources' backlog shows."""
    aggregate = OperatorFigures("aggregate", 5, true_processing_rate=3500, true_output_rate=0, observed_processing_rate=1500)
    began = nexmark(aggregate, read=1870, backlog_growth=60, backpressure=0.77)
    decision, memory = decide(began)
    assert (memory.correction, decision.parallelism) == (1.0, {"aggregate": 4})
    piled_up = replace(began, operators=(replace(began.operators[0], backlog_growth=890), aggregate))
    assert decide(piled_up)[1].correction > 1.0


def test_less_that_gets_through_in_spite_of_workers_to_spare_is_no_reason_to_correct():
    """Check eight workers with twice the necessary capacity: even with the largest correction of their rates they would be
    enough.
    """
    aggregate = OperatorFigures("aggregate", 8, true_processing_rate=5600, true_output_rate=0, observed_processing_rate=1500)
    decision, memory = decide(nexmark(aggregate, read=1840, backpressure=0.8))
    assert (memory.correction, decision.parallelism) == (1.0, {"aggregate": 4})


def test_the_loss_of_workers_that_wait_for_a_cpu_is_not_corrected():
    each = ((824, 581), (816, 406), (846, 614), (836, 622))
    instances = [InstanceFigures(true, 0.0, done, 0.0, starvation=0.743 / 4) for true, done in each]
    aggregate = OperatorFigures.summed("aggregate", instances)
    assert decide(nexmark(aggregate, read=2377, backlog_growth=383, backpressure=1.62, starvation=0.33))[1].correction == 1.0


def test_a_correction_is_no_larger_than_these_workers_show_when_they_keep_up():
    keeping_up = nexmark(
        OperatorFigures("aggregate", 4, true_processing_rate=3190, true_output_rate=0, observed_processing_rate=2950),
        read=3041, backlog_growth=-281, backpressure=1.95,
    )  # fmt: skip
    decision, memory = decide(keeping_up, Ds2Memory(correction=1.2))
    assert memory.correction == pytest.approx(3190 / 2760)
    assert not decision.parallelism


def skewed(loads: list[float], demand: float = 160.0, **others) -> DataflowSnapshot:
    instances = [InstanceFigures(100, observed_processing_rate=load) for load in loads]
    return dataflow(demand, OperatorFigures.summed("count", instances, **others), observed_output_rate=sum(loads), backpressure=0.2)


def test_a_hot_worker_at_enough_capacity_asks_for_a_rebalance_not_for_workers():
    decision, memory = decide(skewed([100, 20, 13]))
    assert (decision.parallelism, decision.rebalance) == ({}, ("count",))
    assert "rebalance its keys" in decision.reason
    assert memory.correction == 1.0


def test_a_hot_worker_of_an_operator_that_needs_more_gets_workers():
    decision, _ = decide(skewed([100, 20], demand=500))
    assert (decision.parallelism, decision.rebalance) == ({"count": 5}, ())


def test_a_hot_key_that_no_placement_can_cool_is_not_moved_about():
    decision, memory = decide(skewed([100, 20, 13], hottest_key_share=0.75))
    assert (decision.rebalance, memory.correction) == ((), 1.0)


def test_an_uneven_operator_that_keeps_up_is_left_alone():
    assert not decide(skewed([96, 82, 82], demand=260))[0].changes


def held_back(demand: float, read: float, count: OperatorFigures, settings: PolicySettings = DEFAULTS) -> DataflowSnapshot:
    """Return a source whose rate is limited to `read` records/s, and which waits for credit because of that."""
    count = replace(count, observed_processing_rate=read)
    return dataflow(demand, count, observed_output_rate=read, backpressure=0.5, settings=settings)


def test_a_little_more_demand_does_not_take_away_what_the_correction_gave():
    assert [wanted(held_back(demand, 500, working("count", 10, 100)))["count"] for demand in (1000, 1001)] == [20, 20]


def test_a_correction_is_no_larger_than_what_the_rates_do_not_explain():
    """Check 10 workers that should get 1000 of 2000 through, and do."""
    assert wanted(held_back(2000, 1000, working("count", 10, 100)))["count"] == 20


@st.composite
def strained_dataflows(draw) -> DataflowSnapshot:
    """Draw a chain of operators with about the necessary workers, partial throughput, skew, backlogs and bounds."""
    demand, part, operators = 1000.0, draw(st.floats(0.4, 1)), []
    for index in range(draw(st.integers(1, 3))):
        need = draw(st.floats(0.5, 20))
        parallelism, each = max(1, round(need) + draw(st.integers(0, 1))), demand / need
        shares = draw(st.lists(st.floats(1, 1.5), min_size=parallelism, max_size=parallelism)) if draw(st.booleans()) else []
        instances = tuple(InstanceFigures(each, each, demand * part * share / sum(shares)) for share in shares)
        others = {"max_parallelism": draw(st.none() | st.integers(parallelism, 30)), "keyed": draw(st.booleans()), "instances": instances}
        operators.append(working(f"o{index}", parallelism, each, observed_processing_rate=demand * part, **others))
    goals = PolicySettings(catch_up_s=draw(st.none() | st.floats(1, 100)))
    source = {
        "observed_output_rate": demand * part,
        "backpressure": draw(st.sampled_from([0.0, 0.7])),
        "queue_records": draw(st.floats(0, 1e3)),
    }
    return dataflow(demand, *operators, settings=goals, **source)


@given(strained_dataflows(), st.floats(1, 1.1) | st.floats(1, 3))
def test_more_demand_never_takes_fewer_workers_whatever_of_it_gets_through(snapshot, factor):
    less, more = wanted(snapshot), wanted(with_demand(snapshot, factor))
    assert {name: (less[name], more[name]) for name in less if more[name] < less[name]} == {}


def test_it_does_not_say_that_every_operator_has_its_workers_if_the_need_of_one_is_unknown():
    some = decide(dataflow(100, working("a", 2, 100), OperatorFigures("b", 1, true_processing_rate=5), OperatorFigures("c", 1)))[0]
    assert "b needs 20.00 workers and has 1" in some.reason
    assert "c stays unchanged" in some.reason
    one = decide(dataflow(100, working("a", 1, 100), OperatorFigures("c", 1)))[0]
    assert one.reason.startswith("every operator whose need is known has the workers that the demand needs; c stays unchanged")
    none = decide(DataflowSnapshot((OperatorFigures("a", 1), OperatorFigures("b", 1)), (Edge("a", "b"),)))[0]
    assert "every operator" not in none.reason


def test_it_does_not_say_that_every_operator_has_its_workers_if_a_limit_prevents_that():
    at_most = decide(dataflow(1000, working("a", 2, 100, max_parallelism=2)))[0]
    assert at_most.reason == "a needs 10.00 workers and has 2; a: 10 workers are out of bounds, 2 are not"
    noise = decide(dataflow(250, working("a", 2, 100)), min_change=2)[0]
    assert noise.reason == "a needs 2.50 workers and has 2; fewer than 2 workers more or less are noise"
