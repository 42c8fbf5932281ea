"""Files of a running job are deleted and its processes killed: right rows, or a job that stops and says what is lost."""

from __future__ import annotations

import os
import shutil
import signal

import pyarrow.parquet as pq
import pytest
import ray
from watching import until

import evenflow as ef
from evenflow.actors.cluster import NAMESPACE
from evenflow.connectors.spark.exchange import Exchange
from evenflow.scheduler.job_effects import JobState
from evenflow.testing.settings import changed

JOBS = []


@pytest.fixture(autouse=True)
def no_job_outlives_a_failed_test(nothing_outlives_its_test):
    yield
    while JOBS:
        JOBS.pop().cancel()


def kill(job, *actors):
    """All of these at one time."""
    handles = [ray.get_actor(f"{job.name}/{actor}", namespace=NAMESPACE) for actor in actors]
    for process in ray.get([handle.__ray_call__.remote(lambda _: os.getpid()) for handle in handles]):
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
    """Numbered rows into every kind of sink that takes back, and into `sink`."""

    def number(state, row):
        n = (state or 0) + 1
        return n, {"seq": row["seq"], "key": row["key"], "n": n}

    flow = ef.Dataflow(name)
    numbered = flow.read(ef.generate(rate=500, keys=10)).key_by("key").stateful_map(number).named("count")
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


def test_rows_of_deleted_checkpoints_are_taken_back_whoever_is_killed(tmp_path):
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
    job.stop()
    job.wait("60s")
    expected = sorted((row["seq"], row["key"], row["n"]) for row in rows)
    assert [seq for seq, _, _ in expected] == list(range(len(rows))), "each row once, none left out"
    spark = Exchange(tmp_path / "spark")
    for files in (sorted((tmp_path / "parquet").glob("*.parquet")), [file.path for file in spark.committed(spark.latest())]):
        assert sorted(tuple(row.values()) for row in pq.read_table(files).to_pylist()) == expected


def test_job_whose_sink_can_not_take_back_stops_and_says_which_checkpoint_is_gone(tmp_path):
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
    words = r"(?s)checkpoint 2, its newest, is damaged or gone, and it would go on from the beginning, but sink `to_log` can't take back"
    with pytest.raises(ef.JobError, match=words):
        job.wait("60s")
    assert len({row["seq"] for row in rows}) == len(rows)
