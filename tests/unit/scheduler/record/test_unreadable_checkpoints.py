"""A job whose newest checkpoint can't be read resumes from the previous one, from its first state, or ends."""

from __future__ import annotations

from job_script import WORKERS, recipients, saving_job

from evenflow.engine.errors import JobError
from evenflow.scheduler.protocol.effects import Ended, FindOlder, JobState, RestoreSinks
from evenflow.scheduler.protocol.messages import StopSource
from evenflow.scheduler.protocol.reports import CheckpointState
from evenflow.scheduler.protocol.restore_point import RestorePoint
from evenflow.state.errors import CorruptCheckpointError, StoreUnavailableError


def unreadable(checkpoint, problem="count-0.state is gone"):
    return CorruptCheckpointError("count-0", checkpoint, problem)


def test_unreadable_checkpoint_gives_way_to_the_one_before_or_the_beginning():
    job = saving_job()
    older, _ = job.take_checkpoint(10.0)
    job.take_checkpoint(20.0)
    job.lost("aggregate-0", now=21.0)
    job.tick(22.0)
    job.sinks_restored()
    assert job.failed(unreadable(2)) == [FindOlder(2, "count-0.state is gone")]
    assert job.failed(unreadable(2, "said once more")) == job.lost("aggregate-0") == []
    (sinks,) = job.older_found(2, "count-0.state is gone", older)
    assert sinks == RestoreSinks(2, older, retracts=2), "at once: another try would find the same"
    assert [report.state for report in job.reports()] == [CheckpointState.COMPLETE, CheckpointState.UNREADABLE]
    job.sinks_restored()
    assert job.failed(unreadable(2, "said too late")) == []
    assert job.failed(unreadable(1, "aggregate-1.state is gone")) == [FindOlder(1, "aggregate-1.state is gone")]
    assert job.older_found(1, "aggregate-1.state is gone") == [RestoreSinks(3, None, retracts=2)]
    assert [report.state for report in job.reports()] == [CheckpointState.UNREADABLE] * 2


def test_rows_that_were_retracted_are_not_retracted_again():
    job = saving_job()
    older, _ = job.take_checkpoint(10.0)
    job.take_checkpoint(20.0)
    job.lost("aggregate-0", now=21.0)
    job.tick(22.0)
    job.sinks_restored()
    job.failed(unreadable(2))
    job.older_found(2, "it is gone", older)
    job.sinks_restored()
    job.run()
    newest, _ = job.take_checkpoint(32.0)
    job.lost("aggregate-0")
    assert job.tick(33.0) == [RestoreSinks(3, newest, None)]


def test_job_with_nothing_left_to_go_on_from_ends():
    savepoint, _ = saving_job().take_checkpoint()
    job, error = saving_job(RestorePoint(savepoint, from_savepoint=True)), JobError("can't begin from the savepoint")
    job.lost("aggregate-0", now=1.0)
    job.tick(2.0)
    job.sinks_restored()
    assert job.failed(unreadable(0)) == [FindOlder(0, "count-0.state is gone")], "its workers know a savepoint by no number"
    assert job.older_found(0, "count-0.state is gone", error=error)[-1] == Ended(JobState.FAILED)
    assert job.core.error is error


def test_store_that_does_not_answer_when_an_older_one_is_looked_for_is_asked_again():
    job = saving_job()
    newest, _ = job.take_checkpoint(10.0)
    job.lost("aggregate-0", now=21.0)
    job.tick(22.0)
    job.sinks_restored()
    job.failed(unreadable(1))
    assert job.older_found(1, "it is gone", error=StoreUnavailableError("s3://bucket/f: no answer")) == []
    assert job.core.state is JobState.RESTARTING
    assert job.tick(30.0) == [RestoreSinks(2, newest, None)]


def test_stop_while_an_older_checkpoint_is_looked_for_is_kept():
    job = saving_job()
    job.take_checkpoint(10.0)
    job.stop()
    job.failed(unreadable(1))
    job.older_found(1, "it is gone")
    job.sinks_restored()
    effects = [effect for worker in WORKERS for effect in job.ready(worker)]
    assert recipients(effects, StopSource()) == ["from_items-0", "from_items-1"]
