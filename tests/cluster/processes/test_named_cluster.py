"""Workers reserve CPUs by default on a cluster that the user names, and none on one that the program starts for itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from patience import patience

import evenflow as ef

pytestmark = pytest.mark.nightly

PROGRAM = """
import sys, time
import ray
import evenflow as ef

if sys.argv[1] == "init":
    ray.init(sys.argv[2])


def job(name, parallelism, **worker):
    flow = ef.Dataflow(name)
    flow.read(ef.generate(rate=100, every="50ms", keys=5)).write(ef.to_list([]))
    return flow.run(parallelism=parallelism, config=ef.JobConfig(worker=ef.WorkerConfig(**worker)))


running = job("fits", 2)
deadline = time.monotonic() + float(sys.argv[3])
while ray.available_resources().get("CPU", 0) > 0:
    assert time.monotonic() < deadline, "the job has not reserved both CPUs"
    time.sleep(0.1)
running.cancel()
try:
    running.wait()
except ef.JobError:
    pass
try:
    job("too_large", 3, start_timeout="3s")
except ef.ClusterError as error:
    print(error)
job("reserves_nothing", 3, cpus=0).cancel()
print("all have run")
"""


@pytest.mark.parametrize("how", ["variable", "init"])
def test_a_job_on_a_named_cluster_reserves_a_cpu_for_each_worker_or_says_what_to_set(cluster, how):
    environment = os.environ | {"EVENFLOW_WORKER_CPUS": ""} | ({"RAY_ADDRESS": cluster} if how == "variable" else {})
    command = [sys.executable, "-c", PROGRAM, how, cluster, str(patience(60))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=patience(240), check=False)
    assert "all have run" in done.stdout, done.stderr
    assert "did not start within 3s" in done.stdout
    assert "each needs 1 CPU" in done.stdout
    assert "WorkerConfig(cpus=0) reserves nothing" in done.stdout


@pytest.mark.usefixtures("cluster")
def test_a_job_on_a_cluster_of_its_own_process_reserves_nothing(monkeypatch):
    monkeypatch.setenv("EVENFLOW_WORKER_CPUS", "")
    rows = []
    flow = ef.Dataflow("at_home")
    flow.read(ef.generate(total=100, keys=5)).write(ef.to_list(rows))
    flow.run(parallelism=3).wait("60s")
    assert len(rows) == 100
