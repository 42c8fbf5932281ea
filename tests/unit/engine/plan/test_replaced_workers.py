from __future__ import annotations

from dataclasses import replace

import pytest

import evenflow as ef
from evenflow.engine.plan.recoded import codes_of, recoded
from evenflow.engine.plan.rescale import NewCode, replaced, rescale
from evenflow.engine.protocol.ids import CodeVersion

SECOND = CodeVersion(2)


@pytest.fixture
def plan():
    flow = ef.Dataflow("shop")
    flow.read(ef.from_items([{"k": 1}])).parallelism(2).key_by("k").aggregate(n=ef.count()).named("count").write(ef.to_list([]))
    return flow.plan(parallelism=2)


def new_code(plan, stage):
    chain = tuple(plan.stage_of(stage).chain)
    return NewCode(SECOND, chain, identities={chained.name: plan.identities[chained.name] for chained in chain})


def wiring(plan):
    """Return the channels by the indexes of their ends, and what each task knows of them."""
    index = {task.name: (task.stage, task.index) for task in plan.tasks}
    ends = {c.id: (index[c.sender], index[c.receiver]) for c in plan.channels}
    tasks = {
        index[task.name]: (
            [[ends[id_] for id_ in exchange.channels] for exchange in task.exchanges],
            [ends[id_] for id_ in task.inputs],
        )
        for task in plan.tasks
    }
    return sorted(ends.values()), tasks


@pytest.mark.parametrize(("stage", "indexes"), [("count", [0]), ("count", [1]), ("count", [0, 1]), ("from_items", [0, 1])])
def test_replaced_worker_has_a_new_channel_for_each_old_one(plan, stage, indexes):
    change = replaced(plan, plan.stage_of(stage), indexes, plan.tables, new_code(plan, stage))
    assert wiring(change.plan) == wiring(plan)
    assert change.joining == tuple(f"{stage}-{index}v2" for index in indexes)
    assert change.leaving == tuple(f"{stage}-{index}" for index in indexes)
    assert {c.id for c in change.opened}.isdisjoint(c.id for c in plan.channels)
    assert {c.id for c in change.closed} == {c.id for c in plan.channels if {c.sender, c.receiver} & set(change.leaving)}
    assert change.plan.next_channel == plan.next_channel + len(change.opened)
    assert set(change.replaces) == {c.id for c in change.opened}


def test_worker_that_takes_the_place_of_another_has_a_number_of_its_own(plan):
    change = replaced(plan, plan.stage_of("count"), [1], plan.tables, new_code(plan, "count"))
    before, after = ({task.name: task.number for task in each.tasks} for each in (plan, change.plan))
    assert after.pop("count-1v2") == plan.next_worker
    assert after == {name: number for name, number in before.items() if name != "count-1"}
    assert change.plan.next_worker == plan.next_worker + 1


def test_only_replaced_workers_get_the_new_code(plan):
    operator = replace(plan.stage_of("count").chain[0], name="count")
    code = NewCode(SECOND, (operator, *plan.stage_of("count").chain[1:]), {"env_vars": {"A": "1"}})
    after = replaced(plan, plan.stage_of("count"), [1], plan.tables, code).plan
    tasks = {task.name: task for task in after.tasks}
    assert tasks["count-1v2"].chain[0] is operator
    assert tasks["count-1v2"].environment == {"env_vars": {"A": "1"}}
    assert tasks["count-0"].environment is None
    assert after.stage_of("count").workers == ("count-0", "count-1v2")


def test_worker_that_joins_a_stage_of_mixed_code_gets_that_of_the_first_or_what_is_given(plan):
    after = replaced(plan, plan.stage_of("count"), [0], plan.tables, new_code(plan, "count")).plan
    assert rescale(after, after.stage_of("count"), 3, after.tables).joining == ("count-2v2",)
    third = NewCode(CodeVersion(3), tuple(plan.stage_of("count").chain))
    grown = rescale(after, after.stage_of("count"), 3, after.tables, third).plan
    assert grown.stage_of("count").workers == ("count-0v2", "count-1", "count-2v3")
    assert rescale(grown, grown.stage_of("count"), 1, grown.tables).plan.stage_of("count").workers == ("count-0v2",)


def test_recoded_plan_is_the_same_but_for_code_and_names(plan):
    code = new_code(plan, "count")
    after = recoded(plan, {"count": code})
    assert wiring(after) == wiring(plan)
    assert after.stage_of("count").workers == ("count-0v2", "count-1v2")
    assert after.stage_of("from_items").workers == plan.stage_of("from_items").workers
    assert codes_of(after) == {"count": code}
    assert codes_of(plan) == {}
