"""The call that a thread is in: its time, its operator, and the frames that a user knows."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from time import monotonic

import pytest
from patience import patience

import evenflow as ef
from evenflow.actors.task.running_code import FRAMES, RunningCode
from evenflow.engine.functions.running_call import RunningCall
from evenflow.engine.operators.rows.map_async import MapAsyncInstance

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

ENOUGH = patience(30)


@contextmanager
def standing(function):
    """Run `function` in another thread; it gets a call to stand in until the test is over."""
    code, inside, leave = RunningCode(), threading.Event(), threading.Event()

    def wait_here():
        inside.set()
        leave.wait(ENOUGH)

    def run():
        code.begin()
        function(wait_here)
        code.end()

    thread = threading.Thread(target=run)
    thread.start()
    assert inside.wait(ENOUGH)
    try:
        yield code
    finally:
        leave.set()
        thread.join(ENOUGH)
    assert code.long_call(0.0) is None


def names(call):
    return [frame.partition(" (")[0].rpartition(".")[2] for frame in call.stack]


def test_thread_in_a_short_call_is_not_reported():
    with standing(lambda wait: wait()) as code:
        assert code.long_call(at_least=1_000_000.0) is None


def test_stack_of_the_thread_has_functions_files_and_lines():
    def outer(wait):
        inner(wait)

    def inner(wait):
        wait()

    with standing(outer) as code:
        call = code.long_call(at_least=0.0)
    assert {"outer", "inner", "wait_here"} <= set(names(call))
    assert all(frame.rpartition(":")[2].rstrip(")").isdigit() for frame in call.stack)
    assert any(frame.startswith(f"inner ({__file__}:") for frame in call.stack)


def test_deep_stack_keeps_its_first_frame_and_the_innermost_ones():
    def deep(wait, depth=100):
        if depth:
            deep(wait, depth - 1)
        else:
            wait()

    with standing(deep) as code:
        call = code.long_call(at_least=0.0)
    assert len(call.stack) == FRAMES


class Standing:
    """Functions of users that stand until the test is over. `inside`: one of them does."""

    def __init__(self):
        self.inside, self.leave = threading.Event(), threading.Event()

    def stand(self):
        self.inside.set()
        self.leave.wait(ENOUGH)

    def function(self, row):
        self.stand()
        return row

    def folded(self, state, row):
        self.stand()
        return 1, row

    async def blocking(self, row):
        self.stand()
        return row

    async def awaiting(self, row):
        await self.answer()
        return row

    async def answer(self):
        while not self.leave.is_set():
            self.inside.set()
            await asyncio.sleep(0.01)

    def generated(self, partition, position):
        self.stand()
        yield {"k": 1}, 1


class SlowTimer(ef.KeyedFunction):
    def __init__(self, standing):
        self.standing = standing

    def on_row(self, key, row, context):
        context.timer(context.time)

    def on_timer(self, key, time, context):
        self.standing.stand()
        return ()


def items(flow):
    return flow.read(ef.from_items([{"k": 1, "ts": 0}], event_time="ts", unit="s")).map(lambda row: row).named("before")


FLOWS = {
    "Standing.function": lambda flow, standing: items(flow).map(standing.function).named("slow"),
    "Standing.folded": lambda flow, standing: items(flow).key_by("k").stateful_map(standing.folded).named("slow"),
    "SlowTimer.on_timer": lambda flow, standing: items(flow).key_by("k").process(SlowTimer(standing)).named("slow"),
    "Standing.blocking": lambda flow, standing: items(flow).map_async(standing.blocking).named("slow"),
    "Standing.awaiting": lambda flow, standing: items(flow).map_async(standing.awaiting).named("slow"),
    "Standing.generated": lambda flow, standing: flow.read(ef.from_generator(standing.generated, name="slow")),
}


INSIDE = {"Standing.awaiting": "Standing.answer"}
"""The second frames of the functions that don't stand in a call."""


@pytest.mark.parametrize("function", FLOWS)
def test_operator_in_whose_function_a_task_stands_is_named_and_its_stack_begins_there(function, monkeypatch):
    monkeypatch.setattr("evenflow.actors.task.running_code.LONG_SECONDS", 0.0)
    flow, standing = ef.Dataflow("standing"), Standing()
    FLOWS[function](flow, standing).map(lambda row: row).named("behind").write(ef.to_list([]))
    job = flow.run(runtime="local")
    try:
        assert standing.inside.wait(ENOUGH)
        (wait, *_) = job.status().waits_for
    finally:
        standing.leave.set()
    job.wait("60s")
    assert (wait.kind.value, wait.operator) == ("function", "slow")
    assert [frame.partition(" (")[0] for frame in wait.stack[:2]] == [function, INSIDE.get(function, "Standing.stand")]
    assert f"({__file__}:" in wait.stack[0]


def test_batch_of_many_short_calls_is_long_but_none_of_them_is_named(monkeypatch):
    monkeypatch.setattr("evenflow.actors.task.running_code.LONG_SECONDS", 0.0)
    monkeypatch.setattr(MapAsyncInstance, "present_call", lambda _instance: RunningCall(monotonic() + 1_000.0, None))
    flow, standing = ef.Dataflow("standing"), Standing()
    FLOWS["Standing.awaiting"](flow, standing).write(ef.to_list([]))
    job = flow.run(runtime="local")
    try:
        assert standing.inside.wait(ENOUGH)
        (wait, *_) = job.status().waits_for
    finally:
        standing.leave.set()
    job.wait("60s")
    assert (wait.operator, wait.stack) == ("slow", ())
