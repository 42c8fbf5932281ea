"""A job that is stopped takes a last checkpoint, and ends once that is committed and the state is saved with nothing to commit."""

from __future__ import annotations

import pytest
from job_script import FULL, ROWS, WORKERS, commits, counting, manifests, new_saving_job, of_kind, recipients, saving_job
from job_script import ScriptedJob as Job

from evenflow.engine.errors import JobNotRunningError, RequestError
from evenflow.engine.protocol.effects import Finished
from evenflow.scheduler.protocol.effects import CopySavepoint, Ended, JobState, RememberStop, Save, StopOrder
from evenflow.scheduler.protocol.messages import BeginCheckpoint, StopSource
from evenflow.scheduler.protocol.reports import SavepointReport
from evenflow.scheduler.protocol.requests import ShowHistory, Stop
from evenflow.scheduler.protocol.restore_point import RestorePoint
from evenflow.scheduler.protocol.storage_answers import SavepointCopied

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


def test_stop_with_a_savepoint_saves_the_whole_state_and_ends_once_it_is_copied():
    job = saving_job()
    job.take_checkpoint(10.0)
    order = StopOrder(savepoint="folder")
    effects = job.request(Stop(savepoint="folder"), 11.0)
    assert RememberStop(order) in effects
    assert recipients(effects, BeginCheckpoint(2, 0, last=True)) == SOURCES, "not only the changes since the first"
    job.prepare(2)
    job.saved(2)
    (closing,) = manifests(job.committed(2))
    assert of_kind(job.saved(3), CopySavepoint) == [CopySavepoint("folder", closing, last=True)]
    assert job.committed(3) == []
    assert job.core.state is JobState.STOPPING
    assert job.stored(SavepointCopied(3))[-1] == Ended(JobState.FINISHED)
    assert job.ask(ShowHistory(SavepointReport)) == [SavepointReport(3, "folder", done=True)]


def test_a_savepoint_that_is_copied_before_the_last_commit_waits_for_that():
    job = saving_job()
    job.request(Stop(savepoint="folder"))
    job.prepare(1)
    job.saved(1)
    job.committed(1)
    job.saved(2)
    assert job.stored(SavepointCopied(2)) == []
    assert job.committed(2)[-1] == Ended(JobState.FINISHED)


def test_a_stop_whose_savepoint_can_not_be_copied_leaves_the_last_checkpoint_and_warns():
    job = saving_job()
    job.request(Stop(savepoint="folder"))
    job.prepare(1)
    job.saved(1)
    job.committed(1)
    job.saved(2)
    job.committed(2)
    assert job.stored(SavepointCopied(2, FULL))[-1] == Ended(JobState.FINISHED)
    assert job.logged == [f"job `f` stops without its savepoint, but with a last checkpoint in its folder: {FULL}"]
    assert job.ask(ShowHistory(SavepointReport)) == [SavepointReport(2, "folder", done=True, problem=FULL)]


def test_a_job_that_stops_already_and_one_without_a_folder_make_no_savepoint():
    job = saving_job()
    job.stop(drain=False)
    with pytest.raises(JobNotRunningError, match="is stopping already: it makes no savepoint any more"):
        job.ask(Stop(savepoint="folder"))
    with pytest.raises(RequestError, match="a savepoint needs CheckpointConfig"):
        Job(*counting()).start().ask(Stop(savepoint="folder"))


def test_coordinator_that_takes_over_while_a_savepoint_is_copied_makes_it_again():
    again = new_saving_job(RestorePoint(takes_over=True, attempt=7, stop=StopOrder(savepoint="folder")))
    again.begin()
    again.sinks_restored()
    effects = [effect for worker in WORKERS for effect in again.ready(worker)]
    assert recipients(effects, BeginCheckpoint(1, 0, last=True)) == SOURCES
    again.prepare(1)
    again.saved(1)
    again.committed(1)
    assert [copy.path for copy in of_kind(again.saved(2), CopySavepoint)] == ["folder"]


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
    assert RememberStop(StopOrder()) in job.request(Stop())
    again = new_saving_job(RestorePoint(takes_over=True, attempt=7, stop=StopOrder()))
    again.begin()
    again.sinks_restored()
    effects = [effect for worker in WORKERS for effect in again.ready(worker)]
    assert recipients(effects, BeginCheckpoint(1, 0, last=True)) == SOURCES
