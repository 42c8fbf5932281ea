"""A monitor polls a job for what is new, and keeps its history when the job has ended."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.scheduler.job.view_cursor import OVERLAP
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import ShowStatus, ShowView
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.scheduler.protocol.view import JobView, StageView
from evenflow.views.polling import JobMonitor, poll_views

STAGES = (StageView("read", ("read",), ("read-0",), (), is_source=True),)


class Job:
    """Answers with a view a second, for some seconds; the windows of the last two seconds are in each."""

    def __init__(self, seconds=3):
        self.now, self.left, self.asked = 100.0, seconds, []

    def ask(self, request):
        if isinstance(request, ShowStatus):
            return self.status()
        assert isinstance(request, ShowView)
        if not self.left:
            raise ef.JobNotRunningError("the job has ended")
        self.asked.append(request.since)
        self.now, self.left = self.now + 1, self.left - 1
        windows = tuple(WorkerWindow("read-0", self.now - back, 1.0, rows_in=10) for back in (2, 1))
        return JobView(self.now, self.status(), STAGES, windows)

    def status(self):
        state = JobState.RUNNING if self.left else JobState.FINISHED
        return JobStatus("clicks", state, None, ("read-0",), 0, self.now - 100)


def test_each_view_is_asked_for_from_a_little_before_the_last():
    job = Job()
    monitor = JobMonitor("clicks", job)
    for _ in range(3):
        monitor.poll()
    assert job.asked == [0.0, 101.0 - OVERLAP, 102.0 - OVERLAP]


def test_windows_that_views_repeat_count_once_in_the_history():
    monitor = JobMonitor("clicks", Job())
    for _ in range(3):
        history = monitor.poll()
    assert {second["t"]: second["rate"] for second in history.whole()["seconds"]} == {99: 10, 100: 10, 101: 10, 102: 10}
    assert history.snapshots.figures()[0].rows_in == 40


def test_the_last_history_of_a_job_that_has_ended_remains():
    monitor = JobMonitor("clicks", Job(1))
    seen = monitor.poll()
    assert monitor.ended
    assert monitor.last() is seen
    with pytest.raises(ef.JobNotRunningError):
        monitor.poll()


def test_a_job_that_had_ended_before_has_no_history():
    with pytest.raises(ef.JobNotRunningError):
        JobMonitor("clicks", Job(0)).last()


def test_views_are_polled_until_the_job_has_ended():
    job = Job(2)
    assert [view.now for view in poll_views(job, sleep=lambda seconds: None)] == [101.0, 102.0]


def test_a_coordinator_that_does_not_answer_in_time_is_asked_again():
    job, late = Job(1), [ef.JobTimeoutError("too late")]

    def ask(request, answer=job.ask):
        if late:
            raise late.pop()
        return answer(request)

    job.ask = ask
    assert [type(found) for found in poll_views(job, sleep=lambda seconds: None)] == [ef.JobTimeoutError, JobView]
