from __future__ import annotations

import gc
import weakref
from queue import SimpleQueue
from types import SimpleNamespace

import pytest

import evenflow as ef
from evenflow.actors.channels.security import Security
from evenflow.actors.processes.sent import received
from evenflow.actors.processes.worker import Worker
from evenflow.engine.errors import JobError
from evenflow.scheduler.load.window import WorkerWindow


def test_what_was_asked_for_an_attempt_that_is_over_is_refused_however_late_it_comes():
    flow = ef.Dataflow("late")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    (task,) = flow.plan().tasks
    worker = Worker("late", None, Security.generate("run"))
    worker.deploy(2, task, ef.JobConfig(), None, across_nodes=False)
    try:
        with pytest.raises(JobError, match="worker from_items-0: attempt 1 is over, attempt 2 has begun"):
            worker.deploy(1, task, ef.JobConfig(), None, across_nodes=False)
        with pytest.raises(JobError, match="attempt 1 is over"):
            worker.connect(1, {}, ())
        with pytest.raises(JobError, match="attempt 1 is over"):
            worker.start(1)
        worker.connect(2, {}, ())
        worker.deploy(3, task, ef.JobConfig(), None, across_nodes=False)
        with pytest.raises(JobError, match="attempt 2 is over, attempt 3 has begun"):
            worker.start(2)
    finally:
        assert worker._current.attempt == 3
        worker._current.end(1)


def coordinator(heard):
    """Hands what it is sent as a report to `heard`."""
    return SimpleNamespace(report=SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *call: heard(call))))


def test_a_worker_frees_the_state_of_an_attempt_before_it_begins_the_next():
    flow = ef.Dataflow("again")
    flow.read(ef.from_items([1])).key_by("item").stateful_map(lambda state, row: (row, None)).write(ef.to_list([]))
    task = flow.plan().tasks[1]
    worker = Worker("again", coordinator(lambda _: None), Security.generate("run"))
    for attempt in (1, 2):
        worker.deploy(attempt, task, ef.JobConfig(), None, across_nodes=False)
        worker.connect(attempt, {}, ())
        worker.start(attempt)
        if attempt == 1:
            state = weakref.ref(worker._current._metered.task.operators[0].state)
            assert state() is not None
    try:
        assert state() is None
    finally:
        worker._current.end(10)
        gc.unfreeze()


def test_a_report_is_bytes_for_ray_which_sends_what_lay_in_memory_along_with_anything_else():
    flow, calls = ef.Dataflow("telling"), SimpleQueue()
    flow.read(ef.from_items([1])).key_by("item").stateful_map(lambda state, row: (row, None)).write(ef.to_list([]))
    worker = Worker("telling", coordinator(calls.put), Security.generate("run"))
    worker.deploy(1, flow.plan().tasks[1], ef.JobConfig(metrics=ef.MetricsConfig(window="10ms")), None, across_nodes=False)
    worker.connect(1, {}, ())
    worker.start(1)
    try:
        call = calls.get(timeout=60)
        assert [type(argument) for argument in call] == [bytes]
        sender, attempt, number, report = received(*call)
        assert (sender, attempt, number) == ("stateful_map-0", 1, 0)
        assert isinstance(report, WorkerWindow)
    finally:
        worker._current.end(10)
        gc.unfreeze()
