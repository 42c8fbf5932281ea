"""The interpreter of a job: the port and the order of each effect, and the reports that count."""

from __future__ import annotations

import threading

import pytest
from patience import patience

import evenflow as ef
from evenflow.actors.job.job_interpreter import JobInterpreter
from evenflow.engine.errors import ClusterError, JobError, RequestError
from evenflow.engine.protocol.effects import Finished
from evenflow.scheduler.job.core import JobCore
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.nodes.placement import ClusterView, WorkerPlace
from evenflow.scheduler.protocol.effects import (
    AskForRoom,
    Commit,
    CopySavepoint,
    Deploy,
    Discard,
    Ended,
    FindOlder,
    JobState,
    RememberStart,
    Reserve,
    RestoreSinks,
    Retire,
    Save,
    Spawn,
    Tell,
    UseNodes,
)
from evenflow.scheduler.protocol.messages import BeginCheckpoint, Failed
from evenflow.scheduler.protocol.reports import MigrationReport
from evenflow.scheduler.protocol.requests import Cancel, Scale, ShowHistory, ShowStatus, Stop
from evenflow.scheduler.protocol.storage_answers import Committed, SinksRestored
from evenflow.testing.settings import changed

PATIENCE = patience(30)


class Ports:
    """Both ports of an interpreter: `calls` are the calls in order. `then`: an action during calls of a kind."""

    def __init__(self, **config):
        flow = ef.Dataflow("f")
        flow.read(ef.from_items([1])).write(ef.to_list([], name="out"))
        settings = changed(ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(interval=None)), **config)
        self.plan, self.calls, self.then, self.looks, self.now = flow.plan(config=settings), [], {}, [], 100.0
        self.core = JobCore(self.plan, settings)
        self.job = JobInterpreter(self.core, self, self, lambda: self.now)
        self.workers = self.core.workers

    def start(self):
        self.job.begin()
        self.job.stored(SinksRestored(0))
        for worker in self.workers:
            self.job.ready(worker, 0)
        assert self.core.state is JobState.RUNNING
        self.calls.clear()
        return self

    def _called(self, what, *arguments):
        self.calls.append((what, *arguments))
        self.then.pop(what, lambda: None)()

    def tell(self, worker, command):
        self._called("tell", worker, command)

    def deploy(self, wanted):
        self._called("deploy", wanted)

    def spawn(self, wanted):
        self._called("spawn", wanted)

    def retire(self, workers):
        self._called("retire", workers)

    def use_nodes(self, avoid, prefer):
        self._called("use nodes", avoid, prefer)

    def reserve(self, workers, *, hurry):
        self._called("reserve", workers, hurry)

    def ask_for_room(self, workers):
        self._called("ask for room", workers)

    def put(self, effect):
        self._called("put", effect)

    def long_calls(self):
        return {}

    def view(self, *, oldest):
        self.looks.append(oldest)
        return ClusterView(places={worker: WorkerPlace(worker, "a") for worker in self.workers})


@pytest.fixture
def ports():
    return Ports()


def test_a_job_begins_at_its_storage_and_goes_on_at_its_workers(ports):
    ports.job.begin()
    assert ports.calls == [("put", RestoreSinks(0, None))]
    ports.job.stored(SinksRestored(0))
    assert ports.calls[1:] == [("deploy", Deploy(0, ports.core.plan, None))]
    for worker in ports.workers:
        ports.job.ready(worker, 0)
    assert ports.calls[2:] == [("put", RememberStart(100.0))]


def test_an_observer_sees_every_state_however_short(tmp_path):
    ports, seen = Ports(checkpoint={"dir": tmp_path, "interval": "1h"}), []
    ports.job.observe(lambda state, now: seen.append((state, now)))
    ports.start()
    ports.now = 101.0
    worker = ports.workers[0]
    ports.job.lost(worker, "it was killed")
    ports.now = 102.0
    ports.job.tick()
    ports.job.stored(SinksRestored(1))
    for each in ports.workers:
        ports.job.ready(each, 1)
    ports.job.ask(Cancel())
    states = [JobState.STARTING, JobState.RUNNING, JobState.RESTARTING, JobState.RUNNING, JobState.CANCELLED]
    assert [state for state, _ in seen] == states
    assert [now for _, now in seen] == [100.0, 100.0, 101.0, 102.0, 102.0]


@pytest.mark.parametrize(
    ("effect", "call"),
    [
        (Tell("from_items-0", BeginCheckpoint(1)), ("tell", "from_items-0", BeginCheckpoint(1))),
        (Retire(("from_items-0",)), ("retire", ("from_items-0",))),
        (UseNodes(frozenset("a"), frozenset("b")), ("use nodes", frozenset("a"), frozenset("b"))),
        (Reserve(("out-0",)), ("reserve", ("out-0",), True)),
        (AskForRoom(3), ("ask for room", 3)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_effects_for_workers_become_calls_with_plain_values(ports, effect, call):
    ports.core.record.emit(effect)
    ports.job.tick()
    assert ports.calls == [call]


@pytest.mark.parametrize(
    "effect",
    [
        Save(None), Commit(1, {}), RestoreSinks(1, None), FindOlder(1, "gone"), Discard(1), CopySavepoint("folder", None),
        RememberStart(1.0),
    ],
    ids=lambda effect: type(effect).__name__,
)  # fmt: skip
def test_effects_for_storage_are_passed_on_unchanged(ports, effect):
    ports.core.record.emit(effect)
    ports.job.tick()
    ((what, put),) = ports.calls
    assert (what, put) == ("put", effect)


def test_the_end_of_a_job_reaches_its_workers_and_shows_in_its_state(ports):
    ports.start().job.ask(Cancel())
    assert [call[:2] for call in ports.calls] == [("tell", worker) for worker in ports.workers]
    assert ports.core.state is JobState.CANCELLED
    ports.core.record.emit(Ended(JobState.CANCELLED))
    ports.job.tick()
    assert len(ports.calls) == len(ports.workers)


def test_effects_that_a_port_causes_follow_those_decided_before(ports):
    ports.start()
    ports.then["tell"] = lambda: ports.job.ask(Cancel())
    ports.job.ask(Stop(drain=True))
    assert [type(call[-1]).__name__ for call in ports.calls] == ["RememberStop"] + ["StopSource"] * 2 + ["Shutdown"] * len(ports.workers)


def test_workers_that_start_while_they_are_deployed_are_ready(ports):
    ports.then["deploy"] = lambda: [ports.job.ready(worker, 0) for worker in ports.workers]
    ports.job.begin()
    ports.job.stored(SinksRestored(0))
    assert ports.core.state is JobState.RUNNING


def test_storage_may_answer_at_once(ports):
    ports.then["put"] = lambda: ports.job.stored(SinksRestored(0))
    ports.job.begin()
    assert [call[0] for call in ports.calls] == ["put", "deploy"]


def test_reports_of_an_attempt_that_is_over_are_dropped(ports):
    ports.start()
    ports.job.report(ports.workers[0], -1, Failed(JobError("too late")))
    assert ports.core.state is JobState.RUNNING
    ports.job.report(ports.workers[0], 0, Failed(JobError("in time")))
    assert str(ports.core.error) == "in time"


def test_windows_of_workers_are_recorded_and_have_no_effect(ports):
    ports.start()
    ports.job.report("from_items-0", 0, WorkerWindow("from_items-0", 0.0, 1.0, rows_in=5))
    assert ports.core.record.metrics.newest("from_items-0").rows_in == 5
    assert ports.calls == []


def test_deployments_that_fail_are_reported(ports):
    ports.job.begin()
    ports.job.stored(SinksRestored(0))
    ports.job.not_deployed(0, JobError("no room"))
    assert (ports.core.state, str(ports.core.error)) == (JobState.FAILED, "no room")


def test_workers_that_do_not_start_are_reported(ports):
    ports.start().job.ask(Scale("out", 3))
    ((what, spawn),) = ports.calls
    assert (what, type(spawn), spawn.workers) == ("spawn", Spawn, ("from_items-2",))
    ports.job.not_spawned(spawn.workers, 0, "no room")
    assert ports.calls[1:] == [("retire", spawn.workers)]


def test_a_refused_reservation_is_reported_to_the_job(ports):
    told = []
    ports.core.not_reserved = lambda problem, now: told.append((problem, now))

    def refuse():
        raise ClusterError("no room for 2 workers")

    ports.then["reserve"] = refuse
    ports.core.record.emit(Reserve(("from_items-0",)), Retire(("from_items-0",)))
    ports.job.tick()
    assert told == [("no room for 2 workers", 100.0)]
    assert [call[0] for call in ports.calls] == ["reserve", "retire"]


def test_a_request_that_is_refused_leaves_nothing_undone(ports):
    ports.start()
    with pytest.raises(RequestError, match="has no operator `oot`"):
        ports.job.ask(Scale("oot", 3))
    assert ports.calls == []
    ports.job.ask(Cancel())
    assert ports.calls


def test_the_cluster_is_read_again_for_changes(ports):
    ports.start()
    ports.looks.clear()
    ports.job.ask(ShowStatus())
    ports.job.ask(ShowHistory(MigrationReport))
    assert ports.looks == []
    ports.job.tick()
    ports.job.ask(Stop(drain=True))
    assert ports.looks[1:] == [0.0]


@pytest.mark.parametrize(("autoscale", "age"), [({"mode": "act"}, 1.0), ({}, 10.0), ({"interval": "30s"}, 30.0), ({"policy": "off"}, None)])
def test_a_tick_looks_at_the_nodes_as_often_as_the_autoscaler_needs(autoscale, age):
    ports = Ports(autoscale=autoscale).start()
    ports.looks.clear()
    ports.job.tick()
    assert ports.looks == [age]


def test_events_of_several_threads_come_one_after_the_other(ports):
    ports.start()
    inside, may_go_on = threading.Event(), threading.Event()

    def block():
        inside.set()
        assert may_go_on.wait(PATIENCE)

    ports.then["tell"] = block
    stopping = threading.Thread(target=ports.job.ask, args=(Stop(drain=True),))
    stopping.start()
    assert inside.wait(PATIENCE)
    asked, answers = threading.Event(), []

    def ask():
        asked.set()
        answers.append(ports.job.ask(ShowStatus()).state)

    asking = threading.Thread(target=ask)
    asking.start()
    assert asked.wait(PATIENCE)
    assert answers == [], "the effects of the event before are not carried out yet"
    may_go_on.set()
    for thread in (stopping, asking):
        thread.join(PATIENCE)
    assert answers == [JobState.STOPPING]
    assert [call[0] for call in ports.calls] == ["put", "tell", "tell"]


def test_a_job_is_over_once_its_last_commit_is_answered(ports):
    ports.start()
    for worker in ports.workers:
        ports.job.report(worker, 0, Finished({}))
    assert ports.calls == [("put", Commit(1, {}, last=True))]
    assert ports.core.state is JobState.RUNNING
    ports.job.stored(Committed(1))
    assert ports.core.state is JobState.FINISHED
