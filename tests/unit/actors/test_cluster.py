from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
import ray
from patience import patience

import evenflow as ef
from evenflow.actors.cluster import RayJob, WatchedJob, start_cluster
from evenflow.actors.processes.ray_workers import RayWorkers
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.messages import Shutdown
from evenflow.scheduler.protocol.requests import ShowProgress, ShowStatus
from evenflow.scheduler.protocol.status import JobOutcome, JobStatus


def test_a_watcher_gives_a_lost_coordinator_as_much_time_as_the_driver_does():
    patience = []

    class Owner(RayJob):
        def call(self, method, *args, timeout):
            patience.append(timeout)

    class Watcher(WatchedJob):
        def call(self, method, *args, timeout):
            patience.append(timeout)
            return JobOutcome(JobStatus("job", JobState.RUNNING, None, (), 0, 0.0))

    Owner("job", None).ask(ShowProgress(0))
    Watcher("job", None).ask(ShowProgress(0))
    owner, watcher = patience
    assert watcher == owner


@pytest.mark.parametrize("problem", [AttributeError("no attribute 'pool'"), ef.JobLostError("it is gone"), KeyboardInterrupt()])
def test_closing_a_job_ends_its_coordinator_and_releases_its_processes_whatever_goes_wrong(problem, monkeypatch):
    ended = []
    monkeypatch.setattr(ray, "kill", ended.append)

    class Unwell(RayJob):
        def call(self, method, *args, timeout=0.0):
            raise problem

    job = Unwell("job", "its coordinator", lambda: ended.append("given back"))
    if isinstance(problem, Exception):
        job.close()
        assert str(problem) in str(job.ask(ShowStatus()).error)
    else:
        with pytest.raises(KeyboardInterrupt):
            job.close()
    assert ended == ["its coordinator", "given back"]


def test_workers_of_a_job_that_is_given_up_before_it_starts_get_no_commands():
    flow = ef.Dataflow("unstarted")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    workers = RayWorkers(flow.plan(), ef.JobConfig(), None)
    workers.tell("from_items-0", Shutdown())
    workers.close()


def test_threads_that_start_a_cluster_at_a_time_start_one(monkeypatch):
    begun, gate = [], threading.Barrier(8)
    monkeypatch.setattr(ray, "is_initialized", lambda: bool(begun))

    def init(**settings):
        assert not begun, "Perhaps you called ray.init twice by accident?"
        threading.Event().wait(0.05)
        begun.append(settings)
        return SimpleNamespace(address_info={"gcs_address": "192.0.2.1:1"})

    monkeypatch.setattr(ray, "init", init)

    def start():
        gate.wait(patience(30))
        start_cluster()

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience(30))
    assert len(begun) == 1


def test_ray_that_does_not_come_up_in_time_is_an_error_that_says_what_to_do(monkeypatch):
    def init(**settings):
        raise Exception("The current node timed out during startup")  # noqa: TRY002 -- as Ray does

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(ef.ClusterError, match=r"did not start on this machine: .* timed out during startup; try again .* RAY_ADDRESS"):
        start_cluster()
