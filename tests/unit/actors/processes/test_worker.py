from __future__ import annotations

import gc
import threading
import time
import weakref
from queue import SimpleQueue
from types import SimpleNamespace

import pytest
from patience import patience

import evenflow as ef
from evenflow.actors.channels.security import Security
from evenflow.actors.channels.transport import Transport
from evenflow.actors.processes.packed_call import unpack_call
from evenflow.actors.processes.worker import Service, Worker
from evenflow.engine.errors import JobError
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.protocol.messages import LAST_ELEMENTS_SECONDS, Shutdown

SETTINGS = ef.JobConfig().of_run("job")


def serving(job, coordinator, token="token"):
    worker = Worker(job)
    worker.serve(Service(token, job, coordinator, Security.generate("run")))
    return worker


def test_requests_of_an_attempt_that_is_over_are_refused_however_late_they_arrive():
    flow = ef.Dataflow("late")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    (task,) = flow.plan().tasks
    worker = serving("late", None)
    worker.deploy("token", 2, task, SETTINGS, None, across_nodes=False)
    try:
        with pytest.raises(JobError, match="worker from_items-0: attempt 1 is over, attempt 2 has begun"):
            worker.deploy("token", 1, task, SETTINGS, None, across_nodes=False)
        with pytest.raises(JobError, match="attempt 1 is over"):
            worker.connect("token", 1, {}, ())
        with pytest.raises(JobError, match="attempt 1 is over"):
            worker.start("token", 1)
        worker.connect("token", 2, {}, ())
        worker.deploy("token", 3, task, SETTINGS, None, across_nodes=False)
        with pytest.raises(JobError, match="attempt 2 is over, attempt 3 has begun"):
            worker.start("token", 2)
    finally:
        assert worker._current.attempt == 3
        worker._current.end(1)


def test_halted_worker_has_no_run_to_end_when_the_next_attempt_is_deployed():
    flow = ef.Dataflow("halted")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    (task,) = flow.plan().tasks
    worker = serving("halted", None)
    worker.deploy("token", 1, task, SETTINGS, None, across_nodes=False)
    run = worker._current
    worker.halt("another", 2)
    worker.halt("token", 1)
    assert worker._current is run, "only its own coordinator ends a run, and only that of an earlier attempt"
    worker.halt("token", 2)
    assert worker._current is None
    with pytest.raises(JobError, match="attempt 1 is over, attempt 2 has begun"):
        worker.deploy("token", 1, task, SETTINGS, None, across_nodes=False)
    worker.deploy("token", 2, task, SETTINGS, None, across_nodes=False)
    run = worker._current
    worker.halt("token", 2)
    assert worker._current is run, "a halt that arrives late ends nothing"
    worker.rest()


def test_worker_whose_run_does_not_end_takes_no_other_though_it_was_halted_before():
    flow = ef.Dataflow("stuck")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    (task,) = flow.plan().tasks
    worker = serving("stuck", None)
    worker.deploy("token", 1, task, SETTINGS, None, across_nodes=False)
    run = worker._current
    end, run.end = run.end, lambda patience: False
    with pytest.raises(JobError, match="worker from_items-0: attempt 1 did not end within"):
        worker.halt("token", 2)
    with pytest.raises(JobError, match="a run of a finished attempt is still active"):
        worker.deploy("token", 2, task, SETTINGS, None, across_nodes=False)
    end(1)


def test_requests_of_a_replaced_coordinator_are_refused_and_its_run_is_over():
    flow = ef.Dataflow("served")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    (task,) = flow.plan().tasks
    worker = serving("served", None, token="first")
    worker.deploy("first", 5, task, SETTINGS, None, across_nodes=False)
    run = worker._current
    worker.serve(Service("second", "other", None, Security.generate("run")))
    assert run.end(0), "it has ended"
    worker.join("first")
    with pytest.raises(JobError, match="job `other`: this process no longer works for the calling coordinator"):
        worker.deploy("first", 6, task, SETTINGS, None, across_nodes=False)
    with pytest.raises(JobError, match="no longer works"):
        worker.connect("first", 5, {}, ())
    with pytest.raises(JobError, match="no longer works"):
        worker.start("first", 5)
    worker.deploy("second", 0, task, SETTINGS, None, across_nodes=False)
    run = worker._current
    run.command = pytest.fail
    worker.command("first", 0, 0, Shutdown())
    worker.rest()
    worker.join("second")
    assert worker._current is None


@pytest.mark.parametrize(("others_go_on", "lingers"), [(False, 0.0), (True, LAST_ELEMENTS_SECONDS)])
def test_last_elements_of_a_worker_that_leaves_a_job_have_time_to_arrive(others_go_on, lingers, monkeypatch):
    lingered, flushed = SimpleQueue(), []
    close = Transport.close
    monkeypatch.setattr(Transport, "flush", lambda _transport, seconds: flushed.append(seconds))
    monkeypatch.setattr(Transport, "close", lambda transport, linger: (lingered.put(linger), close(transport, linger)))
    flow = ef.Dataflow("leaves")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    (task,) = flow.plan().tasks
    worker = serving("leaves", coordinator(lambda _: None))
    worker.deploy("token", 0, task, SETTINGS, None, across_nodes=False)
    worker.connect("token", 0, {}, ())
    worker.start("token", 0)
    worker.command("token", 0, 0, Shutdown(others_go_on))
    assert lingered.get(timeout=patience(60)) == lingers
    assert flushed == ([LAST_ELEMENTS_SECONDS] if others_go_on else [])
    worker.join("token")
    worker.rest()


def test_call_that_arrives_before_the_worker_knows_its_job_waits():
    flow = ef.Dataflow("early")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    (task,) = flow.plan().tasks
    worker, answers = Worker("early"), SimpleQueue()
    caller = threading.Thread(target=lambda: answers.put(worker.deploy("token", 0, task, SETTINGS, None, across_nodes=False)), daemon=True)
    caller.start()
    assert answers.empty()
    worker.serve(Service("token", "early", None, Security.generate("run")))
    assert answers.get(timeout=patience(60)) == worker._current.address
    worker.rest()


def coordinator(messages):
    """Return a coordinator that adds received reports to `messages`."""
    return SimpleNamespace(report=SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *call: messages(call))))


def opened(run):
    """Wait until the task of a run has opened its operators, and return them."""
    deadline = time.monotonic() + patience(60)
    while not (operators := run._task.task.operators):
        assert time.monotonic() < deadline, "the task has not opened its operators"
        threading.Event().wait(0.001)
    return operators


def test_a_worker_frees_the_state_of_an_attempt_before_it_begins_the_next():
    flow = ef.Dataflow("again")
    flow.read(ef.from_items([1])).key_by("item").stateful_map(lambda state, row: (row, None)).write(ef.to_list([]))
    task = flow.plan().tasks[1]
    worker = serving("again", coordinator(lambda _: None))
    for attempt in (1, 2):
        worker.deploy("token", attempt, task, SETTINGS, None, across_nodes=False)
        worker.connect("token", attempt, {}, ())
        worker.start("token", attempt)
        if attempt == 1:
            state = weakref.ref(opened(worker._current)[0].state)
            assert state() is not None
    try:
        assert state() is None
    finally:
        worker._current.end(10)
        gc.unfreeze()


def test_a_report_is_bytes_because_ray_sends_uncleared_memory_with_other_values():
    flow, calls = ef.Dataflow("telling"), SimpleQueue()
    flow.read(ef.from_items([1])).key_by("item").stateful_map(lambda state, row: (row, None)).write(ef.to_list([]))
    worker = serving("telling", coordinator(calls.put))
    settings = ef.JobConfig(metrics=ef.MetricsConfig(window="10ms")).of_run("telling")
    worker.deploy("token", 1, flow.plan().tasks[1], settings, None, across_nodes=False)
    worker.connect("token", 1, {}, ())
    worker.start("token", 1)
    try:
        call = calls.get(timeout=patience(60))
        assert [type(argument) for argument in call] == [bytes]
        sender, attempt, number, report = unpack_call(*call)
        assert (sender, attempt, number) == ("stateful_map-0", 1, 0)
        assert isinstance(report, WorkerWindow)
    finally:
        worker._current.end(10)
        gc.unfreeze()
