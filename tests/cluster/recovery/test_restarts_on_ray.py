"""The same program, started again on Ray after its process was killed, continues its run, and one process at a time owns it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
import ray
from watching import PATIENCE, actors, socket_folders, until

import evenflow as ef
from evenflow.actors.cluster import NAMESPACE

TOTAL = 3_000
PROGRAM = f"""
import sys
import evenflow as ef

waits = sys.argv[2] == "waits"

def numbers(partition, position):
    for n in range(position or 0, {TOTAL}):
        if n >= {TOTAL} // 2 and waits:
            while True:
                yield None
        yield {{"n": n, "key": n % 20}}, n + 1

def count(seen, row):
    return (seen or 0) + 1, {{"n": row["n"], "seen": (seen or 0) + 1}}

def start(parallelism=1):
    flow = ef.Dataflow("again")
    rows = flow.read(ef.from_generator(numbers, poll_every="10ms")).key_by("key").stateful_map(count).named("seen")
    rows.write(ef.write_parquet(sys.argv[1] + "/out"))
    config = ef.JobConfig(parallelism=parallelism, checkpoint=ef.CheckpointConfig(sys.argv[1] + "/checkpoints", interval="300ms"))
    return flow.run(config=config)

job = start(int(sys.argv[3]))
if waits:
    job.checkpoint()
    job.checkpoint()
    print("saved", flush=True)
job.wait()
print("finished", flush=True)
"""


def program(cluster, folder, does, parallelism=1):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder), does, str(parallelism)]
    return subprocess.Popen(command, env=os.environ | {"RAY_ADDRESS": cluster}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.timeout(400)
def test_program_that_was_killed_continues_and_its_second_start_is_refused(cluster, folder, tmp_path):
    with program(cluster, tmp_path, "waits") as first:
        assert first.stdout.readline() == "saved\n"
        with program(cluster, tmp_path, "goes on") as second:
            said = second.communicate(timeout=PATIENCE)[1]
        assert f"job `again` is already running: process {first.pid} on " in said
        assert f"on the Ray cluster {cluster}" in said
        first.send_signal(signal.SIGKILL)
        first.wait(PATIENCE)
    until(lambda: not actors(), "Ray has ended what the process had")
    # A job that was killed with its process does not remove it at once.
    until(lambda: not [shutil.rmtree(left, ignore_errors=True) for left in socket_folders(folder)], "no folder is left")
    with program(cluster, tmp_path, "goes on", parallelism=2) as third:
        printed, said = third.communicate(timeout=2 * PATIENCE)
    assert printed == "finished\n", said
    assert "job `again` continues its run from checkpoint" in said
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert sorted(row["n"] for row in rows) == list(range(TOTAL))
    assert {row["n"]: row["seen"] for row in rows} == {n: n // 20 + 1 for n in range(TOTAL)}


@pytest.mark.timeout(400)
def test_run_whose_coordinator_is_lost_keeps_it(cluster, tmp_path):
    """The coordinator that replaces it belongs to the same start."""
    flow = ef.Dataflow("keeps")
    flow.read(ef.generate(rate=500, every="20ms", keys=5)).write(ef.write_parquet(tmp_path / "out"))
    job = flow.run(config=ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="200ms")))
    number = job.checkpoint().number
    coordinator = ray.get_actor("keeps/coordinator", namespace=NAMESPACE)
    os.kill(ray.get(coordinator.__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)
    until(lambda: job.status().state.value == "running" and job.status().attempt > 0, "it is back")
    assert job.checkpoint().number > number
    job.stop()
    job.wait("60s")
    read = sorted(pq.read_table(tmp_path / "out")["seq"].to_pylist())
    assert read == list(range(len(read)))
