"""Hooks and metrics of users' functions: `open` with the metrics, `close`, and what is refused."""

from __future__ import annotations

import math

import pytest

import evenflow as ef
from evenflow.engine.errors import FlowError, RecordError
from evenflow.engine.functions.measures import MOST_NAMES, FunctionContext, Measured
from evenflow.engine.operators.processing.process import Process
from evenflow.engine.operators.rows.filter import Filter
from evenflow.engine.operators.rows.flat_map import FlatMap
from evenflow.engine.operators.rows.map import Map
from evenflow.engine.operators.rows.map_async import MapAsync

ROWS = [{"k": "a", "n": n} for n in range(4)]


class Hooks:
    """Notes its calls in the order in which they come."""

    def __init__(self):
        self.calls = ["made"]

    def open(self, context):
        self.context, self.seen = context, context.counter("seen")
        self.calls.append("opened")

    def note(self):
        self.calls.append("called")
        self.seen.add()

    def close(self):
        self.calls.append("closed")


class Mapped(Hooks):
    def __call__(self, row):
        self.note()
        return row


class Kept(Hooks):
    def __call__(self, row):
        self.note()
        return True


class Flat(Hooks):
    def __call__(self, row):
        self.note()
        yield row


class Awaited(Hooks):
    async def open(self, context):
        super().open(context)

    async def __call__(self, row):
        self.note()
        return row

    async def close(self):
        super().close()


class Keyed(Hooks, ef.KeyedFunction):
    def on_row(self, key, row, context):
        self.note()
        yield row


OPERATORS = {
    "map": (Map(Mapped), lambda instance: instance.function),
    "flat_map": (FlatMap(Flat), lambda instance: instance.function),
    "filter": (Filter(Kept), lambda instance: instance.predicate),
    "map_async": (MapAsync(Awaited), lambda instance: instance._loop._function),
    "process": (Process(("k",), Keyed()), lambda instance: instance.function),
}


@pytest.mark.parametrize(("operator", "object_of"), OPERATORS.values(), ids=OPERATORS)
def test_an_object_is_opened_before_its_first_call_and_closed_after_the_last(drive, operator, object_of):
    step = drive(operator)
    used = object_of(step.operator)
    assert used.calls == ["made", "opened"]
    assert (used.context.operator, used.context.index, used.context.parallelism) == ("step", 0, 1)
    step.process(ROWS)
    assert step.operator.measured() == (Measured("step", "seen", "counter", 4.0),)
    step.operator.close()
    assert used.calls == ["made", "opened", *["called"] * 4, "closed"]


def test_readings_of_each_kind():
    context = FunctionContext("step", 1, 2)
    rejected, cached, seconds = context.counter("rejected"), context.gauge("cached"), context.histogram("seconds", bounds=(1, 2.5))
    rejected.add()
    rejected.add(2.5)
    cached.set(7)
    cached.set(-1)
    for value in (0.5, 1, 1.5, 2.5, 3, math.inf):
        seconds.observe(value)
    first, second, third = context.measured()
    assert (first, second) == (Measured("step", "rejected", "counter", 3.5), Measured("step", "cached", "gauge", -1.0))
    assert (third.counts, third.buckets()) == ((2, 2, 2), [("1.0", 2), ("2.5", 4), ("+Inf", 6)])
    seconds.observe(math.nan)
    assert context.measured()[2].counts == (2, 2, 3)
    assert context.counter("rejected") is rejected
    assert context.histogram("seconds", bounds=(1, 2.5)) is seconds


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        (lambda c: c.counter("rejected").add(-1), "a counter only rises: add"),
        (lambda c: c.counter("rejected").add(math.nan), "a counter only rises: add"),
        (lambda c: c.counter("bad name"), "has letters, digits and `_`"),
        (lambda c: c.gauge(""), "has letters, digits and `_`"),
        (lambda c: c.gauge(5), "has letters, digits and `_`"),
        (lambda c: c.histogram("h", bounds=()), "bounds are 1 to 50 finite numbers that rise"),
        (lambda c: c.histogram("h", bounds=(1, 1)), "bounds are 1 to 50 finite numbers that rise"),
        (lambda c: c.histogram("h", bounds=(1, math.inf)), "bounds are 1 to 50 finite numbers that rise"),
        (lambda c: (c.histogram("h"), c.histogram("h", bounds=(1,))), "has the bounds .*; give the same"),
        (lambda c: (c.counter("x"), c.gauge("x")), "'x' is a counter already; give the gauge another name"),
        (lambda c: [c.counter(f"user_{n}") for n in range(MOST_NAMES + 1)], "at most 100 metrics"),
    ],
)
def test_wrong_use_is_refused(use, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        use(FunctionContext("step", 0, 1))


class Unopenable(Hooks, ef.KeyedFunction):
    def open(self, context):
        raise OSError("no server")

    def __call__(self, row):
        return row

    def on_row(self, key, row, context):
        yield row


class UnopenableAwaited(Awaited):
    async def open(self, context):
        raise OSError("no server")


@pytest.mark.parametrize("operator", [Map(Unopenable), Process(("k",), Unopenable()), MapAsync(UnopenableAwaited)])
def test_an_open_that_raises_names_the_operator(drive, operator):
    with pytest.raises(RecordError, match=r"operator `step`: Unopenable\w*\.open raised OSError: no server"):
        drive(operator)


class Door:
    def open(self):
        """Open the door."""

    def __call__(self, row):
        return row


class DoorOfKeys(ef.KeyedFunction):
    def open(self):
        """Open the door."""

    def on_row(self, key, row, context):
        yield row


class Hasty(Mapped):
    async def open(self, context):
        """Is never awaited."""


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda rows: rows.map(Door), r"map\(Door\): open: it takes \(self\), but is called with \(self, context\).*rename it"),
        (lambda rows: rows.key_by("k").process(DoorOfKeys()), r"DoorOfKeys: open: it takes \(self\), but is called with \(self, context\)"),
        (lambda rows: rows.map(Hasty), r"map\(Hasty\): open is an async method, which only map_async awaits"),
    ],
)
def test_a_method_open_that_is_something_else_is_refused_when_the_flow_is_written(build, problem):
    with pytest.raises(FlowError, match=problem):
        build(ef.Dataflow("f").read(ef.from_items(ROWS)))


class Priced:
    def open(self, context):
        self.rejected, self.sizes = context.counter("rejected"), context.histogram("price", bounds=(1, 2))

    def __call__(self, row):
        self.sizes.observe(row["n"])
        if row["n"] % 2:
            self.rejected.add()
        return row


def test_a_job_shows_the_metrics_of_its_functions_by_worker(waiting_for_jobs):
    flow = ef.Dataflow("priced")
    flow.read(ef.from_items(ROWS)).map(Priced).named("price").write(ef.to_list([]))
    job = flow.run(runtime="local", config=ef.JobConfig(metrics=ef.MetricsConfig(window="10ms"))).wait()
    (worker,) = job.metrics()
    rejected, price = worker.measured
    assert (rejected.operator, rejected.name, rejected.value) == ("price", "rejected", 2.0)
    assert (price.operator, price.value, price.counts) == ("price", 6.0, (2, 1, 1))
