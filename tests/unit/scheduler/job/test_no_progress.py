"""A job knows for how long it has neither taken nor sent rows, nor completed a checkpoint."""

from __future__ import annotations

from job_script import saving_job

from evenflow.engine.errors import JobError
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.protocol.requests import ShowStatus


def still(job, now):
    job.tick(now)
    return job.ask(ShowStatus()).no_progress_seconds


def test_rows_and_complete_checkpoints_are_progress_and_a_restart_is_none():
    job = saving_job()
    assert still(job, 1.0) == 0.0
    job.report("aggregate-0", WorkerWindow("aggregate-0", 3.0, 1.0))
    assert still(job, 4.0) == 3.0, "a window without rows is no progress"
    job.report("aggregate-0", WorkerWindow("aggregate-0", 4.0, 1.0, rows_out=1))
    assert still(job, 7.0) == 2.0
    job.take_checkpoint(15.0)
    assert still(job, 16.0) <= 1.0
    job.failed(JobError("a file is gone"), 20.0)
    assert still(job, 26.0) >= 10.0
    job.cancel()
    assert job.ask(ShowStatus()).no_progress_seconds == 0.0
