"""Rescales to any number of workers of any stage, one after the other: each plan is consistent, and no channel's number is
reused.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.errors import RequestError
from evenflow.engine.plan.rescale import rescale
from evenflow.engine.protocol.routing import RoutingTable

KEY_GROUPS = 8


def one_operator():
    flow = ef.Dataflow("one")
    rows = flow.read(ef.from_items([1]))
    rows.key_by("item").aggregate(n=ef.count()).write(ef.to_list([]))
    return flow


def two_operators():
    flow = ef.Dataflow("two")
    counts = flow.read(ef.from_items([1])).key_by("item").aggregate(n=ef.count(), emit="final")
    counts.key_by("n").aggregate(keys=ef.count(), emit="final").write(ef.to_list([]))
    return flow


def branches():
    flow = ef.Dataflow("branches")
    left, right = flow.read(ef.from_items([1])).named("left"), flow.read(ef.from_items([2])).named("right").parallelism(2)
    both = left.union(right)
    both.map(lambda row: row).parallelism(1).write(ef.to_list([], name="rows"))
    both.key_by("item").stateful_map(lambda state, row: (1, row)).parallelism(2).write(ef.to_list([], name="mapped"))
    return flow


def unkeyed_widths():
    flow = ef.Dataflow("widths")
    rows = flow.read(ef.from_items([1])).map(lambda row: row).parallelism(3)
    rows.map(lambda row: row).parallelism(1).map(lambda row: row).parallelism(2).write(ef.to_list([]))
    return flow


FLOWS = (one_operator, two_operators, branches, unkeyed_widths)


def plan_of(make_flow, parallelism):
    return make_flow().plan(config=ef.JobConfig(parallelism=parallelism, key_groups=KEY_GROUPS))


def changed(plan, stage, workers):
    """Return the rescale of a stage whose keys have moved away from workers that leave."""
    tables = plan.tables
    if stage.is_keyed:
        tables[stage.name] = RoutingTable((tables[stage.name].groups % workers).astype(np.uint16))
    return rescale(plan, stage, workers, tables)


def check_fits(plan):
    """Check that tasks, channels and exchanges name each other, and that every worker has a number of its own."""
    stages = {stage.name: stage for stage in plan.stages}
    assert [task.name for task in plan.tasks] == [f"{stage.name}-{i}" for stage in plan.stages for i in range(stage.parallelism)]
    assert all(task.parallelism == stages[task.stage].parallelism for task in plan.tasks)
    channels = {channel.id: channel for channel in plan.channels}
    assert len(channels) == len(plan.channels)
    assert all(id_ < plan.next_channel for id_ in channels)
    for task in plan.tasks:
        check_channels(task, stages, plan, channels)
    assert len({task.number for task in plan.tasks}) == len(plan.tasks)
    assert all(task.number < plan.next_worker for task in plan.tasks)


def check_channels(task, stages, plan, channels):
    assert sorted(task.inputs) == sorted(c.id for c in plan.channels if c.receiver == task.name)
    assert task.inputs or stages[task.stage].is_source
    outputs = [id_ for exchange in task.exchanges for id_ in exchange.channels]
    assert sorted(outputs) == sorted(c.id for c in plan.channels if c.sender == task.name)
    for exchange, output in zip(task.exchanges, stages[task.stage].outputs, strict=True):
        receivers = [channels[id_].receiver for id_ in exchange.channels]
        assert exchange.target == output.target
        assert len(set(receivers)) == len(receivers) > 0
        if exchange.keys is None:
            assert {receiver.rpartition("-")[0] for receiver in receivers} == {exchange.target}
        else:
            assert receivers == [f"{exchange.target}-{i}" for i in range(stages[exchange.target].parallelism)], "by the worker's index"


@given(
    st.sampled_from(FLOWS),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6)), min_size=1, max_size=8),
)
def test_any_sequence_of_changes_of_any_stage_gives_plans_that_fit_together(make_flow, parallelism, changes):
    plan = plan_of(make_flow, parallelism)
    used, numbers = {channel.id for channel in plan.channels}, {task.name: task.number for task in plan.tasks}
    numbered = set(numbers.values())
    for which, workers in changes:
        stage = plan.stages[which % len(plan.stages)]
        change = changed(plan, stage, workers)
        check_fits(change.plan)
        before, after = {task.name for task in plan.tasks}, {task.name for task in change.plan.tasks}
        assert (set(change.joining), set(change.leaving)) == (after - before, before - after)
        assert (set(change.opened), set(change.closed)) == (
            set(change.plan.channels) - set(plan.channels), set(plan.channels) - set(change.plan.channels)
        )  # fmt: skip
        assert used.isdisjoint(channel.id for channel in change.opened)
        used |= {channel.id for channel in change.opened}
        now = {task.name: task.number for task in change.plan.tasks}
        assert {name: now[name] for name in now if name in numbers} == {name: number for name, number in numbers.items() if name in now}
        joined = {now[name] for name in change.joining}
        assert numbered.isdisjoint(joined)
        numbers, numbered = now, numbered | joined
        plan = change.plan


@given(st.sampled_from(FLOWS), st.integers(1, 4), st.integers(0, 5), st.integers(1, 6))
def test_workers_that_are_not_concerned_keep_their_tasks(make_flow, parallelism, which, workers):
    plan = plan_of(make_flow, parallelism)
    stage = plan.stages[which % len(plan.stages)]
    change = changed(plan, stage, workers)
    concerned = {end for channel in (*change.opened, *change.closed) for end in (channel.sender, channel.receiver)}
    now = {task.name: task for task in change.plan.tasks}
    for task in plan.with_tables(change.plan.tables).tasks:
        if task.name not in concerned:
            assert now[task.name] == replace(task, parallelism=now[task.name].parallelism)


def test_new_worker_gets_the_operators_table_and_owns_nothing_yet():
    plan = plan_of(two_operators, 2)
    change = rescale(plan, plan.stages[1], 3, plan.tables)
    assert change.joining == ("aggregate-2",)
    assert change.plan.tables["aggregate"] == plan.tables["aggregate"]


@pytest.mark.parametrize(
    ("stage", "workers", "words"),
    [
        pytest.param(0, 0, "operator `from_items` can't have 0 workers; the least is 1", id="none"),
        pytest.param(1, 9, "operator `aggregate` can't have 9 workers: it has 8 key groups", id="more than key groups"),
    ],
)
def test_impossible_number_is_refused(stage, workers, words):
    plan = plan_of(one_operator, 2)
    with pytest.raises(RequestError, match=words):
        rescale(plan, plan.stages[stage], workers, plan.tables)


def test_source_that_works_with_a_fixed_number_of_workers_is_left_with_it(monkeypatch):
    plan = plan_of(one_operator, 1)
    monkeypatch.setattr(plan.stages[0].chain[0].operator.source, "parallelism", 1)
    with pytest.raises(RequestError, match="operator `from_items` can't have 2 workers: its source or sink works with 1 only"):
        rescale(plan, plan.stages[0], 2, plan.tables)
