"""A job that is stopped takes a last checkpoint, and ends once that is committed and the state is saved with nothing to commit."""

from __future__ import annotations

import pytest
from job_script import FULL, ROWS, WORKERS, commits, counting, manifests, new_saving_job, of_kind, recipients, saving_job
from job_script import ScriptedJob as Job

from evenflow.engine.protocol.effects import Finished
from evenflow.scheduler.protocol.effects import Ended, JobState, RememberStop, Save, StopMode
from evenflow.scheduler.protocol.messages import BeginCheckpoint, StopSource
from evenflow.scheduler.protocol.requests import Stop
from evenflow.scheduler.protocol.restore_point import RestorePoint

SOURCES = list(WORKERS[:2])


def test_stop_begins_the_last_checkpoint_at_once():
    job = saving_job()
    assert recipients(job.stop(1.0, drain=False), BeginCheckpoint(1, 0, last=True)) == SOURCES
    assert job.core.state is JobState.STOPPING
    assert job.stop(2.0, drain=False) == job.tick(99.0) == [], "there is no other, and no limit to how long it takes"


def test_job_has_stopped_once_its_rows_are_committed_and_its_state_is_saved_without_them():
    job = saving_job()
    job.stop(1.0, drain=False)
    (first,) = manifests(job.prepare(1))
    assert commits(job.saved(1)) == [(1, {"to_list": ROWS})]
    (closing,) = manifests(job.committed(1))
    assert (closing.checkpoint, closing.committables) == (2, {})
    assert [file.path for file in closing.files] == [f"../checkpoint-00000001/{file.path}" for file in first.files]
    assert not any(entry.finished for entries in closing.tasks.values() for entry in entries), "another run can go on"
    assert commits(job.saved(2)) == [(2, {})]
    assert job.committed(2)[-1] == Ended(JobState.FINISHED)


def test_job_without_a_folder_warns_that_open_windows_are_discarded_and_ends_with_the_commit():
    job = Job(*counting()).start()
    effects = job.stop(drain=False)
    assert recipients(effects, BeginCheckpoint(1, 0, last=True)) == SOURCES
    (warning,) = job.logged
    assert "job `f` stops without a checkpoint folder" in warning
    assert commits(job.prepare(1)) == [(1, {"to_list": ROWS})]
    assert job.committed(1)[-1] == Ended(JobState.FINISHED)


def test_stop_waits_for_the_checkpoint_that_is_under_way_and_its_commit_and_no_other_begins():
    job = saving_job()
    job.tick(10.0)
    assert job.stop(11.0, drain=False) == []
    job.prepare(1)
    job.saved(1)
    assert job.tick(50.0) == []
    assert recipients(job.committed(1), BeginCheckpoint(2, 1, last=True)) == SOURCES


def test_job_whose_sources_have_ended_drains():
    job = saving_job()
    for source in SOURCES:
        job.report(source, Finished({}))
    assert job.stop(drain=False) == []
    assert job.core.state is JobState.STOPPING


def test_job_whose_sources_end_before_the_barrier_finishes_as_always():
    job = saving_job()
    job.stop(drain=False)
    (last,) = manifests(job.finish())
    assert (last.checkpoint, all(entry.finished for entries in last.tasks.values() for entry in entries)) == (2, True)
    job.saved(2)
    assert job.committed(2)[-1] == Ended(JobState.FINISHED)


def test_worker_that_is_lost_behind_the_last_barrier_is_no_accident():
    job = saving_job()
    job.stop(drain=False)
    job.prepare(1)
    assert job.lost("aggregate-0") == []
    job.saved(1)
    assert len(of_kind(job.committed(1), Save)) == 1


@pytest.mark.parametrize("mode", [False, True], ids=["at a barrier", "drained"])
def test_worker_that_is_lost_before_it_takes_the_job_back_which_stops_again(mode):
    job = saving_job()
    job.stop(drain=mode)
    job.lost("aggregate-0", now=1.0)
    job.tick(2.0)
    job.sinks_restored()
    effects = [effect for worker in WORKERS for effect in job.ready(worker)]
    assert recipients(effects, StopSource() if mode else BeginCheckpoint(2, 0, last=True)) == SOURCES


def test_last_checkpoint_that_can_not_be_saved_takes_the_job_back():
    job = saving_job()
    job.stop(1.0, drain=False)
    job.prepare(1)
    job.saved(1, FULL)
    assert job.core.state is JobState.RESTARTING


def test_coordinator_that_takes_over_stops_the_job_as_it_was_asked_to():
    job = saving_job()
    assert RememberStop(StopMode.BARRIER) in job.request(Stop())
    again = new_saving_job(RestorePoint(takes_over=True, attempt=7, stop=StopMode.BARRIER))
    again.begin()
    again.sinks_restored()
    effects = [effect for worker in WORKERS for effect in again.ready(worker)]
    assert recipients(effects, BeginCheckpoint(1, 0, last=True)) == SOURCES
