"""Many jobs in one driver leave nothing behind in it, however they end. `evenflow bench run soak` does the same with fifty."""

from __future__ import annotations

import gc
import os
import threading
from contextlib import suppress

import psutil
import pytest
from patience import patience
from watching import processes_of, socket_folders, until

import evenflow as ef
from evenflow.actors.cluster import WORKERS, RayJob
from evenflow.actors.driver import driver_workers
from evenflow.actors.driver.driver_workers import WATCHER
from evenflow.actors.job.job_interpreter import JobInterpreter
from evenflow.actors.processes.coordinator_actor import CoordinatorActor
from evenflow.actors.processes.own_process import ACTORS, RESTING


def run(runtime, end, folder):
    """Run a job with state, a checkpoint and two sinks to this end."""

    def checked(row):
        if end == "failed" and row["seq"] == 150:
            raise ValueError("it is to fail")
        return row

    flow, rows = ef.Dataflow("one-of-many"), []
    checked_rows = flow.read(ef.generate(total=None if end == "cancelled" else 200, rate=10_000, keys=10)).map(checked)
    checked_rows.key_by("key").stateful_map(lambda state, row: ((state or 0) + 1, row)).write(ef.write_parquet(folder / "out", append=True))
    checked_rows.key_by("key").aggregate(n=ef.count()).write(ef.to_list(rows))
    checkpoints = ef.CheckpointConfig(str(folder / "checkpoints"), interval="100ms")
    job = flow.run(runtime=runtime, config=ef.JobConfig(checkpoint=checkpoints, worker=ef.WorkerConfig(keep="600s")))
    if end == "cancelled":
        job.checkpoint("60s")
        job.cancel()
    with suppress(ef.RecordError):
        job.wait("60s")
    assert job.status().state.value == end


def left_in_the_driver(folder):
    """Return the jobs' remains in this process and below it, by kind."""
    gc.collect()
    titles = processes_of(folder)
    return {
        "threads": sorted(thread.name for thread in threading.enumerate() if not thread.name.startswith(("ray", "Dummy", WATCHER))),
        "jobs": sum(isinstance(found, (ef.Job, RayJob, JobInterpreter)) for found in gc.get_objects()),
        "classes": len(CoordinatorActor.__subclasses__()),
        "sockets": socket_folders(folder),
        "processes": [pid for pid, title in titles.items() if title.startswith(ACTORS) and not title.endswith(RESTING)],
    }


def descriptors():
    return psutil.Process().num_fds()


@pytest.mark.parametrize("runtime", ["local", "ray"])
def test_jobs_leave_nothing_in_their_driver_however_they_end(runtime, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(driver_workers, "REST_PATIENCE", patience(10))
    run(runtime, "finished", tmp_path)  # Ray and Arrow make threads and open files as they are first used
    until(lambda: not left_in_the_driver(folder)["processes"], "no process of this job or an earlier one is at work")
    before, kept, open_before = left_in_the_driver(folder), WORKERS.idle(), descriptors()
    ends = ("finished", "failed", "cancelled")
    for end in ends:
        run(runtime, end, tmp_path)
    until(lambda: left_in_the_driver(folder) == before, f"there is what there was before: {before}")
    assert len(WORKERS.idle()) <= len(kept), "a job starts in the processes of the one before"
    # Ray opens one or two more with the second job, but no others.
    until(lambda: descriptors() < open_before + len(ends), f"process {os.getpid()} has not kept a descriptor of each job")
