"""A scaling of a job whose workers are fakes: its steps, their order, and what becomes of it when one of them fails."""

from __future__ import annotations

import numpy as np
import pytest

import evenflow as ef
from evenflow.actors.elastic import ScalingState
from evenflow.actors.supervisor import Supervisor
from evenflow.engine.errors import JobError, RequestError
from evenflow.engine.protocol.effects import Finished, Rewound, Switched
from evenflow.engine.protocol.handover import Arrived
from evenflow.scheduler.job_effects import Retire, Spawn
from evenflow.scheduler.messages import (
    Announce,
    Announced,
    Attach,
    Attached,
    Detach,
    ExpectRewind,
    PauseSource,
    SourcePaused,
    Switch,
    TakeSource,
)
from evenflow.scheduler.newest import KEPT
from evenflow.scheduler.window import WorkerWindow

LOADS = {0: 0.1, 1: 0.8, 2: 0.3, 3: 0.3}


class Job:
    """A supervisor of read (2 workers) -> count (2 workers, 8 key groups); `told` are its commands, `staff` who joined and left."""

    def __init__(self):
        flow = ef.Dataflow("f")
        rows = flow.read(ef.from_items(range(10), name="read"))
        rows.key_by("item").aggregate(n=ef.count()).named("count").write(ef.to_list([], name="out"))
        settings = ef.JobConfig(parallelism=2, key_groups=8)
        self.told, self.staff = [], []
        plan = flow.plan(config=settings)
        self.source = plan.stage_of("read").chain[0].operator.source
        self.supervisor = Supervisor(plan, settings, lambda worker, command: self.told.append((worker, command)), self.staff.append)
        for task in plan.tasks:
            self.supervisor.ready(task.name, 0)

    @property
    def core(self):
        return self.supervisor.core

    @property
    def report(self):
        return self.supervisor.scalings()[-1]

    @property
    def owners(self):
        return self.core.migrations.tables["count"].groups.tolist()

    def load(self, worker, loads):
        groups = np.array(sorted(loads), np.int32)
        useful = np.array([loads[group] for group in groups.tolist()])
        self.supervisor.report(f"count-{worker}", WorkerWindow(f"count-{worker}", 0.0, 1.0, groups=groups, load=useful, keyed_records=10))

    def start_newcomers(self):
        for change in self.staff:
            if isinstance(change, Spawn):
                for name in change.workers:
                    self.supervisor.ready(name, 0)

    def go_on(self):
        """Everybody does at once what they are told, until the scaling waits for nobody."""
        self.start_newcomers()
        while self.told or self.supervisor.elastic.busy:
            while self.told:
                self.answer(*self.told.pop(0))
            before = self.report.state, self.report.seconds
            self.supervisor.tick()
            self.start_newcomers()
            if not self.told and (self.report.state, self.report.seconds) == before:
                break

    def answer(self, worker, command):
        report = self.supervisor.report
        if isinstance(command, (Announce, Switch)):
            self.answer_to_move(worker, command)
        elif isinstance(command, (Attach, Detach, ExpectRewind)):
            report(worker, Attached(command.token))
            if isinstance(command, Detach) and command.outputs and worker == "read-0":
                for name in self.core.rescaling.rescale.leaving:
                    report(name, Finished({}))
        elif isinstance(command, PauseSource):
            report(worker, SourcePaused(command.token, self.source.reader(int(worker[-1]), 2).position()))
        elif isinstance(command, TakeSource):
            self.answer_to_share(worker, command)

    def answer_to_move(self, worker, command):
        report = self.supervisor.report
        if isinstance(command, Announce):
            self.steps = {step.version: step for step in command.steps}
            report(worker, Announced(command.number))
            return
        if worker == "read-0":
            for move in self.steps[command.version].moves:
                report(f"count-{move.target}", Arrived(command.version, move.source, 1, 10))
        report(worker, Switched(command.version))

    def answer_to_share(self, worker, share):
        if worker == "read-0":
            for name in self.core.rescaling.rewinding.copy():
                self.supervisor.report(name, Rewound())
        if share.position is None:
            self.supervisor.report(worker, Finished({}))


@pytest.fixture
def job():
    return Job()


def test_more_workers_join_first_and_get_the_heat_then(job):
    job.load(0, LOADS)
    job.load(1, {4: 0.1})
    assert job.supervisor.scale("count", 3, None) == 0
    assert job.report.state is ScalingState.CHANGING
    job.go_on()
    report = job.report
    assert (report.state, report.before, report.after, report.problem) == (ScalingState.DONE, 2, 3, None)
    assert job.core.plan.stage_of("count").parallelism == 3
    assert 2 in [job.owners[group] for group in LOADS], "a group of the hottest worker"
    assert (report.keys_moved, report.state_bytes) != (0, 0)
    assert report.seconds is not None


def test_without_any_load_newcomers_get_as_many_groups_as_the_others(job):
    job.supervisor.scale("count", 4, "sudden")
    job.go_on()
    assert np.bincount(job.owners).tolist() == [2, 2, 2, 2]
    assert job.supervisor.migrations()[-1].strategy == "sudden"


def test_fewer_workers_lose_their_keys_first_and_leave_then(job):
    job.supervisor.scale("count", 1, None)
    assert job.report.state is ScalingState.EMPTYING
    assert not any(isinstance(change, Retire) for change in job.staff)
    job.go_on()
    assert job.report.state is ScalingState.DONE
    assert set(job.owners) == {0}
    assert [change.workers for change in job.staff if isinstance(change, Retire)] == [("count-1",)]
    assert {figures.worker for figures in job.supervisor.figures()} >= {"count-0", "read-0", "read-1"}


@pytest.mark.parametrize("workers", [1, 3])
def test_a_source_changes_its_workers_and_no_key_moves(job, workers):
    job.supervisor.scale("read", workers, None)
    job.go_on()
    assert job.report.state is ScalingState.DONE
    assert job.core.plan.stage_of("read").parallelism == workers
    assert job.supervisor.migrations() == []


def test_operator_may_be_named_by_any_in_its_chain(job):
    job.supervisor.scale("out", 3, None)
    job.go_on()
    assert (job.report.operator, job.report.state) == ("count", ScalingState.DONE)


def test_the_number_that_there_is_needs_nothing(job):
    job.supervisor.scale("count", 2, None)
    assert job.report.state is ScalingState.DONE
    assert job.told == job.staff == []


def test_workers_that_do_not_start_leave_the_job_as_it_was_and_the_report_says_why(job):
    job.supervisor.scale("count", 3, None)
    job.supervisor.not_spawned("count-2 did not start within 60s")
    job.supervisor.tick()
    assert (job.report.state, job.report.problem) == (ScalingState.FAILED, "count-2 did not start within 60s")
    assert job.core.plan.stage_of("count").parallelism == 2
    assert [change.workers for change in job.staff if isinstance(change, Retire)] == [("count-2",)]
    job.staff.clear()
    job.supervisor.scale("count", 4, None)
    job.go_on()
    assert job.report.state is ScalingState.DONE


def test_keys_that_come_back_meanwhile_keep_their_worker_in_the_job(job, monkeypatch):
    job.supervisor.scale("count", 1, None)
    end = job.core.migrations.tables.copy()
    while job.told:
        job.answer(*job.told.pop(0))
    job.core.migrations.tables.update(end)
    job.supervisor.tick()
    assert (job.report.state, job.report.problem) == (ScalingState.FAILED, "keys came to workers that were to leave")
    assert job.core.plan.stage_of("count").parallelism == 2


def test_a_loss_while_workers_join_ends_the_scaling_and_says_so(job):
    job.supervisor.scale("count", 3, None)
    job.supervisor.cancel()
    job.supervisor.tick()
    assert job.report.state is ScalingState.FAILED
    assert job.report.problem == "the stream ended before"


@pytest.mark.parametrize(
    ("operator", "workers", "words"),
    [
        pytest.param("cuont", 3, "has no operator `cuont`; there are: .*count", id="unknown operator"),
        pytest.param("count", 0, "`count` can't have 0 workers; the least is 1", id="none"),
        pytest.param("count", 9, "`count` can't have 9 workers: it has 8 key groups", id="too many"),
    ],
)
def test_wrong_request_is_refused_and_changes_nothing(job, operator, workers, words):
    with pytest.raises(RequestError, match=words):
        job.supervisor.scale(operator, workers, None)
    assert job.supervisor.scalings() == []
    assert job.told == []


def test_one_scaling_at_a_time(job):
    job.supervisor.scale("count", 3, None)
    with pytest.raises(JobError, match=r"job `f`: scaling 0 is under way \(changing workers\)"):
        job.supervisor.scale("read", 3, None)
    with pytest.raises(JobError, match="rescale 0 of `count` is under way"):
        job.supervisor.migrate("count", [0], [], 1, None)
    assert len(job.supervisor.scalings()) == 1


def test_nothing_joins_while_keys_move(job):
    job.supervisor.migrate("count", [0], [], 1, None)
    with pytest.raises(JobError, match="migration 0 of `count` is under way"):
        job.supervisor.scale("count", 3, None)
    assert job.supervisor.scalings() == []


def test_a_job_that_has_ended_is_not_scaled(job):
    job.supervisor.cancel()
    with pytest.raises(JobError, match="job `f` is cancelled: workers can only join or leave while it runs"):
        job.supervisor.scale("count", 3, None)


def test_a_job_remembers_the_newest_of_its_scalings_and_what_they_moved(job):
    for number in range(KEPT + 10):
        assert job.supervisor.scale("count", 3 - number % 2, "sudden") == number
        job.go_on()
    reports = job.supervisor.scalings()
    assert [report.number for report in reports] == list(range(10, KEPT + 10))
    assert all(report.state is ScalingState.DONE and report.keys_moved for report in reports)
    assert len(list(job.core.rescales)) == KEPT
