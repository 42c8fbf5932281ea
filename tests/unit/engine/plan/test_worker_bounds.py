"""Bounds of automatic scaling, from the flow to the plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.errors import FlowError
from evenflow.engine.plan.worker_bounds import UNBOUND, WorkerBounds
from evenflow.testing.settings import changed

bounds = st.tuples(st.none() | st.integers(1, 9), st.none() | st.integers(10, 20), st.booleans()).map(lambda some: WorkerBounds(*some))


def stages(change, **config):
    flow = ef.Dataflow("f")
    rows = flow.read(ef.generate())
    change(rows.key_by("key").aggregate(n=ef.count()).named("count")).write(ef.to_list([], name="out"))
    return {stage.name: stage for stage in flow.plan(config=changed(ef.JobConfig(combine=False), **config)).stages}


def test_operator_has_the_bounds_that_it_was_given_and_its_neighbours_none():
    plan = stages(lambda count: count.parallelism(2, between=(1, 4)))
    assert (plan["count"].parallelism, plan["count"].bounds) == (2, WorkerBounds(1, 4))
    assert plan["generate"].bounds is UNBOUND


def test_bounds_leave_the_jobs_parallelism_where_no_number_is_given():
    plan = stages(lambda count: count.parallelism(fixed=True), parallelism=3)
    assert (plan["count"].parallelism, plan["count"].bounds) == (3, WorkerBounds(fixed=True))


def test_chained_operators_keep_to_the_bounds_of_each():
    plan = stages(lambda count: count.parallelism(between=(1, 4)).map(dict).parallelism(between=(2, 9)))
    assert plan["count"].bounds == WorkerBounds(2, 4)


def test_chained_operators_without_a_number_in_common_are_refused():
    with pytest.raises(FlowError, match=r"`map` runs in the workers of `count`, and the bounds of both .*: .* at least 5 and at most 2"):
        stages(lambda count: count.parallelism(between=(1, 2)).map(dict).parallelism(between=(5, 9)))


@pytest.mark.parametrize("between", [(0, 1), (3, 2), (1,), 4, (1, 2.5), (True, 2), [1, 2]], ids=repr)
def test_bounds_that_allow_for_nothing_name_the_operator(between):
    with pytest.raises(FlowError, match=r"operator `count`: .*between="):
        stages(lambda count: count.parallelism(between=between))


@given(bounds, bounds)
def test_a_number_within_two_bounds_is_within_each(one, other):
    both = one.both(other)
    assert both == other.both(one)
    assert all(both.least >= each.least for each in (one, other) if each.least is not None)
    assert all(both.most <= each.most for each in (one, other) if each.most is not None)
    assert one.both(UNBOUND) == one
