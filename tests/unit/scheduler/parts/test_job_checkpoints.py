"""The checkpoints of a job that saves its state: manifests go before commits, failures are counted, the last one ends the job."""

from __future__ import annotations

import pytest
from job_script import FULL, LAST, ROWS, WORKERS, commits, kinds, manifests, saving_job

from evenflow.engine.errors import JobError
from evenflow.engine.protocol.effects import Prepared
from evenflow.scheduler.protocol.effects import Commit, CopySavepoint, Discard, Ended, JobState, RestoreSinks
from evenflow.scheduler.protocol.messages import BeginCheckpoint, CheckpointFailed
from evenflow.scheduler.protocol.reports import CheckpointState, SavepointReport
from evenflow.scheduler.protocol.requests import ShowHistory, TakeCheckpoint, TakeSavepoint
from evenflow.scheduler.protocol.storage_answers import Committed, SavepointCopied
from evenflow.state.files import StateFile


def test_nothing_is_committed_before_the_manifest_is_written():
    job = saving_job()
    job.tick(10.0)
    assert job.prepare(1, 11.0, WORKERS[:-1]) == []
    (manifest,) = manifests(job.prepare(1, 11.0, WORKERS[-1:]))
    assert (manifest.checkpoint, manifest.attempt, len(manifest.files)) == (1, 0, 4)
    assert job.saved(1, now=11.5) == [Commit(1, {"to_list": ROWS}, completed=1)]
    (report,) = job.reports(12.0)
    assert (report.state, report.seconds, report.state_bytes, report.keys) == (CheckpointState.COMMITTING, None, 28, 12)
    job.committed(1)
    (report,) = job.reports(13.0)
    assert (report.state, report.began_at, report.seconds) == (CheckpointState.COMPLETE, 10.0, 1.5)


@pytest.mark.parametrize("where", ["in a worker", "in the manifest"])
def test_checkpoint_that_can_not_be_saved_is_given_up_and_its_rows_go_with_the_next(where):
    job = saving_job()
    job.tick(10.0)
    job.prepare(1, 11.0, WORKERS[:-1])
    if where == "in a worker":
        assert job.report(WORKERS[-1], CheckpointFailed(1, FULL, {"to_list": ROWS[-1:]})) == [Discard(1)]
    else:
        job.prepare(1, workers=WORKERS[-1:])
        assert job.saved(1, FULL) == [Discard(1)]
    (report,) = job.reports(12.0)
    assert report.state is CheckpointState.FAILED
    assert report.problem == (f"aggregate-1: {FULL}" if where == "in a worker" else FULL)
    manifest, commit = job.take_checkpoint(21.0)
    assert commit.checkpoint == manifest.checkpoint == 2
    assert sorted(commit.committables["to_list"]) == sorted(ROWS * 2)


def test_too_many_failed_checkpoints_in_a_row_end_the_job():
    job = saving_job(checkpoint={"tolerable_failures": 1})
    for number, now in ((1, 10.0), (2, 20.0)):
        job.tick(now)
        job.prepare(number)
        effects = job.saved(number, "OSError: read-only")
    assert kinds(effects)[-1] is Ended
    assert str(job.core.error) == "job `f`: 2 checkpoints in a row have failed; the last, 2: OSError: read-only"


def test_complete_checkpoint_resets_the_count_of_failures():
    job = saving_job(checkpoint={"tolerable_failures": 1})
    for now, problem in ((10.0, "full"), (20.0, None), (30.0, "full")):
        job.tick(now)
        number = job.core.checkpoints.last
        job.prepare(number)
        job.saved(number, problem)
        job.committed(number)
    assert job.core.checkpoints.last == 3
    assert job.core.state is JobState.RUNNING


def test_checkpoint_that_takes_too_long_is_given_up_when_it_has_passed_all():
    job = saving_job(checkpoint={"timeout": 5.0})
    job.tick(10.0)
    job.prepare(1, 11.0, WORKERS[:-1])
    assert job.tick(16.0) == []
    assert job.core.checkpoints.pending is not None, "barriers are still under way: no other may begin"
    job.prepare(1, 17.0, WORKERS[-1:])
    assert job.reports()[-1].problem == ("it took longer than 5 s (CheckpointConfig(timeout=...) sets the bound), for aggregate-1")


def test_checkpoint_that_is_pending_says_for_whom():
    job = saving_job()
    job.tick(10.0)
    job.prepare(1, 11.0, WORKERS[:-2])
    (report,) = job.reports(12.0)
    assert (report.problem, report.waits_for) == (None, ("aggregate-0", "aggregate-1"))
    assert str(report) == "checkpoint 1 pending: waits for aggregate-0, aggregate-1; the interval is over"
    job.prepare(1, 12.0, WORKERS[-2:])
    assert job.reports(13.0)[0].waits_for == ()


@pytest.mark.parametrize("interval", [None, 10.0], ids=["by hand only", "by time"])
def test_checkpoint_that_is_asked_for_during_another_begins_behind_it_and_its_report_says_why(interval):
    job = saving_job(checkpoint={"interval": interval})
    assert job.ask(TakeCheckpoint()) == 1
    job.tick(1.0)
    assert job.ask(TakeSavepoint("/s")) == 2
    assert kinds(job.tick(2.0)) == []
    job.prepare(1)
    job.saved(1)
    job.committed(1)
    job.tick(3.0)
    job.prepare(2)
    assert [(report.number, report.reason) for report in job.reports()] == [(1, "by hand"), (2, "for a savepoint")]


def test_checkpoint_that_never_passes_a_worker_takes_the_job_back():
    job = saving_job(checkpoint={"timeout": 5.0})
    first, _ = job.take_checkpoint()
    job.tick(20.0)
    job.prepare(2, 21.0, WORKERS[:-1])
    assert [job.tick(now) for now in (25.1, 29.9)] == [[], []]
    assert job.tick(30.1) == [Discard(2)]
    assert job.restart(31.1)[1].manifest is first


@pytest.mark.parametrize(
    "config",
    [{"checkpoint": {"timeout": 5.0, "dir": None}}, {"checkpoint": {"timeout": 5.0}, "restart": {"strategy": "none"}}],
    ids=["saves nothing", "does not start again"],
)
def test_checkpoint_that_never_passes_a_worker_ends_a_job_that_can_not_go_back(config):
    job = saving_job(**config)
    job.tick(10.0)
    assert kinds(job.tick(20.1))[-1] is Ended
    assert "checkpoint 1 has not passed from_items-0, from_items-1, aggregate-0, aggregate-1 within 10 s" in str(job.core.error)


def test_checkpoint_whose_manifest_is_being_written_waits_for_no_worker_and_says_why():
    job = saving_job(checkpoint={"timeout": 5.0})
    job.tick(10.0)
    job.prepare(1, 11.0)
    assert job.tick(100.0) == []
    (report,) = job.reports()
    assert (report.state, report.waits_for) == (CheckpointState.SAVING, ())
    assert report.problem == "its manifest has not been written within 5 s; its folder does not answer"
    assert kinds(job.saved(1, now=101.0)) == [Commit]
    (report,) = job.reports()
    assert (report.state, report.problem) == (CheckpointState.COMMITTING, None)


def test_last_checkpoint_is_saved_and_committed_before_the_job_has_finished():
    job = saving_job()
    (manifest,) = manifests(job.finish(5.0))
    assert all(entry.finished for entries in manifest.tasks.values() for entry in entries)
    assert job.core.state is JobState.RUNNING
    assert job.saved(1, now=6.0) == [Commit(1, {"to_list": LAST}, completed=1, last=True)]
    assert job.core.state is JobState.RUNNING
    assert job.committed(1)[-1] == Ended(JobState.FINISHED)


def test_last_checkpoint_that_can_not_be_saved_takes_the_job_back():
    job = saving_job()
    first, _ = job.take_checkpoint()
    job.finish()
    job.saved(2, FULL)
    assert job.core.state is JobState.RESTARTING
    assert job.restart(11.0)[1].manifest is first


def test_last_commit_that_fails_is_carried_out_again_from_its_manifest():
    job = saving_job()
    (manifest,) = manifests(job.finish(5.0))
    job.saved(1)
    assert job.committed(1, JobError("the table is locked")) == []
    assert job.tick(6.0) == [RestoreSinks(1, manifest, None)]


def test_worker_that_finishes_while_the_manifest_is_written_is_not_forgotten():
    job = saving_job()
    job.tick(10.0)
    job.prepare(1)
    assert job.finish(11.0) == []
    assert commits(job.saved(1, now=12.0)) == [(1, {"to_list": ROWS})]
    (manifest,) = manifests(job.committed(1))
    assert (manifest.checkpoint, manifest.committables) == (2, {"to_list": LAST})


def test_last_worker_may_finish_while_it_turns_out_that_a_manifest_can_not_be_written():
    job = saving_job()
    job.tick(10.0)
    job.prepare(1)
    job.finish(11.0)
    discard, save = job.saved(1, "the disk is full", now=12.0)
    assert discard == Discard(1)
    assert save.manifest.checkpoint == 2
    assert commits(job.saved(2, now=13.0)) == [(2, {"to_list": [*ROWS, *LAST]})]


def test_deliveries_that_the_driver_may_lack_are_part_of_the_manifest():
    job = saving_job()
    job.tick(10.0)
    job.prepare(1)
    job.saved(1)
    job.stored(Committed(1, (("to_list", "rows"),)))
    job.tick(20.0)
    (manifest,) = manifests(job.prepare(2))
    assert manifest.undelivered == (("to_list", "rows"),)


def prepare_changes(job, number, base):
    """Save the changes since `base` in every worker."""
    found = []
    for worker in WORKERS:
        files = (StateFile(f"{worker}-{number}.state", 2, "", 1),)
        found += job.report(worker, Prepared(number, {}, files=files, base=base))
    return found


def begun(effects):
    return {effect.command for effect in effects}


def test_barriers_name_the_newest_complete_checkpoint_behind_which_files_go_on():
    job = saving_job()
    first, _ = job.take_checkpoint(10.0)
    assert begun(job.tick(20.0)) == {BeginCheckpoint(2, 1)}
    (manifest,) = manifests(prepare_changes(job, 2, 1))
    paths = [file.path for file in manifest.tasks["aggregate"][0].files]
    assert paths == [f"../checkpoint-00000001/{first.tasks['aggregate'][0].files[0].path}", "aggregate-0-2.state"]
    job.saved(2, FULL)
    assert begun(job.tick(30.0)) == {BeginCheckpoint(3, 1)}, "what failed is nothing to go on from"
    prepare_changes(job, 3, 1)
    job.saved(3, now=31.0)
    job.committed(3)
    report = job.reports(32.0)[-1]
    saved, whole = 2 * len(WORKERS), sum(file.size for file in first.files)
    assert (report.saved_bytes, report.state_bytes, report.keys) == (saved, whole + saved, len(WORKERS))
    assert begun(job.tick(50.0)) == {BeginCheckpoint(4, 3)}


def test_savepoint_asks_for_the_whole_state_and_is_copied_once_that_is_saved():
    job = saving_job()
    job.take_checkpoint(10.0)
    assert job.ask(TakeSavepoint("folder"), 11.0) == 2
    assert begun(job.tick(11.0)) == {BeginCheckpoint(2)}
    (manifest,) = manifests(job.prepare(2))
    copy, commit = job.saved(2)
    assert copy == CopySavepoint("folder", manifest)
    assert commit.checkpoint == 2
    assert job.ask(ShowHistory(SavepointReport)) == [SavepointReport(2, "folder")]
    job.stored(SavepointCopied(2))
    assert job.ask(ShowHistory(SavepointReport)) == [SavepointReport(2, "folder", done=True)]
    job.committed(2)
    assert begun(job.tick(30.0)) == {BeginCheckpoint(3, 2)}


@pytest.mark.parametrize("fails", ["its checkpoint", "its copy", "the job"])
def test_savepoint_that_can_not_be_taken_says_why(fails):
    job = saving_job()
    number = job.ask(TakeSavepoint("folder"), 11.0)
    job.tick()
    if fails == "the job":
        job.lost("aggregate-0")
    else:
        job.prepare(number)
        job.saved(number, FULL if fails == "its checkpoint" else None)
    if fails == "its copy":
        job.stored(SavepointCopied(number, FULL))
    (report,) = job.ask(ShowHistory(SavepointReport))
    assert (report.done, report.problem) == (True, "the job was restored from its last checkpoint" if fails == "the job" else FULL)


def test_changes_behind_another_checkpoint_than_the_newest_are_no_checkpoint():
    job = saving_job()
    job.take_checkpoint(10.0)
    job.tick(20.0)
    assert kinds(prepare_changes(job, 2, 7)) == [Discard]
    assert "has saved its changes since checkpoint 7, which is not the newest" in (job.reports()[-1].problem or "")
