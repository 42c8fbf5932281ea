"""Broadcast streams that can't be: each is refused when the flow is written, or when it is planned, and says what to do."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.engine.plan.rescale import check_parallelism

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


class Passes(ef.KeyedFunction):
    def on_row(self, key, row, context):
        yield {"key": key, "rules": len(context.broadcast)}


def read(flow=None, **options):
    flow = flow or ef.Dataflow("wrong")
    return flow.read(ef.from_items([{"k": 1, "name": "a", "t": 0}], **options))


WRONG = {
    "no key": (
        lambda rows: rows.broadcast(),
        r'name the key columns, as in .broadcast\("name"\): each worker keeps the newest row of each',
    ),
    "no name": (lambda rows: rows.broadcast(7), r"broadcast\(7,\): name the key columns"),
    "unknown key": (lambda rows: rows.broadcast("id"), "operator `broadcast`: no key column `id`; there are: k, name, t"),
    "no expression": (
        lambda rows: rows.broadcast("name", delete="t"),
        r"broadcast\(delete='t'\): expected a condition, for example delete=ef",
    ),
    "no condition": (
        lambda rows: rows.broadcast("name", delete=ef.col("t")),
        "operator `broadcast`: delete=.*has the type int64, expected bool",
    ),
    "no such column": (lambda rows: rows.broadcast("name", delete=ef.col("gone")), "operator `broadcast`: delete=.*`gone`"),
    "no such version": (lambda rows: rows.broadcast("name", version="at"), "operator `broadcast`: version='at': no such column"),
    "no column as version": (lambda rows: rows.broadcast("name", version=7), r"broadcast\(version=7\): expected the name of a column"),
    "keyed stream": (
        lambda rows: rows.key_by("k").process(Passes(), rows.key_by("name")),
        r"expected a broadcast stream, for example rules.broadcast\('name'\); co_process takes a keyed one",
    ),
    "stream": (
        lambda rows: rows.key_by("k").process(Passes(), rows),
        r"expected a broadcast stream, for example rules.broadcast\('name'\)",
    ),
    "two flows": (
        lambda rows: rows.key_by("k").process(Passes(), read(ef.Dataflow("other")).broadcast("name")),
        "process of streams of two flows, `wrong` and `other`: read both in one flow",
    ),
    "aggregate": (
        lambda rows: rows.broadcast("name").aggregate(n=ef.count()),
        r".aggregate\(...\) can't follow .broadcast\(...\): call it before, and pass the broadcast stream to .process\(function, rules\)",
    ),
    "write": (lambda rows: rows.broadcast("name").write(ef.to_list([])), r".write\(...\) can't follow .broadcast"),
    "no keyed input": (
        lambda rows: rows.process(Passes(), rows.broadcast("name")),
        r".process\(...\) needs a keyed stream: call key_by first",
    ),
    "co_process": (lambda rows: rows.key_by("k").co_process(rows.broadcast("name"), Passes()), "co_process.*expected a keyed stream"),
    "updates without a version": (
        lambda rows: rows.key_by("k").aggregate(n=ef.count()).broadcast("k"),
        r"the rows are updates, which overtake one another when keys move.*name a column that rises with each update, as in .aggregate\(n=",
    ),
    "updates of other keys": (
        lambda rows: rows.key_by("k", "name").aggregate(n=ef.count()).broadcast("name"),
        "the rows are updates by k, name, so a key of other columns would keep rows that were replaced: broadcast them by k, name",
    ),
}


@pytest.mark.parametrize(("make", "problem"), WRONG.values(), ids=WRONG)
def test_wrong_broadcasts_are_refused_when_the_flow_is_written(make, problem):
    with pytest.raises(ef.FlowError, match=problem):
        make(read())


def test_broadcast_without_a_reader_is_refused():
    rows = read()
    rows.broadcast("name").named("rules")
    rows.write(ef.to_list([]))
    with pytest.raises(
        ef.FlowError, match=r"the broadcast stream `rules` has no reader: pass it to .process\(function, rules\), or remove it"
    ):
        rows.flow.plan()


def test_updates_are_broadcast_with_a_version():
    rows, out = read(), []
    counts = rows.key_by("k").aggregate(n=ef.count()).broadcast("k", version="n")
    rows.key_by("k").process(Passes(), counts).write(ef.to_list(out))
    rows.flow.run(runtime="local").wait()
    assert [row["key"] for row in out] == [1]


def test_broadcast_has_one_worker_whatever_happens():
    rows = read()
    rows.key_by("k").process(Passes(), rows.broadcast("name")).write(ef.to_list([]))
    plan = rows.flow.plan(config=ef.JobConfig(parallelism=3))
    stage = plan.stage_of("broadcast")
    assert (stage.parallelism, stage.can_be_scaled, plan.stage_of("process").parallelism) == (1, False, 3)
    with pytest.raises(
        ef.RequestError, match="operator `broadcast` can't have 2 workers: one puts the rows in the order that all workers get"
    ):
        check_parallelism(plan, stage, 2)


def test_rows_of_a_broadcast_without_one_say_what_to_call():
    rows = read()
    rows.key_by("k").process(Passes()).write(ef.to_list([]))
    with pytest.raises(ef.RecordError, match=r"context.broadcast needs a broadcast stream: call .process\(function, rules.broadcast"):
        rows.flow.run(runtime="local").wait()


def test_broadcast_rows_can_not_be_changed():
    class Writes(ef.KeyedFunction):
        def on_row(self, key, row, context):
            context.timer(context.time)

        def on_timer(self, key, time, context):
            context.broadcast["a"]["k"] = 2

    rows = read(event_time="t")
    rows.key_by("k").process(Writes(), rows.broadcast("name")).write(ef.to_list([]))
    with pytest.raises(ef.RecordError, match="does not support item assignment"):
        rows.flow.run(runtime="local").wait()


@pytest.mark.parametrize("timed", [True, False])
def test_the_plan_says_that_every_worker_gets_the_rows(timed):
    flow = ef.Dataflow("shown")
    rules = read(flow, event_time="t" if timed else None).broadcast("name", delete=ef.col("t") > 5).named("rules")
    read(flow, event_time="t").key_by("k").process(Passes(), rules).write(ef.to_list([]))
    text = flow.explain()
    waits = "" if timed else ", which it makes wait for no event time"
    assert f"to process to every worker{waits}, 1 x 1 workers" in text
    assert "newest row by name, deleted where" in text
    assert "Passes by k, with all rows by name" in text
    (exchange,) = next(task.exchanges for task in flow.plan().tasks if task.stage == "rules")
    assert exchange.untimed is not timed
