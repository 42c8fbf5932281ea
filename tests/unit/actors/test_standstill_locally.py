"""Jobs in this process that stand still: the status says what they wait for, and they go on when it comes."""

from __future__ import annotations

import threading

import pytest
from patience import patience, until

import evenflow as ef
from evenflow.actors.task.saved_state import SavedState
from evenflow.connectors.python.list_sink import ListSink
from evenflow.scheduler.load.wait import WaitKind

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

ENOUGH = patience(30)
SOON = 0.05
"""Seconds without rows after which a job of these tests stands still."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    for name in (
        "load.standstill.LONG_SECONDS",
        "parts.waiting.LONG_SECONDS",
        "load.quiet_inputs.QUIET_SECONDS",
        "job.core.QUIET_CHECK_SECONDS",
    ):
        monkeypatch.setattr(f"evenflow.scheduler.{name}", SOON)
    monkeypatch.setattr("evenflow.actors.task.running_code.LONG_SECONDS", SOON)


class Gate:
    """A place in which a thread stands until the test opens it."""

    def __init__(self):
        self.reached, self.opened = threading.Event(), threading.Event()

    def pass_through(self):
        self.reached.set()
        self.opened.wait(ENOUGH)


class SlowCommit(ListSink):
    """A list whose commits stand in a gate."""

    def __init__(self, rows, gate):
        super().__init__(rows, "slow")
        self.gate = gate

    def commit(self, checkpoint, committables):
        self.gate.pass_through()
        return super().commit(checkpoint, committables)


def started(flow, **checkpoint):
    config = ef.JobConfig(metrics=ef.MetricsConfig(window="20ms"), checkpoint=ef.CheckpointConfig(**checkpoint))
    return flow.run(runtime="local", parallelism=1, config=config)


def waits(job, kind):
    return [wait for wait in job.status().waits_for if wait.kind is kind]


def test_job_whose_source_has_nothing_waits_for_input_and_goes_on_when_rows_come():
    more, rows = threading.Event(), []

    def read(partition, position):
        yield {"n": 1}, 1
        while not more.is_set():
            yield None
        yield {"n": 2}, 2

    flow = ef.Dataflow("idle")
    flow.read(ef.from_generator(read, name="numbers")).write(ef.to_list(rows))
    job = started(flow)
    try:
        (wait,) = until(lambda: waits(job, WaitKind.INPUT))
        assert (wait.operator, wait.worker) == ("numbers", "numbers-0")
    finally:
        more.set()
    job.wait("60s")
    assert (rows, job.status().waits_for) == ([{"n": 1}, {"n": 2}], ())


def test_function_that_does_not_return_is_named_while_the_status_is_asked():
    gate, rows = Gate(), []

    def classify(row):
        gate.pass_through()
        return row

    flow = ef.Dataflow("standing")
    flow.read(ef.from_items([{"n": 1}])).map(classify).named("classes").write(ef.to_list(rows))
    job = started(flow)
    try:
        assert gate.reached.wait(patience(60))
        (wait,) = until(lambda: waits(job, WaitKind.FUNCTION))
        assert wait.operator == "classes"
        assert wait.stack[0].startswith(f"classify ({__file__}:")
    finally:
        gate.opened.set()
    job.wait("60s")
    assert (rows, job.status().waits_for) == ([{"n": 1}], ())


def test_partition_that_holds_event_time_back_is_a_cause():
    done, rows = threading.Event(), []

    def read(partition, position):
        second = 0
        while not done.is_set():
            second += 1
            if partition == 0:
                yield {"k": 1, "ts": second * 1_000_000}, second
            yield None

    flow = ef.Dataflow("held")
    clicks = flow.read(ef.from_generator(read, partitions=2, event_time="ts", name="clicks"))
    clicks.key_by("k").window(ef.tumbling("1s")).aggregate(n=ef.count()).write(ef.to_list(rows))
    job = started(flow)
    try:
        (wait,) = until(lambda: waits(job, WaitKind.WATERMARK))
        assert (wait.operator, wait.worker, wait.split) == ("clicks", "clicks-0", "1")
    finally:
        done.set()
    job.wait("60s")
    assert rows


def test_commit_that_does_not_end_is_named_with_its_sink():
    gate, rows = Gate(), []
    flow = ef.Dataflow("committing")
    flow.read(ef.from_items([{"n": 1}])).write(SlowCommit(rows, gate))
    job = started(flow)
    try:
        (wait,) = until(lambda: waits(job, WaitKind.COMMIT))
        assert wait.operator == "slow"
    finally:
        gate.opened.set()
    job.wait("60s")
    assert rows == [{"n": 1}]


def test_checkpoint_whose_manifest_is_not_written_is_a_cause(tmp_path, monkeypatch):
    gate, rows, complete = Gate(), [], SavedState.complete

    def slow(saved, manifest):
        gate.pass_through()
        return complete(saved, manifest)

    monkeypatch.setattr(SavedState, "complete", slow)
    flow = ef.Dataflow("saving")
    flow.read(ef.from_items([{"k": 1}])).key_by("k").aggregate(n=ef.count()).write(ef.to_list(rows))
    job = started(flow, dir=tmp_path)
    try:
        (wait,) = until(lambda: waits(job, WaitKind.CHECKPOINT))
        assert "its manifest to be written" in wait.text
    finally:
        gate.opened.set()
    job.wait("60s")
    assert rows == [{"k": 1, "n": 1}]
