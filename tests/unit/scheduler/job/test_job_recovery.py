"""A job that saves its state restores its newest checkpoint after an accident, once it is known which one that is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from job_script import FULL, LOST, ROWS, WORKERS, commits, kinds, manifests, new_saving_job, recipients, saving_job

from evenflow.engine.errors import JobError, RecordError
from evenflow.engine.protocol.effects import Finished
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.scheduler.protocol.effects import Commit, Deploy, Discard, Ended, JobState, RestoreSinks
from evenflow.scheduler.protocol.manifest import TaskEntry
from evenflow.scheduler.protocol.messages import BeginCheckpoint, StopSource
from evenflow.scheduler.protocol.reports import CheckpointState
from evenflow.scheduler.protocol.requests import ShowStatus
from evenflow.scheduler.protocol.restore_point import RestorePoint
from evenflow.scheduler.protocol.storage_answers import Committed, SinksRestored
from evenflow.state.errors import CorruptCheckpointError, StateFolderError


def test_lost_worker_takes_the_job_back_to_its_newest_checkpoint():
    job = saving_job()
    manifest, _ = job.take_checkpoint()
    job.tick(20.0)
    job.prepare(2, 21.0, WORKERS[:2])
    assert job.lost("aggregate-0") == [Discard(2)]
    assert job.core.state is JobState.RESTARTING
    assert [report.state for report in job.reports()] == [CheckpointState.COMPLETE, CheckpointState.FAILED]
    assert job.tick(21.9) == [], "it waits for its delay"
    assert job.tick(22.0) == [RestoreSinks(1, manifest, None)], "its commit may have been carried out"
    assert job.sinks_restored() == [Deploy(1, job.core.plan, manifest)]
    job.run()
    manifest, commit = job.take_checkpoint(32.0)
    assert (manifest.checkpoint, manifest.attempt) == (3, 1), "numbers rise over all attempts"
    assert commit.committables == {"to_list": ROWS}, "what was not committed is read again"


def test_job_without_a_checkpoint_begins_from_nothing():
    job = saving_job()
    assert job.lost("aggregate-0", now=1.0) == []
    assert job.tick(2.0) == [RestoreSinks(1, None, None)]
    assert job.sinks_restored() == [Deploy(1, job.core.plan, None)]


@pytest.mark.parametrize("waits_for", ["its delay", "its sinks"])
def test_a_failure_before_an_attempt_begins_belongs_to_the_previous_one(waits_for):
    job = saving_job()
    job.lost("aggregate-0", now=1.0)
    if waits_for == "its sinks":
        job.tick(2.0)
    assert job.lost("aggregate-1") == job.failed(LOST) == []
    assert job.core.attempt == 1


def test_worker_that_is_lost_while_others_start_makes_another_attempt():
    job = saving_job()
    job.lost("aggregate-0", now=1.0)
    job.tick(2.0)
    job.sinks_restored()
    job.ready("from_items-0")
    job.lost("aggregate-0")
    assert job.restart(3.0)[1].attempt == 2
    job.ready("from_items-0")
    assert job.core.state is JobState.RUNNING


def test_sinks_that_were_restored_for_an_attempt_that_is_over_only_bring_what_they_deliver():
    job = saving_job()
    job.lost("aggregate-0", now=1.0)
    job.tick(2.0)
    late = job.core.attempt - 1
    assert job.after(job.core.stored, SinksRestored(late, (("to_list", "rows"),))) == []
    assert job.core.checkpointing.deliveries.pending == (("to_list", "rows"),)
    assert kinds(job.sinks_restored()) == [Deploy]


def test_worker_that_starts_in_an_attempt_that_is_over_is_not_ready():
    job = saving_job()
    job.lost("aggregate-0", now=1.0)
    job.tick(2.0)
    job.sinks_restored()
    for worker in WORKERS:
        job.after(job.core.ready, worker, 0)
    assert job.core.state is JobState.RESTARTING


def test_restarts_are_given_up_with_the_first_cause_and_a_note_of_what_the_last_met():
    job, first = saving_job(), JobError("worker aggregate-0 is gone")
    for now in (1.0, 2.0):
        assert job.failed(first, now) == []
        job.restart(now + 1.0)
    assert kinds(job.failed(JobError("a file is gone")))[-1] is Ended
    assert job.core.error is first
    assert first.__notes__ == [
        "The last restart failed too: a file is gone",
        "The job did not start again: RestartConfig(most=2) allows for no more restarts in a row.",
    ]
    assert job.logged[-1] == (
        "job `f` has failed and is not restarted: RestartConfig(most=2) allows for no more restarts in a row. "
        "Its error: worker from_items-0 (from_items, aggregate.combine): JobError: a file is gone"
    )


def test_a_restart_is_logged_and_shown_with_its_cause_and_the_next_try():
    job = saving_job(restart={"delay": 4.0})
    error = JobError("the server is gone\nand this is its second line")
    assert job.failed(error, now=1.0) == []
    cause = "restart 1 of at most 2 in a row{}: worker from_items-0 (from_items, aggregate.combine): JobError: the server is gone"
    assert job.logged == ["job `f`: " + cause.format(", in 4 s")]
    status = job.ask(ShowStatus(), now=2.5)
    assert (status.state, status.error, status.restarts, status.next_try) == (JobState.RESTARTING, error, 1, 2.5)
    assert status.restart_causes == {"JobError": 1}
    assert status.problems == (cause.format(""),)
    assert "restarting, 2.5 s, 0 checkpoints, 1 restart, the next try in 2.5 s" in str(status)
    job.restart(5.0)
    status = job.ask(ShowStatus(), now=6.0)
    assert (status.state, status.error, status.restarts, status.next_try) == (JobState.RUNNING, None, 1, None)
    assert status.problems == (cause.format(""),), "nothing tells yet that it is well"
    job.take_checkpoint(16.0)
    assert job.ask(ShowStatus()).problems == ()


def test_attempts_that_complete_no_checkpoint_count_however_long_they_last():
    job = saving_job(restart={"quiet": 5.0})
    for now in (9.0, 19.0):
        job.failed(LOST, now)
        job.restart(now + 1.0)
    assert kinds(job.failed(LOST, 29.0))[-1] is Ended


def test_attempts_that_complete_a_checkpoint_and_are_quiet_begin_a_new_row():
    job = saving_job(restart={"quiet": 5.0})
    for now in (19.0, 39.0, 59.0, 79.0):
        job.take_checkpoint(now - 1.0)
        job.failed(LOST, now)
        job.restart(now + 1.0)
    assert job.core.state is JobState.RUNNING


def test_an_error_that_another_attempt_would_meet_again_ends_the_job_at_once():
    job = saving_job()
    error = StateFolderError("aggregate", "/srv/state", "[Errno 13] Permission denied", 13)
    assert kinds(job.failed(error, now=1.0))[-1] is Ended
    assert job.core.error is error
    (note,) = error.__notes__
    assert note.startswith("The job did not start again: another attempt would meet the same error: create /srv/state on every node, ")


def test_refused_record_ends_the_job_at_once():
    error = RecordError("map", "ValueError: no")
    job = saving_job()
    assert job.failed(error, 1.0)[-1] == Ended(JobState.FAILED)
    assert job.core.error is error


def test_job_that_does_not_save_its_state_does_not_start_again():
    job = saving_job(checkpoint={"dir": None})
    assert job.lost("aggregate-0", now=1.0)[-1] == Ended(JobState.FAILED)


def test_sinks_that_fail_to_commit_what_an_attempt_begins_from_make_another():
    job = saving_job()
    job.lost("aggregate-0", now=1.0)
    job.tick(2.0)
    assert job.sinks_restored(error=JobError("the table is locked")) == []
    assert job.restart(3.0)[1].attempt == 2


def test_sinks_that_can_not_retract_rows_end_the_job():
    job, error = saving_job(), JobError("the sink can't take back")
    job.lost("aggregate-0", now=1.0)
    job.tick(2.0)
    assert job.sinks_restored(error=error, hopeless=True)[-1] == Ended(JobState.FAILED)
    assert job.core.error is error


def savepoint(groups=4):
    manifest, _ = saving_job().take_checkpoint()
    tables = {"aggregate": RoutingTable(np.ones(groups, np.uint16)), "gone": RoutingTable(np.zeros(4, np.uint16))}
    return replace(manifest, tasks={**manifest.tasks, "gone": (TaskEntry(),)}, tables=tables)


@pytest.mark.parametrize("groups", [4, 16])
def test_worker_lost_before_the_first_checkpoint_restores_a_savepoint_whose_tables_may_not_fit(groups):
    begin = RestorePoint(savepoint(groups), from_savepoint=True)
    job = saving_job(begin)
    job.lost("aggregate-0", now=1.0)
    _, deploy = job.restart(2.0)
    assert deploy.manifest is begin.manifest
    assert list(deploy.plan.tables["aggregate"].groups) == ([1] * 4 if groups == 4 else [0, 0, 1, 1])


@pytest.mark.parametrize("answer", ["is written", "can not be written"])
def test_job_to_be_restored_while_a_manifest_is_written_waits_for_the_outcome_of_the_write(answer):
    job = saving_job()
    first, _ = job.take_checkpoint()
    job.tick(20.0)
    (second,) = manifests(job.prepare(2))
    assert job.lost("aggregate-0") == job.failed(JobError("another")) == job.tick(25.0) == []
    assert (job.core.state, job.core.attempt) == (JobState.RUNNING, 0)
    if answer == "is written":
        assert commits(job.saved(2)) == [(2, {"to_list": ROWS})]
    else:
        assert job.saved(2, FULL) == [Discard(2)]
    assert (job.core.state, job.core.attempt) == (JobState.RESTARTING, 1)
    assert job.tick(26.0) == [RestoreSinks(1, second if answer == "is written" else first, None)]


def test_the_first_failure_while_a_manifest_is_written_ends_the_job():
    job = saving_job(restart={"strategy": "none"})
    job.tick(10.0)
    job.prepare(1)
    assert job.failed(LOST) == job.failed(JobError("what came of it")) == []
    effects = job.saved(1)
    assert kinds(effects)[0] is Commit, "the checkpoint is complete"
    assert effects[-1] == Ended(JobState.FAILED)
    assert job.core.error is LOST


def test_accident_while_a_manifest_was_written_does_not_count_once_the_job_is_cancelled():
    job = saving_job()
    job.tick(10.0)
    job.prepare(1)
    job.failed(LOST)
    job.cancel()
    assert job.saved(1) == job.tick(99.0) == []
    assert job.core.state is JobState.CANCELLED


@pytest.mark.parametrize("at", ["its last manifest", "its last commit"])
def test_worker_that_is_lost_after_the_last_record_is_no_accident(at):
    job = saving_job()
    job.finish(5.0)
    if at == "its last commit":
        job.saved(1)
    assert job.lost("aggregate-0", "it has left") == job.lost("from_items-0", "it has left") == []
    if at == "its last manifest":
        job.saved(1)
    assert job.committed(1)[-1] == Ended(JobState.FINISHED)
    assert job.core.error is None


def test_worker_that_is_lost_before_another_has_sent_its_last_record_is_an_accident():
    job = saving_job()
    for worker in WORKERS[:-1]:
        job.report(worker, Finished({}))
    job.lost(WORKERS[0], now=1.0)
    assert job.core.state is JobState.RESTARTING


def test_commit_of_before_a_restart_that_is_answered_late_only_brings_what_it_delivers():
    job = saving_job()
    job.tick(10.0)
    job.prepare(1)
    job.saved(1)
    job.lost("aggregate-0")
    assert job.stored(Committed(1, (("to_list", "rows"),), JobError("half of it"))) == []
    assert (job.core.attempt, job.core.checkpointing.deliveries.pending) == (1, (("to_list", "rows"),))
    job.restart(11.0)
    assert recipients(job.tick(21.0), BeginCheckpoint(2, 1)) == ["from_items-0", "from_items-1"]
    job.prepare(2)
    job.saved(2)
    assert job.stored(Committed(1, (("to_list", "more"),))) == []
    assert not job.core.checkpointing.free, "the newer commit is still under way"
    assert job.core.checkpointing.deliveries.pending == (("to_list", "rows"), ("to_list", "more"))


def test_commit_that_fails_takes_the_job_back_to_its_checkpoint():
    job = saving_job()
    job.tick(10.0)
    (manifest,) = manifests(job.prepare(1))
    job.saved(1)
    assert job.committed(1, JobError("the table is locked")) == []
    assert job.core.state is JobState.RESTARTING
    assert job.tick(11.0) == [RestoreSinks(1, manifest, None)]


def test_coordinator_that_takes_over_begins_another_attempt_from_the_newest_checkpoint():
    manifest, _ = saving_job().take_checkpoint()
    manifest = replace(manifest, undelivered=(("to_list", "rows"),))
    job = new_saving_job(RestorePoint(manifest, last=3, takes_over=True, committed=3, attempt=7, completed=3, running_since=100.0))
    assert job.begin(200.0) == [RestoreSinks(8, manifest, retracts=3)]
    assert job.core.state is JobState.RESTARTING
    assert job.core.checkpointing.deliveries.pending == (("to_list", "rows"),)
    assert job.sinks_restored() == [Deploy(8, job.core.plan, manifest)]
    assert job.run(250.0).core.running_seconds == 150.0
    newest, _ = job.take_checkpoint(260.0)
    assert (newest.checkpoint, job.core.checkpoints.completed) == (4, 4)


@pytest.mark.parametrize("committed", [1, 5])
def test_start_that_continues_a_run_begins_as_a_start_does_from_its_checkpoint(committed):
    manifest, _ = saving_job().take_checkpoint()
    manifest = replace(manifest, undelivered=(("to_list", "rows"),))
    job = new_saving_job(RestorePoint(manifest, last=5, resumes=True, committed=committed, attempt=7))
    assert job.begin(200.0) == [RestoreSinks(7, manifest, retracts=committed if committed > manifest.checkpoint else None)]
    assert job.core.state is JobState.STARTING, "a failure now is raised in the program that starts it"
    assert job.core.checkpointing.deliveries.pending == (("to_list", "rows"),)
    assert job.sinks_restored() == [Deploy(7, job.core.plan, manifest)]
    newest, _ = job.run(210.0).take_checkpoint(260.0)
    assert newest.checkpoint == 6


def test_coordinator_that_takes_over_with_nothing_committed_retracts_nothing():
    job = new_saving_job(RestorePoint(takes_over=True, attempt=7))
    assert job.begin() == [RestoreSinks(8, None, None)]


def test_stop_during_recovery_is_kept_until_the_job_runs():
    job = saving_job()
    job.lost("aggregate-0", now=1.0)
    assert job.stop() == []
    job.tick(2.0)
    job.sinks_restored()
    effects = [effect for worker in WORKERS for effect in job.ready(worker)]
    assert recipients(effects, StopSource()) == ["from_items-0", "from_items-1"]
    assert job.core.state is JobState.STOPPING


def test_job_that_goes_back_while_it_stops_stops_when_it_runs_again():
    job = saving_job()
    job.stop()
    job.lost("aggregate-0", now=1.0)
    job.tick(2.0)
    job.sinks_restored()
    effects = [effect for worker in WORKERS for effect in job.ready(worker)]
    assert recipients(effects, StopSource()) == ["from_items-0", "from_items-1"]
    assert job.core.state is JobState.STOPPING


def test_a_job_that_goes_back_because_it_was_asked_to_shows_no_old_error():
    job = saving_job()
    job.failed(LOST, now=1.0)
    job.restart(2.0)
    job.core.go_back()
    status = job.ask(ShowStatus(), now=3.0)
    assert (status.state, status.error, status.problems, status.restarts) == (JobState.RESTARTING, None, (), 2)


def test_a_job_that_looks_for_an_older_checkpoint_says_why():
    job = saving_job()
    job.take_checkpoint()
    damaged = CorruptCheckpointError("aggregate-0", 1, "truncated")
    job.failed(damaged, now=11.0)
    status = job.ask(ShowStatus(), now=12.0)
    assert (status.state, status.error) == (JobState.RESTARTING, damaged)
    assert status.problems == ("a checkpoint is damaged: CorruptCheckpointError: worker aggregate-0 can't restore checkpoint 1: truncated",)
    assert job.logged[-1].startswith("job `f` looks for an older checkpoint: CorruptCheckpointError")


def test_a_coordinator_that_goes_on_in_place_of_a_lost_one_says_so():
    job = new_saving_job(RestorePoint(takes_over=True))
    job.begin(now=1.0)
    status = job.ask(ShowStatus())
    assert (status.state, status.restarts) == (JobState.RESTARTING, 1)
    assert job.logged == [str(status.error)] == ["job `f`: its coordinator was lost, and another takes over"]
