"""A detached job continues after the process that started it has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
import ray
from watching import PATIENCE, actors, until

import evenflow as ef
from evenflow.actors.cluster import NAMESPACE
from evenflow.scheduler.protocol.effects import JobState

START = """
import sys
import evenflow as ef

flow = ef.Dataflow("detached")
rows = flow.read(ef.generate(rate=1000, every="50ms", keys=20))
rows.write(ef.write_parquet(sys.argv[1] + "/rows", name="to_rows"))
rows.key_by("key").aggregate(n=ef.count(), emit="final").named("counts").write(ef.write_parquet(sys.argv[1] + "/counts"))
flow.run(detached=True, config=ef.JobConfig(checkpoint=ef.CheckpointConfig(sys.argv[1] + "/checkpoints", interval="200ms")))
print("started", flush=True)
sys.stdin.read()
"""


def test_a_detached_job_goes_on_when_its_driver_is_killed_and_recovers_without_it_too(cluster, folder, tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", START, str(tmp_path)]
    environment = os.environ | {"RAY_ADDRESS": cluster}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout.readline() == "started\n"
        driver.kill()
        driver.wait(PATIENCE)
    job = ef.connect("detached")
    for victim in ("counts-0", "coordinator"):
        newest = max((report.number for report in job.checkpoints()), default=0)
        kill("detached", victim)
        until(lambda newest=newest: job.checkpoints() and job.checkpoints()[-1].number > newest + 1, "it goes on")
    job.stop(drain=True)
    assert job.wait("60s").status().state is JobState.FINISHED
    read = pq.read_table(tmp_path / "rows")["seq"].to_pylist()
    assert sorted(read) == list(range(len(read)))
    assert sum(pq.read_table(tmp_path / "counts")["n"].to_pylist()) == len(read) > 0
    follow = ef.Dataflow("detached")  # the name is free at once
    follow.read(ef.from_items([1])).write(ef.to_list([]))
    follow.run().wait("60s")
    until(lambda: not actors(), "no actor is left")


def kill(job, actor):
    os.kill(ray.get(ray.get_actor(f"{job}/{actor}", namespace=NAMESPACE).__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)


def test_a_detached_job_refuses_parts_that_need_the_driver():
    flow = ef.Dataflow("tied")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    with pytest.raises(ef.FlowError, match="`to_list` can't be part of a detached job: the list would end with this process"):
        flow.run(detached=True)
    with pytest.raises(ef.FlowError, match='detached=True is for runtime="ray"'):
        flow.run(runtime="local", detached=True)
