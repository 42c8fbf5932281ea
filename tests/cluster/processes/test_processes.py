"""Jobs and the processes around them: a driver that is interrupted or killed, another shell."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from patience import patience
from watching import PATIENCE, actors, processes_of, socket_folders, until

import evenflow as ef
from evenflow.actors.processes.own_process import ACTORS
from evenflow.scheduler.protocol.effects import JobState

pytestmark = pytest.mark.timeout(400)  # clusters start while those of other tests run

START_SECONDS = patience(150)
"""The most seconds that a cluster and a job in it take to start, while all other tests run."""

START = """
import sys
import evenflow as ef

def announce(row):
    if row["n"] == 1:
        print("running", flush=True)

flow = ef.Dataflow(sys.argv[1])
numbers = flow.read(ef.generate(rate=1000, keys=5))
numbers.key_by("key").aggregate(n=ef.count()).write(ef.to_callback(announce))
for left in (2, 1, 0):
    try:
        job = flow.run()
        break
    except ef.ClusterError:  # a cluster of its own has 30 s to start, which a busy machine may exceed
        if not left:
            raise
job.wait()
print("ended", job.status().state.value, flush=True)
"""


@contextmanager
def running(command, log: Path, **environment):
    """Run a process in its own process group, as a shell starts it, that writes to `log`."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"RAY_ADDRESS", "RAY_worker_niceness"}}
    env = inherited | {"PYTHONUNBUFFERED": "1"} | environment
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, env=env, start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def script(source, tmp_path, *arguments):
    path = tmp_path / f"script_{arguments[0]}_{len(source)}.py"
    path.write_text(source)
    return [sys.executable, str(path), *arguments]


def says(log, text, process):
    """Wait until the process has written `text`."""
    until(lambda: text in log.read_text() or process.poll() is not None, f"it says {text}", START_SECONDS)
    assert text in log.read_text(), log.read_text()


def connected(name, process):
    """Connect to another process's job on the shared cluster, whose workers print nothing, once it has read rows."""
    until(lambda: f"{name}/coordinator" in actors() or process.poll() is not None, "the job starts", START_SECONDS)
    job = ef.connect(name)
    until(lambda: sum(figures.rows_in for figures in job.metrics()), "the job has taken rows")
    return job


def test_own_cluster_runs_workers_at_normal_priority_and_ctrl_c_leaves_nothing_behind(cluster, folder, tmp_path):
    own, log = folder / "own", tmp_path / "log"
    own.mkdir()

    def workers():
        """Their processes, which have their titles back a moment after each call of Ray's."""
        return [pid for pid, command in processes_of(own).items() if command.startswith(ACTORS) and " coordinator" not in command]

    with running(script(START, tmp_path, "interrupted"), log, TMPDIR=str(own)) as process:
        says(log, "running", process)
        until(lambda: len(workers()) == 2, "two workers run")
        assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in workers()] == [0, 0]
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) != 0
    until(lambda: not processes_of(own), "no process is left")
    assert not [*own.glob("evenflow-*/*"), *socket_folders(own)], log.read_text()
    assert "KeyboardInterrupt" in log.read_text()
    assert not any(word in log.read_text() for word in ("Error", "WARNING", "Token"))


def test_a_second_process_sees_and_stops_a_job(cluster, folder, tmp_path):
    log = tmp_path / "log"
    with running(script(START, tmp_path, "seen"), log, RAY_ADDRESS=cluster) as process:
        job = connected("seen", process)
        assert job.status().workers == ("generate-0", "aggregate-0")
        with pytest.raises(ef.JobError, match="no job `unseen` runs on this cluster; running: seen"):
            ef.connect("unseen")
        job.stop(drain=True)
        assert job.wait("60s").status().state is JobState.FINISHED
        assert process.wait(PATIENCE) == 0
    assert "ended finished" in log.read_text()


def test_a_killed_driver_ends_its_job_and_its_watchers_get_an_error(cluster, folder, tmp_path):
    log = tmp_path / "log"
    with running(script(START, tmp_path, "orphaned"), log, RAY_ADDRESS=cluster) as process:
        job = connected("orphaned", process)
        process.kill()
        with pytest.raises(ef.JobError, match="job `orphaned`: its coordinator was lost"):
            job.wait("60s")
    until(lambda: not actors(), "no actor is left")
    until(lambda: not [shutil.rmtree(left, ignore_errors=True) for left in socket_folders(folder)], "no folder is left")


CONNECT = """
import sys
import evenflow as ef

try:
    ef.connect(sys.argv[1])
except ef.EvenflowError as error:
    print(error)
"""


@contextmanager
def raylet(address):
    """Run a process that looks like the raylet of a cluster at `address`."""
    command = ["raylet", "-c", "import sys; sys.stdin.read()", f"--gcs-address={address}"]
    with subprocess.Popen(command, executable=sys.executable, stdin=subprocess.PIPE) as process:
        yield
        process.stdin.close()
        process.wait(PATIENCE)


def test_a_process_does_not_guess_which_of_several_clusters_is_meant(cluster, folder, tmp_path):
    log, connect = tmp_path / "log", script(CONNECT, tmp_path, "nowhere")
    with raylet("127.0.0.1:1"):
        with running(connect, log) as process:
            assert process.wait(PATIENCE) == 0
        told = log.read_text()
        words = ("the job `nowhere` runs on none of your", f"{cluster} has", "127.0.0.1:1 does not answer")
        assert all(each in told for each in words), told
        assert "set RAY_ADDRESS" in told
        with running(connect, log, RAY_ADDRESS=cluster) as process:
            assert process.wait(PATIENCE) == 0
        assert "no job `nowhere` runs on this cluster; running: none" in log.read_text()
