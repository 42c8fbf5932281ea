"""Before a pod ends, its jobs take a checkpoint, or reach the end of a stop that has begun."""

from __future__ import annotations

from types import SimpleNamespace

import evenflow as ef
from evenflow.engine.errors import JobLostError, JobNotRunningError
from evenflow.kubernetes.pre_stop import save
from evenflow.scheduler.protocol.effects import JobState


class RunningJob:
    """A job's handle. `states`: the states that it shows one after another; `problem`: the error of its checkpoint."""

    def __init__(self, *states, problem=None):
        self._states, self._problem = list(states), problem
        self.did = []

    def status(self):
        return SimpleNamespace(state=self._states.pop(0) if len(self._states) > 1 else self._states[0])

    def checkpoint(self, timeout):
        if self._problem is not None:
            raise self._problem
        self.did.append("checkpoint")
        return SimpleNamespace(number=7)

    def wait(self, timeout):
        self.did.append("wait")


def saved(job):
    return save(["clicks"], 30.0, lambda _: job)[0]


def test_a_running_job_takes_a_checkpoint_and_runs_on():
    job = RunningJob(JobState.RUNNING)
    assert saved(job) == "job `clicks` has checkpoint 7"
    assert job.did == ["checkpoint"]


def test_a_job_that_is_stopping_gets_the_time_for_it():
    job = RunningJob(JobState.STOPPING)
    assert saved(job) == "job `clicks` has stopped"
    assert job.did == ["wait"]


def test_a_job_that_begins_to_stop_meanwhile_is_waited_for():
    job = RunningJob(JobState.RUNNING, JobState.STOPPING)
    assert saved(job) == "job `clicks` has stopped"
    assert job.did == ["checkpoint", "wait"]


def test_a_job_that_can_not_be_saved_delays_no_other():
    failing = RunningJob(JobState.RUNNING, problem=ef.RequestError("the store is full"))
    lost = RunningJob(JobState.RUNNING, problem=JobLostError("its coordinator is gone"))
    jobs = {"full": failing, "lost": lost, "fine": RunningJob(JobState.RUNNING)}

    def find(name):
        if name not in jobs:
            raise JobNotRunningError(f"no job `{name}` runs")
        return jobs[name]

    assert save(["full", "lost", "gone", "fine"], 30.0, find) == [
        "job `full` continues from an earlier checkpoint: the store is full",
        "job `lost` has ended: its coordinator is gone",
        "job `gone` has ended: no job `gone` runs",
        "job `fine` has checkpoint 7",
    ]
    assert save([], 30.0, find) == []
