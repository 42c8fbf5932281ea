"""A commit that takes long delays neither questions, reports, moves, rescales nor ticks; only the next checkpoint and the end
wait.
"""

from __future__ import annotations

import pytest
from acting_job import ActingJob
from job_script import LAST, ROWS, WORKERS, commits, manifests, recipients, saving_job

import evenflow as ef
from evenflow.engine.errors import JobError
from evenflow.engine.protocol.effects import Finished
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.protocol.effects import Commit, Ended, JobState, RestoreSinks
from evenflow.scheduler.protocol.messages import BeginCheckpoint, StopSource
from evenflow.scheduler.protocol.reports import CheckpointReport, MigrationReport, MigrationState, ScalingReport, ScalingState
from evenflow.scheduler.protocol.requests import (
    MoveKeys,
    Scale,
    ShowFigures,
    ShowHistory,
    ShowStatus,
    TakeCheckpoint,
    TakeSavepoint,
)
from evenflow.scheduler.protocol.storage_answers import Committed


class Job(ActingJob):
    """read (2 workers) -> count (2 workers, 4 key groups), whose sink's commits take until `commit` is called."""

    def __init__(self):
        flow = ef.Dataflow("f")
        rows = flow.read(ef.from_items(range(10), name="read"))
        rows.key_by("item").aggregate(n=ef.count()).named("count").write(ef.to_list([], name="out"))
        checkpoint = ef.CheckpointConfig("saved", interval=None)
        settings = ef.JobConfig(parallelism=2, key_groups=4, checkpoint=checkpoint, restart=ef.RestartConfig(delay=0))
        self.committing = []
        super().__init__(flow.plan(config=settings), settings)
        self.ask(TakeCheckpoint())
        self.tick()
        self.settle()
        assert [commit.checkpoint for commit in self.committing] == [1]

    def carry_out(self, effect):
        if isinstance(effect, Commit):
            self.committing.append(effect)
        else:
            super().carry_out(effect)

    def commit(self, error=None):
        commit = self.committing.pop(0)
        self.core.stored(Committed(commit.checkpoint, error=error), self.now)
        self.take()

    def pass_time(self):
        for _ in range(20):
            self.tick(0.1)
            self.settle()


@pytest.fixture
def job():
    return Job()


def test_the_job_is_shown_as_it_is(job):
    status = job.ask(ShowStatus())
    assert (status.state, status.completed_checkpoints) == (JobState.RUNNING, 1)
    assert [str(report.state) for report in job.ask(ShowHistory(CheckpointReport))] == ["committing"]
    job.report("count-0", WorkerWindow("count-0", 0.0, 1.0, rows_in=7))
    assert next(figures for figures in job.ask(ShowFigures()) if figures.worker == "count-0").rows_in == 7


def test_keys_move(job):
    job.ask(MoveKeys("count", (0, 1), (), 1, "fluid"))
    job.pass_time()
    (report,) = job.ask(ShowHistory(MigrationReport))
    assert (report.state, report.steps_done) == (MigrationState.DONE, 2)


@pytest.mark.parametrize(("operator", "workers"), [("count", 3), ("count", 1), ("read", 3), ("read", 1)])
def test_workers_join_and_leave(job, operator, workers):
    job.ask(Scale(operator, workers))
    job.pass_time()
    (report,) = job.ask(ShowHistory(ScalingReport))
    assert (report.state, report.problem) == (ScalingState.DONE, None)
    assert job.core.plan.stage_of(operator).parallelism == workers


def test_a_migration_by_restart_begins_its_checkpoint_behind_the_commit(job):
    job.ask(MoveKeys("count", (0, 1), (), 1, "restart"))
    job.pass_time()
    assert (job.core.checkpoints.last, job.core.attempt) == (1, 0)
    job.commit()
    job.settle()
    assert (job.core.checkpoints.last, job.core.attempt) == (2, 0), "nor does the job go back before its rows are committed"
    job.commit()
    job.settle()
    assert (job.core.attempt, job.ask(ShowHistory(MigrationReport))[0].state) == (1, MigrationState.DONE)


@pytest.mark.parametrize("request_", [TakeCheckpoint(), TakeSavepoint("folder")], ids=["checkpoint", "savepoint"])
def test_a_checkpoint_that_is_asked_for_begins_once_the_commit_is_carried_out(job, request_):
    assert job.ask(request_) == 2
    job.pass_time()
    assert (job.core.checkpoints.last, job.committing[1:]) == (1, [])
    job.commit()
    job.pass_time()
    assert [commit.checkpoint for commit in job.committing] == [2]


def test_a_worker_that_is_lost_takes_the_job_back_at_once(job):
    job.lost("count-0", "it was killed")
    assert job.core.state is JobState.RESTARTING
    job.settle()
    job.pass_time()
    assert (job.core.state, job.core.attempt) == (JobState.RUNNING, 1)


def test_a_stop_ends_the_sources_at_once():
    job = saving_job()
    job.tick(10.0)
    job.prepare(1)
    job.saved(1)
    assert recipients(job.stop(), StopSource()) == ["from_items-0", "from_items-1"]


def test_checkpoints_that_are_due_meanwhile_are_one_when_it_is_carried_out():
    job = saving_job()
    job.tick(10.0)
    job.prepare(1)
    job.saved(1)
    assert [job.tick(now) for now in (20.0, 30.0, 9_999.0)] == [[], [], []], "nor is it a checkpoint that takes too long"
    assert job.committed(1) == []
    assert recipients(job.tick(10_000.0), BeginCheckpoint(2, 1)) == ["from_items-0", "from_items-1"]


def test_the_last_records_wait_for_the_commit_before_theirs():
    job = saving_job()
    job.tick(10.0)
    job.prepare(1)
    assert commits(job.saved(1)) == [(1, {"to_list": ROWS})]
    assert job.finish(11.0) == job.tick(99.0) == []
    (manifest,) = manifests(job.committed(1))
    assert (manifest.checkpoint, manifest.committables) == (2, {"to_list": LAST})
    assert commits(job.saved(2)) == [(2, {"to_list": LAST})]
    assert job.tick(999.0) == []
    assert job.core.state is JobState.RUNNING, "it has finished when its last commit is acknowledged"
    assert job.committed(2)[-1] == Ended(JobState.FINISHED)


def test_the_end_of_a_job_that_saves_nothing_waits_for_both_commits():
    job = saving_job(checkpoint={"dir": None})
    job.tick(10.0)
    job.prepare(1)
    for worker in WORKERS:
        assert job.report(worker, Finished({"to_list": [worker]})) == []
    assert commits(job.committed(1)) == [(2, {"to_list": list(WORKERS)})]
    assert job.committed(2)[-1] == Ended(JobState.FINISHED)


def test_a_commit_that_fails_while_the_last_records_wait_takes_the_job_back():
    job = saving_job()
    job.tick(10.0)
    (manifest,) = manifests(job.prepare(1))
    job.saved(1)
    job.finish(11.0)
    assert job.committed(1, JobError("the table is locked")) == []
    assert job.tick(12.0) == [RestoreSinks(1, manifest, None)]
