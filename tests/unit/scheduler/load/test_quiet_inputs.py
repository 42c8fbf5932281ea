"""Inputs that give nothing and hold event time back are named, unless the stream is slow as a whole."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.engine.source import SplitFigures
from evenflow.scheduler.load.quiet_inputs import QuietInputs
from evenflow.scheduler.load.window import WorkerWindow

SECOND = 1_000_000


def generate(partition, position):
    yield None


def plan(*, joined=False):
    """Return the plan of a windowed count of `clicks`, or of a join of `clicks` with `orders`."""
    flow = ef.Dataflow("f")
    clicks, orders = (flow.read(ef.from_generator(generate, partitions=2, event_time="ts", name=name)) for name in ("clicks", "orders"))
    if joined:
        clicks.key_by("k").join(orders.key_by("k"), ef.tumbling("1m")).named("both").write(ef.to_list([], name="pairs"))
    else:
        clicks.key_by("k").window(ef.tumbling("1m")).aggregate(n=ef.count()).named("counts").write(ef.to_list([], name="out"))
        orders.key_by("k").window(ef.tumbling("1m")).aggregate(n=ef.count()).named("others").write(ef.to_list([], name="out2"))
    return flow.plan(config=ef.JobConfig(parallelism=1))


def after(windows, plan, *, seconds=15, finished=()):
    """Return the problems after that many seconds, and all that were reported; `windows(second)`: the windows of one."""
    quiet, said = QuietInputs(), []
    for second in range(seconds):
        for window in windows(second):
            quiet.add(window)
        said += quiet.find(plan, finished, second + 1.0)
    return quiet.problems, said


def window(second, worker="clicks-0", *splits, **figures):
    return WorkerWindow(worker, float(second), 1.0, splits=splits, **figures)


def goes_on(second, split="0"):
    return SplitFigures(split, newest=second * SECOND)


def test_partition_that_gives_nothing_is_named_and_said_once():
    problems, said = after(lambda second: [window(second, "clicks-0", goes_on(second), SplitFigures("1"))], plan())
    text = (
        "partition 1 of source `clicks` (worker clicks-0) has given no row for 14 s and holds event time back: windows and timers of "
        "`counts` wait for it, while other inputs advance; idle_after= lets a quiet partition count as idle"
    )
    assert problems == (text,)
    assert len(said) == 1


def test_side_of_a_join_that_gives_nothing_is_named():
    def windows(second):
        return [window(second, rows_in=5, watermark=second * SECOND), window(second, "orders-0")]

    (problem,), _ = after(windows, plan(joined=True))
    assert "source `orders` (worker orders-0) has given no row for 14 s" in problem
    assert "`both`" in problem


@pytest.mark.parametrize(
    ("windows", "joined"),
    [
        pytest.param(lambda second: [window(second, "clicks-0", SplitFigures("0"), SplitFigures("1"))], False, id="all are quiet"),
        pytest.param(
            lambda second: [window(second, "clicks-0", goes_on(second // 12 * 12), goes_on(second // 11 * 11, "1"))],
            False,
            id="all are slow",
        ),
        pytest.param(
            lambda second: [window(second, "clicks-0", goes_on(second), SplitFigures("1", idle=True))], False, id="it counts as idle"
        ),
        pytest.param(
            lambda second: [window(second, "clicks-0", goes_on(second), SplitFigures("1", lag=7))], False, id="it has rows to read"
        ),
        pytest.param(
            lambda second: [window(second, "clicks-0", goes_on(second), SplitFigures("1"), wait_credit=0.9)], False, id="backpressure"
        ),
        pytest.param(
            lambda second: [window(second, rows_in=5, watermark=second * SECOND), window(second, "orders-0")], False, id="nothing meets it"
        ),
        pytest.param(
            lambda second: [window(second, "clicks-0", SplitFigures("0", newest=5), SplitFigures("1", newest=second))],
            False,
            id="no time apart",
        ),
    ],
)
def test_no_input_is_named_if(windows, joined):
    assert after(windows, plan(joined=joined)) == ((), [])


def test_input_that_goes_on_again_or_has_ended_is_no_longer_named():
    def quiet_at_first(second):
        return [window(second, "clicks-0", goes_on(second), SplitFigures("1") if second < 12 else goes_on(second, "1"))]

    problems, said = after(quiet_at_first, plan())
    assert (problems, len(said)) == ((), 1)

    def windows(second):
        return [window(second, rows_in=5, watermark=second * SECOND), window(second, "orders-0")]

    assert after(windows, plan(joined=True), finished=["orders-0"]) == ((), [])
