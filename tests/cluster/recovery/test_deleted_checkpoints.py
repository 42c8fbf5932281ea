"""Files of a running job are deleted, truncated and altered, and its processes killed: right rows, or a job that stops and names
the loss.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

import pyarrow.parquet as pq
import pytest
from watching import PATIENCE, actors, end, pid, socket_folders, until

import evenflow as ef
from evenflow.connectors.exchange.exchange_folder import ExchangeFolder
from evenflow.scheduler.protocol.effects import JobState
from evenflow.testing.settings import changed

JOBS = []


@pytest.fixture(autouse=True)
def no_job_outlives_a_failed_test(nothing_outlives_its_test):
    yield
    while JOBS:
        JOBS.pop().cancel()


def kill(job, *actors):
    """Kill all of these at the same time."""
    for process in [pid(job, actor) for actor in actors]:
        os.kill(process, signal.SIGKILL)


def recover(job, attempt):
    """Wait until it runs in a later attempt."""
    until(lambda: job.status().attempt > attempt and job.status().state is JobState.RUNNING, f"{job.name} runs again")


def newest(folder):
    return max(folder.glob("checkpoint-*/manifest")).parent


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def delete_all(paths):
    for path in paths:
        remove(path)


DAMAGES = {
    "the newest checkpoint": lambda folder: remove(newest(folder)),
    "all manifests": lambda folder: delete_all(list(folder.glob("checkpoint-*/manifest"))),
    "the job's folder": remove,
}


def numbers(name, folder, sink):
    """Write numbered rows to every kind of sink that can retract, and to `sink`."""

    def number(state, row):
        n = (state or 0) + 1
        return n, {"seq": row["seq"], "key": row["key"], "n": n}

    flow = ef.Dataflow(name)
    numbered = flow.read(ef.generate(rate=500, every="10ms", keys=10)).key_by("key").stateful_map(number).named("count")
    numbered.write(sink)
    numbered.write(ef.write_parquet(folder / "parquet"))
    numbered.write(ef.to_spark(path=folder / "spark"))
    return flow


def config(tmp_path, **options):
    return changed(
        ef.JobConfig(
            key_groups=8,
            checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval=None),
            restart=ef.RestartConfig(delay="10ms"),
        ),
        **options,
    )


def test_rows_of_deleted_checkpoints_are_retracted_whichever_process_is_killed(tmp_path):
    rows = []
    job = numbers("forgetful", tmp_path, ef.to_list(rows)).run(config=config(tmp_path))
    JOBS.append(job)
    running, completed = 0.0, 0
    victims_of = (("coordinator", "count-0"), ("coordinator",), ("coordinator",))
    for damage, victims in zip(DAMAGES.values(), victims_of, strict=True):
        for _ in range(2):
            job.checkpoint()
            completed += 1
        status = job.status()
        assert (status.running_seconds > running, status.completed_checkpoints) == (True, completed), "they are counted on"
        running = status.running_seconds
        damage(tmp_path / "checkpoints" / "forgetful")
        kill(job, *victims)
        recover(job, status.attempt)
    job.checkpoint()
    job.stop(drain=True)
    job.wait("60s")
    expected = sorted((row["seq"], row["key"], row["n"]) for row in rows)
    assert [seq for seq, _, _ in expected] == list(range(len(rows))), "each row once, none missing"
    spark = ExchangeFolder(tmp_path / "spark")
    for files in (sorted((tmp_path / "parquet").glob("*.parquet")), [file.path for file in spark.committed(spark.latest())]):
        assert sorted(tuple(row.values()) for row in pq.read_table(files).to_pylist()) == expected


def test_job_whose_sink_can_not_retract_stops_and_names_the_missing_checkpoint(tmp_path):
    class Log(type(ef.to_list([]))):
        retractable = False

    rows = []
    job = numbers("unforgiving", tmp_path, Log(rows, "to_log")).run(config=config(tmp_path))
    JOBS.append(job)
    for _ in range(2):
        job.checkpoint()
    until(lambda: rows, "rows are delivered")
    DAMAGES["all manifests"](tmp_path / "checkpoints" / "unforgiving")
    kill(job, "coordinator")
    words = (
        r"(?s)checkpoint 2, its newest, is damaged or missing, and it would continue from the beginning, but sink `to_log` can't retract"
    )
    with pytest.raises(ef.JobError, match=words):
        job.wait("60s")
    assert len({row["seq"] for row in rows}) == len(rows)


START = """
import sys
import evenflow as ef

def number(state, row):
    n = (state or 0) + 1
    return n, {"seq": row["seq"], "key": row["key"], "n": n}

flow = ef.Dataflow("damaged")
numbered = flow.read(ef.generate(rate=500, every="10ms", keys=10)).key_by("key").stateful_map(number).named("count")
numbered.write(ef.write_parquet(sys.argv[1] + "/parquet"))
numbered.write(ef.to_spark(path=sys.argv[1] + "/spark"))
checkpoint = ef.CheckpointConfig(sys.argv[1] + "/checkpoints", interval=None)
worker, restart = ef.WorkerConfig(warm_spares=1), ef.RestartConfig(delay="10ms")
flow.run(detached=True, config=ef.JobConfig(key_groups=8, checkpoint=checkpoint, restart=restart, worker=worker))
print("started", flush=True)
sys.stdin.read()
"""


def cut(path):
    path.write_bytes(path.read_bytes()[:-7])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def take_checkpoints(job):
    """Take two checkpoints, even if the job restores once more meanwhile, because a worker has found damaged state."""

    def taken():
        with suppress(ef.RequestError):
            return job.checkpoint()

    for _ in range(2):
        until(taken, "a checkpoint is complete")


FILES = {
    "the newest manifest": lambda saved, _: [newest(saved) / "manifest"],
    "all manifests": lambda saved, _: list(saved.glob("checkpoint-*/manifest")),
    "the newest state": lambda saved, _: list(newest(saved).glob("*.state")),
    "all state": lambda saved, _: list(saved.glob("checkpoint-*/*.state")),
    "parts that are being written": lambda _, out: list((out / "parquet").glob(".part-*.inprogress")),
    "the newest part": lambda _, out: [max((out / "parquet").glob("part-*"))],
    "the newest log file": lambda _, out: [max((out / "spark" / "_spark_metadata").iterdir(), key=lambda path: int(path.name))],
}


@pytest.fixture
def driver(cluster, tmp_path):
    """Run the process that starts the detached job `damaged`."""
    command = [sys.executable, "-W", "ignore", "-c", START, str(tmp_path)]
    environment = os.environ | {"RAY_ADDRESS": cluster}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "started\n"
        yield process
        process.kill()
        process.wait(PATIENCE)
    end(name for name in actors() if name.startswith("damaged/"))  # a detached job's coordinator lingers to say how the job ended


@pytest.mark.nightly
@pytest.mark.timeout(300)  # nine recoveries; each starts a process
def test_rows_are_right_whatever_is_damaged_and_whichever_process_is_killed(driver, folder, tmp_path):
    job = ef.connect("damaged")
    for files, damage, victims in (
        ("the newest manifest", flip, ("driver", "coordinator")),
        ("the newest manifest", cut, ("coordinator",)),
        ("all manifests", remove, ("coordinator", "count-0")),
        ("the newest state", remove, ("count-0",)),
        ("the newest state", cut, ("count-0",)),
        ("the newest state", flip, ("count-0",)),
        ("all state", flip, ("count-0",)),
        ("parts that are being written", remove, ("count-0",)),
        ("parts that are being written", cut, ("count-0",)),
    ):
        take_checkpoints(job)
        until(lambda: FILES["parts that are being written"](None, tmp_path), "rows are written behind the checkpoint")
        attempt = job.status().attempt
        paths = FILES[files](tmp_path / "checkpoints" / "damaged", tmp_path)
        assert paths, files
        for path in paths:
            damage(path)
        if "driver" in victims:
            driver.kill()
        kill(job, *(victim for victim in victims if victim != "driver"))
        recover(job, attempt)
    take_checkpoints(job)
    job.stop(drain=True)
    job.wait("60s")
    until(lambda: not socket_folders(folder), "the coordinator has taken down what the job had here")
    spark = ExchangeFolder(tmp_path / "spark")
    for written in (sorted((tmp_path / "parquet").glob("*.parquet")), [file.path for file in spark.committed(spark.latest())]):
        rows = sorted(tuple(row.values()) for row in pq.read_table(written).to_pylist())
        assert [seq for seq, _, _ in rows] == list(range(len(rows))), "each row once, none missing"
        counts = {}
        for _, key, n in rows:
            counts.setdefault(key, []).append(n)
        assert all(sorted(numbers) == list(range(1, len(numbers) + 1)) for numbers in counts.values())


@pytest.mark.parametrize(
    ("files", "damage", "victim", "words"),
    [
        pytest.param("the newest part", remove, "count-0", r"`write_parquet`: .*prepared is missing", id="a part is deleted"),
        pytest.param("the newest part", cut, "coordinator", r"`write_parquet`: .* bytes, and .* were written", id="a part is cut"),
        pytest.param("the newest log file", cut, "count-0", r"_spark_metadata/0, line 2: not an entry", id="a log file is cut"),
    ],
)
def test_job_whose_committed_files_are_damaged_stops_and_says_which(files, damage, victim, words, tmp_path):
    job = numbers("hopeless", tmp_path, ef.to_list([])).run(config=config(tmp_path, restart={"most": 1}, worker={"warm_spares": 1}))
    JOBS.append(job)
    until(lambda: FILES["parts that are being written"](None, tmp_path), "rows are written")
    job.checkpoint()
    for path in FILES[files](tmp_path / "checkpoints" / "hopeless", tmp_path):
        damage(path)
    kill(job, victim)
    with pytest.raises(ef.EvenflowError, match=f"(?s){words}"):
        job.wait("60s")
