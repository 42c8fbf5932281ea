"""The fixed cost of a batch, and its effect on the rates of a worker that has little to do."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.scheduler.load.batch_costs import MOST, BatchCosts
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.dataflow.observed import observed
from evenflow.scheduler.policies.dataflow.scaled_stage import scaled_stages
from evenflow.scheduler.policies.ds2 import Ds2, Ds2Memory

SIZES = st.lists(st.integers(1, 1000), min_size=3, max_size=50)
SECONDS = st.floats(1e-6, 1.0)


def costs(sizes, cost):
    return sum((BatchCosts.of(rows, cost(rows)) for rows in sizes), BatchCosts())


@given(SIZES, SECONDS, SECONDS)
def test_the_fixed_cost_of_batches_is_found_exactly(sizes, fixed, each):
    found = costs(sizes, lambda rows: fixed + each * rows)
    mean = found.seconds / found.batches
    if len(set(sizes)) == 1:
        assert found.fixed == 0.0
    else:
        assert found.fixed <= min(fixed, MOST * mean) * (1 + 1e-3) + 1e-3 * mean
        assert found.fixed >= min(fixed, MOST * mean) * (1 - 1e-3) - 2e-2 * mean


@given(SIZES, SECONDS)
def test_batches_that_cost_what_their_rows_cost_have_no_fixed_cost(sizes, each):
    found = costs(sizes, lambda rows: each * rows)
    assert found.fixed <= 1e-6 * found.seconds


@pytest.mark.parametrize("seed", range(50))
def test_random_costs_show_no_fixed_cost(seed):
    drawn = random.Random(seed)
    found = costs([drawn.randint(1, 3) for _ in range(30)], lambda rows: rows * drawn.expovariate(1.0))
    assert found.fixed <= 0.3 * found.seconds / found.batches


@given(SIZES, SIZES, st.floats(0.1, 1.0))
def test_batches_add_up_and_parts_of_their_time_are_parts_of_what_they_cost(sizes, others, part):
    one, two = (costs(several, lambda rows: 0.25 + 0.5 * rows) for several in (sizes, others))
    both = costs([*sizes, *others], lambda rows: 0.25 + 0.5 * rows)
    assert one + two == pytest.approx(both)
    assert both.in_part(part).fixed == pytest.approx(part * both.fixed, rel=1e-3, abs=1e-3 * both.seconds / both.batches)


MEASURED = st.lists(st.tuples(st.integers(1, 1000), SECONDS), min_size=1, max_size=50)


@given(MEASURED, st.floats(0.1, 2000.0))
def test_a_batch_costs_at_least_its_share_by_rows_and_a_small_one_no_more_than_a_mean_one(measured, rows):
    found = sum((BatchCosts.of(*one) for one in measured), BatchCosts())
    share = found.seconds * rows / found.rows
    assert share * (1 - 1e-9) <= found.at_most(rows) <= max(share, found.seconds / found.batches) * (1 + 1e-9)


def test_a_few_large_batches_that_stall_do_not_make_small_ones_cost_less_than_nothing():
    """The line through batches of 10 and 200 rows in 0.3 ms and some of 1,000 rows in 0.2 s is below zero at 10 rows."""
    found = costs([10, 200] * 50 + [1000] * 5, lambda rows: 0.2 if rows == 1000 else 3e-4)
    assert found.at_most(10) == pytest.approx(found.seconds * 10 / found.rows)


@given(SIZES, SECONDS, SECONDS)
def test_the_mean_is_certain_when_all_batches_are_on_a_line(sizes, fixed, each):
    found = costs(sizes, lambda rows: fixed + each * rows)
    assert found.mean_at_least == pytest.approx(found.seconds / found.batches, rel=1e-3)


def plan(workers):
    flow = ef.Dataflow("f")
    keyed = flow.read(ef.generate(rate=2760)).parallelism(2, fixed=True).key_by("key")
    keyed.aggregate(n=ef.count()).named("count").write(ef.to_list([], name="out"))
    return flow.plan(config=ef.JobConfig(parallelism=workers, key_groups=64, combine=False))


def window(worker, sizes):
    """Return a second in which a worker took batches of these sizes. A record costs 1.23 ms, a batch another 1 ms."""
    found = costs(sizes, lambda rows: 0.001 + 0.00123 * rows)
    return WorkerWindow(worker, 0.0, 1.0, rows_in=found.rows, rows_out=found.rows, useful=found.seconds, costs=found)


def decided(*windows):
    """Return DS2's decision for these workers of an operator with 2,760 records a second."""
    sources = [WorkerWindow(f"generate-{index}", 0.0, 1.0, 1380, 1380, 0.1) for index in range(2)]
    seen = observed(scaled_stages(plan(len(windows))), {one.worker: [one] for one in (*windows, *sources)})
    return Ds2().decide(seen, Ds2Memory())[0].parallelism


def test_the_number_of_needed_workers_does_not_depend_on_the_present_number():
    """Check a need of 3.4 workers. Eight get batches of one to three rows, and one gets large ones."""
    small = [window(f"count-{index}", (1, 2, 1, 1, 3) * 43) for index in range(8)]
    large = window("count-0", (80, 100, 120, 100, 150))
    assert decided(*small) == decided(large) == {"count": 4}
    assert decided(*(replace(one, costs=BatchCosts()) for one in small)) == {"count": 6}, "by useful time alone"


def test_the_cost_of_batches_while_others_have_the_cpu_is_no_evidence():
    """Repeat a job of NexMark's q11 next to other programs: the need was 3.4, useful time alone gave 3.26, minus batches' costs
    2.59.
    """
    small = [window(f"count-{index}", (1, 2, 1, 1, 3) * 43) for index in range(8)]
    starved = [replace(one, starved=0.2) for one in small]
    assert decided(*starved) == decided(*(replace(one, costs=BatchCosts()) for one in small)) == {"count": 6}
    assert decided(*(replace(one, starved=0.1) for one in small)) == {"count": 4}


def test_a_worker_that_is_busy_all_the_time_can_do_what_it_does():
    busy = window("count-0", (1, 2, 1, 1, 3) * 43)
    rate = busy.rows_in / busy.useful
    for others in ({"length": busy.useful}, {"wait_credit": 1.0 - busy.useful}, {"starved": 1.0 - busy.useful}):
        seen = observed(scaled_stages(plan(1)), {"count-0": [replace(busy, **others)]})
        assert seen.operator("count").true_processing_rate == pytest.approx(rate)
    half_idle = replace(busy, length=busy.useful / 0.9)
    assert rate < observed(scaled_stages(plan(1)), {"count-0": [half_idle]}).operator("count").true_processing_rate < 1.4 * rate
