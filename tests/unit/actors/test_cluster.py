from __future__ import annotations

from evenflow.actors.cluster import RayJob, WatchedJob
from evenflow.scheduler.job.effects import JobState
from evenflow.scheduler.job.status import JobStatus, Outcome


def test_who_watches_a_job_gives_a_lost_coordinator_as_long_to_come_back_as_who_started_it():
    patience = []

    class Owner(RayJob):
        def call(self, method, *args, timeout):
            patience.append(timeout)

    class Watcher(WatchedJob):
        def call(self, method, *args, timeout):
            patience.append(timeout)
            return Outcome(JobStatus("job", JobState.RUNNING, None, (), 0, 0.0))

    Owner("job", None).progress(0, "")
    Watcher("job", None).progress(0, "")
    owner, watcher = patience
    assert watcher == owner
