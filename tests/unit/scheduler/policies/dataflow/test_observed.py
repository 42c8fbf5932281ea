"""A running job's windows as scaling policies see them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.source import Source
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.dataflow.observed import MOST_HELD_BACK, observed
from evenflow.scheduler.policies.dataflow.scaled_stage import scaled_stages
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot_json import snapshot_from_json, snapshot_to_json
from evenflow.scheduler.policies.ds2 import Ds2


class Pipe(Source):
    """A source whose splits can't be reassigned."""

    name = "pipe"

    def reader(self, index, parallelism):
        raise AssertionError("nothing runs here")


def job(source=None, parallelism=2):
    flow = ef.Dataflow("f")
    rows = flow.read(source if source is not None else ef.generate())
    rows.key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_list([], name="out"))
    return flow.plan(config=ef.JobConfig(parallelism=parallelism, key_groups=16, combine=False))


def window(worker, rows_in=0, rows_out=0, useful=0.0, *, wait=0.0, length=1.0, **others):
    return WorkerWindow(worker, 0.0, length, rows_in=rows_in, rows_out=rows_out, useful=useful, wait_credit=wait, **others)


def seen(*windows, plan=None, settings=None):
    by_worker = {}
    for one in windows:
        by_worker.setdefault(one.worker, []).append(one)
    return observed(scaled_stages(plan or job()), by_worker, settings or PolicySettings())


def test_true_rates_are_per_second_of_useful_time_and_observed_ones_of_any():
    count = seen(window("count-0", 100, 50, 0.5), window("count-1", 300, 30, 1.0)).operator("count")
    assert (count.parallelism, count.true_processing_rate, count.true_output_rate) == (2, 500, 130)
    assert (count.observed_processing_rate, count.observed_output_rate) == (400, 80)
    assert [one.utilisation for one in count.instances] == [0.5, 1.0]


def test_windows_of_a_worker_count_by_their_length():
    count = seen(window("count-0", 100, 0, 0.5), window("count-0", 500, 0, 1.5, length=2.0)).operator("count")
    assert (count.instances[0].observed_processing_rate, count.instances[0].true_processing_rate) == (200, 300)


def test_worker_with_nothing_to_do_has_no_true_rate_and_counts_as_the_others():
    count = seen(window("count-0", 100, 0, 0.5), window("count-1")).operator("count")
    assert count.instances[1].true_processing_rate is None
    assert count.true_processing_rate == 400


def test_operators_chained_in_the_same_workers_are_one():
    snapshot = seen()
    assert snapshot.order == ("generate", "count")
    assert [edge[:2] for edge in snapshot.edges] == [("generate", "count")]
    assert snapshot.operator("count").chain == "count"


def test_source_that_states_its_rate_is_offered_that():
    snapshot = seen(window("generate-0", 100, 100, 0.1, wait=0.9), plan=job(ef.generate(rate=7000)))
    assert snapshot.operator("generate").source_rate == 7000


def test_source_without_a_rate_is_offered_what_it_would_read_if_it_never_waited_for_credit():
    snapshot = seen(window("generate-0", 100, 100, 0.5, wait=0.5), window("generate-1", 100, 100, 1.0))
    assert snapshot.operator("generate").source_rate == 300


def test_source_that_waits_all_the_time_is_held_back_by_a_bounded_factor():
    snapshot = seen(window("generate-0", 100, 100, 0.0, wait=1.5))
    assert snapshot.operator("generate").source_rate == pytest.approx(100 * MOST_HELD_BACK)
    assert snapshot.operator("generate").instances[0].backpressure == 1.0


def test_held_back_source_lets_ds2_give_the_slow_operator_more():
    source = [window(f"generate-{i}", 500, 500, 0.1, wait=0.5) for i in range(2)]
    count = [window(f"count-{i}", 500, 0, 1.0) for i in range(2)]
    decision, _ = Ds2().decide(seen(*source, *count), Ds2().start())
    assert decision.parallelism == {"generate": 1, "count": 4}


def test_hot_worker_lets_ds2_rebalance_where_workers_are_enough():
    source = [window(f"generate-{i}", 600, 600, 0.1) for i in range(2)]
    count = [window("count-0", 1000, 0, 1.0), window("count-1", 200, 0, 0.2)]
    snapshot = seen(*source, *count, plan=job(ef.generate(rate=1500)))
    assert Ds2().decide(snapshot, Ds2().start())[0].rebalance == ("count",)
    assert (snapshot.operator("generate").keyed, snapshot.operator("count").keyed) == (False, True)


def test_records_that_wait_are_the_mean_over_the_windows():
    count = seen(window("count-0", 1000, 0, 1.0, queued_rows=200), window("count-0", 1000, 0, 1.0, queued_rows=400)).operator("count")
    assert count.queue_records == 300


def test_hottest_key_is_the_one_with_most_records_over_all_windows():
    windows = [
        window("count-0", 60, 0, 0.5, keyed_records=60, hot_keys=(("a", 30), ("b", 20))),
        window("count-0", 40, 0, 0.5, keyed_records=40, hot_keys=(("b", 20),)),
    ]
    assert seen(*windows).operator("count").hottest_key_share == 0.4
    assert seen().operator("count").hottest_key_share is None


def test_latency_of_the_last_operator_is_what_the_way_before_it_leaves():
    flow = ef.Dataflow("f")
    rows = flow.read(ef.generate()).key_by("key").stateful_map(lambda state, row: (state, row)).named("first")
    rows.key_by("key").stateful_map(lambda state, row: (state, row)).named("last").write(ef.to_list([]))
    first = window("first-0", 1000, 1000, 1.0, queued_rows=20)
    last = window("last-0", 1000, 0, 0.5, latencies=(90.0, 110.0))
    snapshot = seen(first, last, plan=flow.plan())
    assert snapshot.operator("first").latency_ms == pytest.approx(20.0)
    assert snapshot.operator("last").latency_ms == pytest.approx(80.0)


def test_outputs_share_the_sent_rows_in_proportion_to_the_received_ones():
    flow = ef.Dataflow("f")
    rows = flow.read(ef.generate())
    rows.key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_list([]))
    rows.filter(lambda row: row["value"] > 900).key_by("key").aggregate(n=ef.count()).named("rare").write(ef.to_list([]))
    plan = flow.plan(config=ef.JobConfig(combine=False))
    assert [edge.share for edge in seen(plan=plan).edges] == [0.5, 0.5]
    shares = [edge.share for edge in seen(window("count-0", 900, 0, 1.0), window("rare-0", 100, 0, 0.1), plan=plan).edges]
    assert shares == [0.9, 0.1]


def test_bounds_are_the_settings_and_key_groups_those_of_operators_with_keyed_state():
    snapshot = seen(settings=PolicySettings(min_parallelism=2, max_parallelism=8))
    source, count = snapshot.operator("generate"), snapshot.operator("count")
    assert (source.min_parallelism, source.max_parallelism, source.key_groups) == (2, 8, None)
    assert (count.min_parallelism, count.max_parallelism, count.key_groups) == (2, 8, 16)


def test_source_that_cannot_be_shared_out_keeps_its_workers():
    busy = [window(f"pipe-{i}", 500, 500, 1.0) for i in range(2)]
    snapshot = seen(*busy, plan=job(Pipe()), settings=PolicySettings(max_parallelism=1))
    pipe = snapshot.operator("pipe")
    assert (pipe.min_parallelism, pipe.max_parallelism) == (2, 2)
    assert "pipe" not in Ds2().decide(snapshot, Ds2().start())[0].parallelism


def test_job_that_has_measured_nothing_is_a_snapshot_all_the_same():
    snapshot = seen()
    assert snapshot.operator("count").true_processing_rate is None
    assert Ds2().decide(snapshot, Ds2().start())[0].parallelism == {"generate": 1, "count": 1}


counts = st.integers(0, 10**9)
times = st.floats(0, 2)
windows = st.builds(
    WorkerWindow, st.sampled_from(["generate-0", "generate-1", "count-0", "count-1"]), st.just(0.0), st.floats(0, 2), counts, counts,
    times, times, times, times, queued_rows=st.integers(0, 10_000), keyed_records=counts, groups=st.just(np.zeros(0, np.int32)),
    hot_keys=st.lists(st.tuples(st.integers(0, 3), counts), max_size=4).map(tuple), latencies=st.lists(times, max_size=3).map(tuple),
)  # fmt: skip


@given(st.lists(windows, max_size=8))
def test_any_measurements_make_a_valid_snapshot_that_survives_json(several):
    snapshot = seen(*several)
    assert snapshot_from_json(snapshot_to_json(snapshot)).operators == snapshot.operators


def bounds_of(change, **settings):
    flow = ef.Dataflow("f")
    rows = flow.read(ef.generate())
    change(rows.key_by("key").aggregate(n=ef.count()).named("count")).write(ef.to_list([], name="out"))
    count = seen(plan=flow.plan(config=ef.JobConfig(combine=False)), settings=PolicySettings(**settings)).operator("count")
    return count.min_parallelism, count.max_parallelism


def test_operators_own_bounds_go_before_the_jobs():
    assert bounds_of(lambda count: count.parallelism(2, between=(2, 20)), max_parallelism=8) == (2, 20)
    assert bounds_of(lambda count: count, min_parallelism=2, max_parallelism=8) == (2, 8)


def test_fixed_operator_keeps_the_workers_that_it_has():
    assert bounds_of(lambda count: count.parallelism(3, fixed=True), max_parallelism=8) == (3, 3)


class Queue(Pipe):
    """Knows its backlog, and states no rate."""

    name = "queue"


@pytest.mark.parametrize(
    ("backlogs", "read", "came"),
    [
        pytest.param((0, 0, 0), 300, 300, id="all is read"),
        pytest.param((0, 500, 1000), 300, 800, id="held back"),
        pytest.param((5000, 3000, 1000), 2500, 500, id="catching up"),
        pytest.param((0, None, None), 300, 300, id="not known any more"),
    ],
)
def test_demand_is_what_was_read_and_what_the_backlog_has_grown_by(backlogs, read, came):
    windows = [window("queue-0", read, read, 0.1, backlog=backlog) for backlog in backlogs]
    source = seen(*windows, plan=job(Queue(), parallelism=1)).operator("queue")
    assert source.source_rate == came
    assert source.queue_records == (backlogs[-1] or 0)
    assert source.backlog_growth == (came - read if backlogs[-1] is not None else None)


def test_a_source_that_states_its_rate_reports_the_growth_of_its_backlog_too():
    """Check a source whose backlog grows by 100 records a second although its stated rate suggests 300."""
    source = Queue()
    source.rate = 500
    windows = [window("queue-0", 200, 200, 0.1, backlog=backlog) for backlog in (0, 100, 200)]
    figures = seen(*windows, plan=job(source, parallelism=1)).operator("queue")
    assert (figures.source_rate, figures.backlog_growth) == (500, 100)


def test_time_without_a_cpu_is_summed_over_the_workers():
    count = seen(window("count-0", 10, 0, 0.5, starved=0.5), window("count-1", 10, 0, 0.5, starved=0.25)).operator("count")
    assert count.starvation == 0.75


def test_backlog_of_a_source_is_not_its_latency():
    source = seen(window("queue-0", 100, 100, 0.1, backlog=5000), plan=job(Queue(), parallelism=1)).operator("queue")
    assert (source.queue_records, source.latency_ms) == (5000, 0)
