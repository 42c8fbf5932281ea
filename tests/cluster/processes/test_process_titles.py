"""The titles of a job's processes show the job and the role."""

from __future__ import annotations

import os

import psutil
import pytest
import ray
from watching import actors, until

import evenflow as ef
from evenflow.actors.processes.own_process import ACTORS
from evenflow.actors.processes.process import NAMESPACE


@pytest.fixture
def job():
    flow = ef.Dataflow("titled")
    flow.read(ef.generate(rate=1000, every="50ms", keys=10)).key_by("key").aggregate(n=ef.count()).write(ef.to_list([]))
    job = flow.run(config=ef.JobConfig(parallelism=2, worker=ef.WorkerConfig(warm_spares=1)))
    yield job
    job.cancel()
    job.wait("60s")


def titles():
    """Return the title of each of the job's actors, as `ps` shows it."""
    pids = [ray.get(ray.get_actor(name, namespace=NAMESPACE).__ray_call__.remote(lambda _: os.getpid())) for name in actors()]
    return sorted(psutil.Process(pid).cmdline()[0] for pid in pids)


def test_processes_are_titled_by_job_and_worker_also_one_that_gets_another_task(cluster, job):
    workers = ["aggregate-0", "aggregate-1", "generate-0", "generate-1"]
    until(lambda: job.status().workers == ("generate-0", "generate-1", "aggregate-0", "aggregate-1"), "the job has its workers")
    expected = [f"{ACTORS}titled {role}" for role in (*workers[:2], "coordinator", *workers[2:], "spare")]
    until(lambda: titles() == expected, "each has its title")
    job.scale("aggregate", 3)
    until(lambda: f"{ACTORS}titled aggregate-2" in titles(), "the spare is the new worker")
