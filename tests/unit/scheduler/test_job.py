"""The job's life: what it asks for after each event."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.engine.errors import JobError
from evenflow.engine.protocol.effects import Finished, Prepared
from evenflow.scheduler.job import JobCore
from evenflow.scheduler.job_effects import Commit, Ended, JobState, Tell
from evenflow.scheduler.job_settings import JobSettings
from evenflow.scheduler.messages import BeginCheckpoint, Shutdown, StopSource

WORKERS = ("from_items-0", "from_items-1", "aggregate-0", "aggregate-1")


def new_job(interval=None):
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).key_by("item").aggregate(n=ef.count()).write(ef.to_list([]))
    return JobCore(flow.plan(2), JobSettings(checkpoint_interval=interval))


def running_job(interval=None):
    job = new_job(interval)
    for worker in WORKERS:
        assert job.ready(worker, 0.0) == []
    assert job.state is JobState.RUNNING
    return job


def finished(*items):
    return Finished({"to_list": list(items)} if items else {})


def prepared(checkpoint, *items):
    return Prepared(checkpoint, {"to_list": list(items)} if items else {})


def commits(effects):
    return [(effect.checkpoint, effect.committables) for effect in effects if isinstance(effect, Commit)]


def told(effects, command):
    return sorted(effect.worker for effect in effects if isinstance(effect, Tell) and effect.command == command)


def test_job_runs_once_all_workers_have_started():
    job = new_job()
    for worker in WORKERS[:-1]:
        job.ready(worker, 0.0)
        assert job.state is JobState.STARTING
    job.ready(WORKERS[-1], 0.0)
    assert job.state is JobState.RUNNING


def test_job_has_finished_when_all_workers_have_and_commits_what_they_wrote_once():
    job = running_job()
    for worker in WORKERS[:-1]:
        assert job.report(worker, finished(f"rows of {worker}"), 1.0) == []
    effects = job.report(WORKERS[-1], finished("last rows"), 1.0)
    assert commits(effects) == [(1, {"to_list": [*(f"rows of {worker}" for worker in WORKERS[:-1]), "last rows"]})]
    assert told(effects, Shutdown()) == sorted(WORKERS)
    assert effects[-1] == Ended(JobState.FINISHED)
    assert isinstance(effects[0], Commit), "what was written is committed before anybody is told to leave"


def test_checkpoint_begins_at_the_sources_when_it_is_due():
    job = running_job(interval=10.0)
    assert job.tick(9.9) == []
    assert told(job.tick(10.0), BeginCheckpoint(1)) == ["from_items-0", "from_items-1"]


def test_only_one_checkpoint_is_under_way():
    job = running_job(interval=10.0)
    job.tick(10.0)
    assert job.tick(30.0) == []


def test_checkpoint_is_committed_when_the_last_worker_has_prepared_it():
    job = running_job(interval=10.0)
    job.tick(10.0)
    for worker in WORKERS[:-1]:
        assert job.report(worker, prepared(1), 11.0) == []
    assert commits(job.report(WORKERS[-1], prepared(1, "rows"), 12.0)) == [(1, {"to_list": ["rows"]})]
    assert job.checkpoints.completed == 1
    assert job.tick(21.9) == []
    assert told(job.tick(22.0), BeginCheckpoint(2)) == ["from_items-0", "from_items-1"]


def test_worker_that_has_finished_need_not_prepare():
    job = running_job(interval=10.0)
    job.report("from_items-0", finished(), 1.0)
    assert told(job.tick(10.0), BeginCheckpoint(1)) == ["from_items-1"]
    job.report("from_items-1", prepared(1), 11.0)
    job.report("aggregate-0", prepared(1), 11.0)
    assert commits(job.report("aggregate-1", finished("rows"), 11.0)) == [(1, {"to_list": ["rows"]})]


def test_rows_written_behind_a_checkpoint_are_not_committed_with_it():
    job = running_job(interval=10.0)
    job.tick(10.0)
    job.report("aggregate-0", prepared(1, "before"), 11.0)
    job.report("aggregate-0", finished("behind"), 11.0)
    for worker in WORKERS[:2]:
        job.report(worker, prepared(1), 12.0)
    assert commits(job.report("aggregate-1", prepared(1), 12.0)) == [(1, {"to_list": ["before"]})]
    for worker in WORKERS[:2]:
        job.report(worker, finished(), 13.0)
    assert commits(job.report("aggregate-1", finished(), 13.0)) == [(2, {"to_list": ["behind"]})]


def test_job_that_ends_with_a_checkpoint_under_way_commits_everything_at_the_end():
    job = running_job(interval=10.0)
    job.tick(10.0)
    job.report("aggregate-0", prepared(1, "before"), 11.0)
    job.report("aggregate-0", finished("behind"), 11.0)
    for worker in WORKERS[:2]:
        job.report(worker, finished(), 12.0)
    assert commits(job.report("aggregate-1", finished(), 12.0)) == [(2, {"to_list": ["before", "behind"]})]


def test_no_checkpoint_begins_without_a_source_that_runs():
    job = running_job(interval=10.0)
    for worker in WORKERS[:2]:
        job.report(worker, finished(), 1.0)
    assert job.tick(10.0) == []


def test_no_interval_means_no_checkpoints():
    assert running_job().tick(1e9) == []


def test_stop_ends_the_sources_that_still_read():
    job = running_job()
    job.report("from_items-0", finished(), 1.0)
    assert job.stop() == [Tell("from_items-1", StopSource())]
    assert job.state is JobState.STOPPING
    assert job.stop() == []


def test_stop_that_comes_before_all_have_started_is_kept_until_they_have():
    job = new_job()
    assert job.stop() == []
    for worker in WORKERS[:-1]:
        assert job.ready(worker, 0.0) == []
    assert told(job.ready(WORKERS[-1], 0.0), StopSource()) == ["from_items-0", "from_items-1"]
    assert job.state is JobState.STOPPING


def test_job_that_stops_begins_no_checkpoint_and_finishes():
    job = running_job(interval=10.0)
    job.stop()
    assert job.tick(99.0) == []
    effects = [effect for worker in WORKERS for effect in job.report(worker, finished(), 100.0)]
    assert effects[-1] == Ended(JobState.FINISHED)


def test_checkpoint_under_way_completes_while_the_job_stops():
    job = running_job(interval=10.0)
    job.tick(10.0)
    job.stop()
    effects = [effect for worker in WORKERS for effect in job.report(worker, prepared(1), 11.0)]
    assert commits(effects) == [(1, {})]


@pytest.mark.parametrize("make_job", [new_job, running_job])
def test_cancel_ends_the_job_at_once_without_a_commit(make_job):
    job = make_job()
    effects = job.cancel()
    assert told(effects, Shutdown()) == sorted(WORKERS)
    assert commits(effects) == []
    assert effects[-1] == Ended(JobState.CANCELLED)


def test_first_failure_stands():
    job = running_job()
    assert job.failed(JobError("first"))[-1] == Ended(JobState.FAILED)
    assert job.failed(JobError("second")) == []
    assert str(job.error) == "first"


def test_lost_worker_fails_the_job_by_name():
    job = running_job()
    assert job.lost("aggregate-0", "its process died")[-1] == Ended(JobState.FAILED)
    assert str(job.error) == "job `f`: worker aggregate-0, which runs aggregate, to_list, is gone: its process died"


@pytest.mark.parametrize("end", [lambda job: job.cancel(), lambda job: job.failed(JobError("no"))], ids=["cancelled", "failed"])
def test_nothing_changes_a_job_that_has_ended(end):
    job = running_job(interval=10.0)
    job.tick(10.0)
    end(job)
    state = job.state
    for worker in WORKERS:
        assert job.report(worker, prepared(1, "rows"), 11.0) == []
        assert job.report(worker, finished("rows"), 11.0) == []
    assert job.stop() == job.cancel() == job.tick(99.0) == job.lost(WORKERS[0], "left") == job.failed(JobError("late")) == []
    assert job.state is state


@pytest.mark.parametrize(
    ("state", "final"),
    [("starting", False), ("running", False), ("stopping", False), ("finished", True), ("failed", True), ("cancelled", True)],
)
def test_states_say_whether_they_are_final(state, final):
    assert JobState(state).final is final
