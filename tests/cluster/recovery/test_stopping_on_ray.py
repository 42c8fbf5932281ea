"""Jobs on Ray that are stopped and resumed, programs that don't wait, and drivers that get a SIGTERM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from watching import PATIENCE, actors, until

pytestmark = pytest.mark.timeout(400)  # drivers start together with those of other tests

PROGRAM = """
import sys, time
import evenflow as ef

folder, name, how, savepoint = sys.argv[1:]

def numbers(partition, position):
    for n in range(position or 0, 2_000):
        while n == 1_000 and how != "to its end":  # it can't end before it is stopped
            yield None
        if n % 20 == 0:
            time.sleep(0.05)  # the program ends before the job
        yield {"key": "ab"[n % 2], "ts": n}, n + 1

flow = ef.Dataflow(name)
rows = flow.read(ef.from_generator(numbers, event_time="ts", unit="s"))
counts = rows.key_by("key").window(ef.tumbling("100s")).aggregate(n=ef.count())
counts.write(ef.write_parquet(folder + "/out", append=True))
config = ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(folder + "/checkpoints", interval="200ms"))
job = flow.run(config=config, from_savepoint=savepoint or None)
if how == "stop":
    while job.status().completed_checkpoints < 2:
        time.sleep(0.05)
    job.stop()
    job.wait()
elif how == "sigterm":
    while job.status().completed_checkpoints < 2:
        time.sleep(0.05)
    print("ready", flush=True)
    time.sleep(600)
"""


def driver(folder: Path, cluster: str, name: str, how: str, savepoint: Path | str = "") -> subprocess.Popen[str]:
    """Start a process that runs the program on the cluster."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder), name, how, str(savepoint)]
    environment = os.environ | {"RAY_ADDRESS": cluster}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    """Wait until the process has ended successfully; return its stderr."""
    with process:
        _, err = process.communicate(timeout=5 * PATIENCE)
    assert process.returncode == 0, err
    return err


def newest(folder: Path, name: str) -> Path:
    return max((folder / "checkpoints" / name).glob("checkpoint-*/manifest")).parent


def windows(folder: Path) -> list[tuple[str, int, int]]:
    rows = pq.read_table(folder / "out").to_pylist()
    return sorted((row["key"], round(row["window_start"].timestamp()), row["n"]) for row in rows)


ALL = sorted((key, start, 50) for key in "ab" for start in range(0, 2_000, 100))


def test_job_that_is_stopped_goes_on_in_a_program_without_wait_and_each_window_is_written_once(cluster, folder, tmp_path):
    ended(driver(tmp_path, cluster, "stopped", "stop"))
    assert all(n == 50 for _, _, n in windows(tmp_path)), "a window that is open is not emitted"
    said = ended(driver(tmp_path, cluster, "stopped", "to its end", newest(tmp_path, "stopped")))
    assert "job `stopped` is still running: waiting for it to end; Ctrl-C cancels it" in said
    assert windows(tmp_path) == ALL


def test_sigterm_stops_a_job_in_order_and_leaves_nothing(cluster, folder, tmp_path):
    process = driver(tmp_path, cluster, "terminated", "sigterm")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    said = ended(process)
    assert "job `terminated` is stopping because of a SIGTERM; another one cancels it" in said
    assert "Traceback" not in said
    assert "Stack" not in said
    until(lambda: not actors(), "no actor is left")
    ended(driver(tmp_path, cluster, "terminated", "to its end", newest(tmp_path, "terminated")))
    assert windows(tmp_path) == ALL
