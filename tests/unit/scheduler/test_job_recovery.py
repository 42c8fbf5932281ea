"""What a job that saves its state asks for: manifests before commits, new attempts after failures, restarts as migrations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import evenflow as ef
from evenflow.balancer.strategies import plan_steps
from evenflow.engine.errors import JobError, RecordError
from evenflow.engine.protocol.effects import Finished, Prepared
from evenflow.engine.protocol.handover_step import HandoverStep
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.scheduler.checkpoints import CheckpointState
from evenflow.scheduler.job import JobCore
from evenflow.scheduler.job_effects import Commit, Discard, Ended, JobState, Redeploy, Save, Tell
from evenflow.scheduler.job_settings import JobSettings
from evenflow.scheduler.manifest import TaskEntry
from evenflow.scheduler.messages import BeginCheckpoint, CheckpointFailed
from evenflow.scheduler.migration import MigrationState
from evenflow.scheduler.restarts import RestartSettings
from evenflow.state.files import StateFile

WORKERS = ("from_items-0", "from_items-1", "aggregate-0", "aggregate-1")
LOST = JobError("worker aggregate-0 is gone")


def running_job(restored=None, **settings):
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).key_by("item").aggregate(n=ef.count()).write(ef.to_list([]))
    plan = flow.plan(config=ef.JobConfig(parallelism=2, key_groups=4))
    options = {"checkpoint_interval": 10.0, "save_state": True, "restarts": RestartSettings("fixed", 1.0, 2)} | settings
    job = JobCore(plan, JobSettings(**options), restored)
    return start(job)


def start(job, now=0.0):
    for worker in WORKERS:
        job.ready(worker, now)
    assert job.state is JobState.RUNNING
    return job


def file_of(worker, checkpoint=1):
    return StateFile(f"{worker}.state", 7, "aa", 3)


def prepare(job, checkpoint, now=11.0, workers=WORKERS):
    reports = [(w, Prepared(checkpoint, {"to_list": [f"rows of {w}"]}, 5, None, (file_of(w),))) for w in workers]
    return [effect for worker, report in reports for effect in job.report(worker, report, now)]


def take_checkpoint(job, now=10.0):
    """Begun, prepared by all, saved; returns its manifest and what was asked for then."""
    begun = [effect.command.checkpoint for effect in job.tick(now) if isinstance(effect, Tell)]
    number = begun[0]
    (save,) = prepare(job, number, now)
    return save.manifest, job.saved(number, None, now)


def kinds(effects):
    return [type(effect) for effect in effects]


def test_nothing_is_committed_before_the_manifest_is_written():
    job = running_job()
    job.tick(10.0)
    assert prepare(job, 1, workers=WORKERS[:-1]) == []
    (save,) = prepare(job, 1, workers=WORKERS[-1:])
    assert isinstance(save, Save)
    assert (save.manifest.checkpoint, save.manifest.attempt, len(save.manifest.files)) == (1, 0, 4)
    (commit,) = job.saved(1, None, 11.5)
    assert commit == Commit(1, {"to_list": [f"rows of {worker}" for worker in WORKERS]})
    (report,) = job.checkpoints.reports(12.0)
    assert (report.state, report.seconds, report.state_bytes, report.keys) == (CheckpointState.COMPLETE, 1.5, 28, 12)


@pytest.mark.parametrize("where", ["in a worker", "in the manifest"])
def test_checkpoint_that_can_not_be_saved_is_given_up_and_its_rows_go_with_the_next(where):
    job = running_job()
    job.tick(10.0)
    prepare(job, 1, workers=WORKERS[:-1])
    if where == "in a worker":
        rows = {"to_list": [f"rows of {WORKERS[-1]}"]}
        assert job.report(WORKERS[-1], CheckpointFailed(1, "OSError: the disk is full", rows), 11.0) == [
            Discard(1, "aggregate-1: OSError: the disk is full")
        ]
    else:
        prepare(job, 1, workers=WORKERS[-1:])
        assert job.saved(1, "OSError: the disk is full", 11.0) == [Discard(1, "OSError: the disk is full")]
    (report,) = job.checkpoints.reports(12.0)
    assert report.state is CheckpointState.FAILED
    assert "the disk is full" in (report.problem or "")
    manifest, (commit,) = take_checkpoint(job, 21.0)
    assert commit.checkpoint == manifest.checkpoint == 2
    assert sorted(commit.committables["to_list"]) == sorted([f"rows of {worker}" for worker in WORKERS] * 2)


def test_too_many_failed_checkpoints_in_a_row_end_the_job():
    job = running_job(tolerable_failures=1)
    for number, now in ((1, 10.0), (2, 20.0)):
        job.tick(now)
        effects = prepare(job, number, now) and job.saved(number, "OSError: read-only", now)
    assert kinds(effects)[-1] is Ended
    assert str(job.error) == "job `f`: 2 checkpoints in a row have failed; the last, 2: OSError: read-only"


def test_complete_checkpoint_makes_failures_count_anew():
    job = running_job(tolerable_failures=1)
    for now, problem in ((10.0, "full"), (20.0, None), (30.0, "full")):
        job.tick(now)
        number = job.checkpoints.last
        prepare(job, number, now)
        job.saved(number, problem, now)
    assert job.state is JobState.RUNNING


def test_checkpoint_that_takes_too_long_is_given_up_when_it_has_passed_all():
    job = running_job(checkpoint_timeout=5.0)
    job.tick(10.0)
    prepare(job, 1, 11.0, WORKERS[:-1])
    assert job.tick(16.0) == []
    assert job.checkpoints.pending is not None, "barriers are still under way: no other may begin"
    prepare(job, 1, 17.0, WORKERS[-1:])
    assert job.checkpoints.reports(17.0)[-1].problem == (
        "it took longer than 5 s (CheckpointConfig(timeout=...) sets the bound), for aggregate-1"
    )


def test_checkpoint_that_is_pending_says_for_whom():
    job = running_job()
    job.tick(10.0)
    prepare(job, 1, 11.0, WORKERS[:-2])
    (report,) = job.checkpoints.reports(12.0, job.workers)
    assert (report.problem, report.waits_for) == (None, ("aggregate-0", "aggregate-1"))
    assert str(report) == "checkpoint 1 pending: waits for aggregate-0, aggregate-1"
    prepare(job, 1, 12.0, WORKERS[-2:])
    assert job.checkpoints.reports(13.0, job.workers)[0].waits_for == ()


def test_checkpoint_that_never_passes_a_worker_takes_the_job_back():
    job = running_job(checkpoint_timeout=5.0)
    first, _ = take_checkpoint(job)
    job.tick(20.0)
    prepare(job, 2, 21.0, WORKERS[:-1])
    assert [job.tick(now) for now in (25.1, 29.9)] == [[], []]
    discard, redeploy = job.tick(30.1)
    assert discard == Discard(2, "the job went back to its last checkpoint")
    assert redeploy.manifest is first
    assert job.restarts.first_cause is not None
    assert "checkpoint 2 has not passed aggregate-1 within 10 s" in str(job.restarts.first_cause)
    job = running_job(checkpoint_timeout=5.0, save_state=False)
    job.tick(10.0)
    assert kinds(job.tick(20.1))[-1] is Ended
    assert "checkpoint 1 has not passed from_items-0, from_items-1, aggregate-0, aggregate-1 within 10 s" in str(job.error)


def test_manifest_that_is_being_written_has_passed_everybody():
    job = running_job(checkpoint_timeout=5.0)
    job.tick(10.0)
    prepare(job, 1, 11.0)
    assert job.tick(100.0) == []
    assert kinds(job.saved(1, None, 101.0)) == [Commit]


def test_lost_worker_takes_the_job_back_to_its_newest_checkpoint():
    job = running_job()
    manifest, _ = take_checkpoint(job)
    job.tick(20.0)
    prepare(job, 2, 21.0, WORKERS[:2])
    discard, redeploy = job.lost("aggregate-0", "killed", 21.0)
    assert discard == Discard(2, "the job went back to its last checkpoint")
    assert isinstance(redeploy, Redeploy)
    assert (redeploy.attempt, redeploy.manifest, redeploy.delay) == (1, manifest, 1.0)
    assert redeploy.commit == Commit(1, manifest.committables), "nobody knows whether it was carried out"
    assert job.state is JobState.RESTARTING
    assert [report.state for report in job.checkpoints.reports(21.0)] == [CheckpointState.COMPLETE, CheckpointState.FAILED]
    start(job, 22.0)
    manifest, (commit,) = take_checkpoint(job, 32.0)
    assert (manifest.checkpoint, manifest.attempt) == (3, 1), "numbers rise over all attempts"
    assert commit.committables == {"to_list": [f"rows of {worker}" for worker in WORKERS]}, "what was not committed is read again"


def test_job_without_a_checkpoint_begins_from_nothing():
    (redeploy,) = running_job().lost("aggregate-0", "killed", 1.0)
    assert (redeploy.manifest, redeploy.commit) == (None, None)


def test_restarts_are_given_up_with_the_first_cause_and_a_note_of_what_the_last_met():
    job, first = running_job(), JobError("worker aggregate-0 is gone")
    for _ in range(2):
        assert kinds(job.failed(first, 1.0)) == [Redeploy]
        start(job, 1.0)
    assert kinds(job.failed(JobError("a file is gone"), 2.0))[-1] is Ended
    assert job.error is first
    assert first.__notes__ == ["The last restart failed too: a file is gone"]


def test_refused_record_ends_the_job_at_once():
    error = RecordError("map", "ValueError: no")
    job = running_job()
    assert job.failed(error, 1.0)[-1] == Ended(JobState.FAILED)
    assert job.error is error


def test_job_that_does_not_save_its_state_does_not_start_again():
    job = running_job(save_state=False)
    assert job.lost("aggregate-0", "killed", 1.0)[-1] == Ended(JobState.FAILED)


def test_unreadable_checkpoint_gives_way_to_the_one_before_or_the_beginning():
    job = running_job()
    older, _ = take_checkpoint(job, 10.0)
    take_checkpoint(job, 20.0)
    job.lost("aggregate-0", "killed", 21.0)
    (redeploy,) = job.unreadable(2, "count-0.state is gone", older, 22.0)
    assert (redeploy.manifest, redeploy.delay) == (older, 0.0)
    assert [report.state for report in job.checkpoints.reports(22.0)] == [CheckpointState.COMPLETE, CheckpointState.UNREADABLE]
    assert job.unreadable(2, "said once more", older, 22.0) == []
    (redeploy,) = job.unreadable(1, "aggregate-1.state is gone", None, 23.0)
    assert (redeploy.manifest, redeploy.retracts) == (None, True)


@pytest.mark.parametrize("groups", [4, 16])
def test_worker_lost_before_the_first_checkpoint_takes_a_job_back_to_its_savepoint_whose_tables_may_not_fit(groups):
    manifest, _ = take_checkpoint(running_job())
    tables = {"aggregate": RoutingTable(np.ones(groups, np.uint16)), "gone": RoutingTable(np.zeros(4, np.uint16))}
    savepoint = replace(manifest, tasks={**manifest.tasks, "gone": (TaskEntry(),)}, tables=tables)
    job = running_job(savepoint)
    (redeploy,) = job.lost("aggregate-0", "killed", 1.0)
    assert redeploy.manifest is savepoint
    assert list(redeploy.plan.tables["aggregate"].groups) == ([1] * 4 if groups == 4 else [0, 0, 1, 1])


def test_last_checkpoint_is_saved_before_the_job_has_finished():
    job = running_job()
    effects = [effect for worker in WORKERS for effect in job.report(worker, Finished({"to_list": [worker]}), 5.0)]
    assert kinds(effects) == [Save]
    assert all(entry.finished for entries in effects[0].manifest.tasks.values() for entry in entries)
    assert job.state is JobState.RUNNING
    effects = job.saved(1, None, 6.0)
    assert effects[0] == Commit(1, {"to_list": list(WORKERS)})
    assert effects[-1] == Ended(JobState.FINISHED)


def test_worker_that_finishes_while_the_manifest_is_written_is_not_forgotten():
    job = running_job()
    job.tick(10.0)
    prepare(job, 1)
    for worker in WORKERS:
        assert job.report(worker, Finished({"to_list": [f"last of {worker}"]}), 11.0) == []
    commit, save = job.saved(1, None, 12.0)
    assert commit.committables == {"to_list": [f"rows of {worker}" for worker in WORKERS]}
    assert (save.manifest.checkpoint, save.manifest.committables) == (2, {"to_list": [f"last of {worker}" for worker in WORKERS]})


def test_last_worker_may_finish_while_it_turns_out_that_a_manifest_can_not_be_written():
    job = running_job()
    job.tick(10.0)
    prepare(job, 1)
    for worker in WORKERS:
        job.report(worker, Finished({"to_list": [f"last of {worker}"]}), 11.0)
    discard, save = job.saved(1, "the disk is full", 12.0)
    assert discard == Discard(1, "the disk is full")
    assert save.manifest.checkpoint == 2
    (commit, *_) = job.saved(2, None, 13.0)
    rows = [f"rows of {worker}" for worker in WORKERS]
    assert commit.committables == {"to_list": [*rows, *(f"last of {worker}" for worker in WORKERS)]}


def test_stop_during_recovery_is_kept_until_the_job_runs():
    job = running_job()
    job.lost("aggregate-0", "killed", 1.0)
    assert job.stop() == []
    for worker in WORKERS[:-1]:
        job.ready(worker, 2.0)
    assert sorted(effect.worker for effect in job.ready(WORKERS[-1], 2.0)) == ["from_items-0", "from_items-1"]
    assert job.state is JobState.STOPPING


def test_job_that_goes_back_while_it_stops_stops_when_it_runs_again():
    job = running_job()
    job.stop()
    job.lost("aggregate-0", "killed", 1.0)
    for worker in WORKERS[:-1]:
        job.ready(worker, 2.0)
    assert sorted(effect.worker for effect in job.ready(WORKERS[-1], 2.0)) == ["from_items-0", "from_items-1"]
    assert job.state is JobState.STOPPING


def migrate_by_restart(job, now):
    table = job.migrations.tables["aggregate"]
    target = RoutingTable(np.array([1, 1, 1, 1], np.uint16))
    steps = [HandoverStep(0, step.moves, step.lazy, step.pause) for step in plan_steps("restart", table, target)]
    return target, *job.migrate(job.plan.stage_of("aggregate"), "restart", steps, "by hand", now)


def test_migration_by_restart_goes_through_a_checkpoint_of_its_own():
    job = running_job()
    target, migration, effects = migrate_by_restart(job, 3.0)
    assert [effect.command for effect in effects] == [BeginCheckpoint(1)] * 2
    (save,) = prepare(job, 1, 4.0)
    commit, redeploy = job.saved(1, None, 4.0)
    assert commit.checkpoint == redeploy.manifest.checkpoint == save.manifest.checkpoint == 1
    assert redeploy.plan.tables["aggregate"] == target
    assert migration.state is MigrationState.RUNNING
    start(job, 5.0)
    assert (migration.state, job.migrations.tables["aggregate"]) == (MigrationState.DONE, target)


def test_migration_by_restart_ends_early_if_its_checkpoint_fails_or_a_worker_is_lost():
    for accident in (lambda job: job.saved(1, "full", 4.0), lambda job: job.lost("aggregate-0", "killed", 4.0)):
        job = running_job()
        before = job.migrations.tables["aggregate"]
        _, migration, _ = migrate_by_restart(job, 3.0)
        prepare(job, 1, 4.0)
        accident(job)
        assert migration.state is MigrationState.ENDED_EARLY
        assert job.migrations.tables["aggregate"] == before


def prepare_changes(job, number, base):
    """Every worker has saved what changed behind `base`."""
    found = []
    for worker in WORKERS:
        files = (StateFile(f"{worker}-{number}.state", 2, "", 1),)
        found += job.report(worker, Prepared(number, {}, files=files, base=base), 20.0)
    return found


def told(effects):
    return {effect.command for effect in effects if isinstance(effect, Tell)}


def test_barriers_name_the_newest_complete_checkpoint_behind_which_files_go_on():
    job = running_job()
    first, _ = take_checkpoint(job, 10.0)
    assert told(job.tick(20.0)) == {BeginCheckpoint(2, 1)}
    (save,) = prepare_changes(job, 2, 1)
    paths = [file.path for file in save.manifest.tasks["aggregate"][0].files]
    assert paths == [f"../checkpoint-00000001/{first.tasks['aggregate'][0].files[0].path}", "aggregate-0-2.state"]
    job.saved(2, "OSError: the disk is full", 20.0)
    assert told(job.tick(30.0)) == {BeginCheckpoint(3, 1)}, "what failed is nothing to go on from"
    prepare_changes(job, 3, 1)
    job.saved(3, None, 31.0)
    report = job.checkpoints.reports(32.0)[-1]
    saved, whole = 2 * len(WORKERS), sum(file.size for file in first.files)
    assert (report.saved_bytes, report.state_bytes, report.keys) == (saved, whole + saved, len(WORKERS))
    assert told(job.tick(50.0)) == {BeginCheckpoint(4, 3)}


def test_savepoint_asks_for_the_whole_state():
    job = running_job()
    take_checkpoint(job, 10.0)
    assert job.checkpoint(11.0, whole=True) == 2
    assert told(job.tick(11.0)) == {BeginCheckpoint(2)}
    prepare(job, 2, 11.0)
    job.saved(2, None, 11.0)
    assert told(job.tick(30.0)) == {BeginCheckpoint(3, 2)}


def test_changes_behind_another_checkpoint_than_the_newest_are_no_checkpoint():
    job = running_job()
    take_checkpoint(job, 10.0)
    job.tick(20.0)
    assert kinds(prepare_changes(job, 2, 7)) == [Discard]
    assert "has saved what changed behind checkpoint 7, which is not the newest" in (job.checkpoints.reports(20.0)[-1].problem or "")
