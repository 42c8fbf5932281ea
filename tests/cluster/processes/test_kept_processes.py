"""A driver's next job runs in the processes of the previous one, which have kept nothing of it."""

from __future__ import annotations

import os
import signal

import pytest
from patience import patience
from watching import actors, processes_of, until

import evenflow as ef
from evenflow.actors.cluster import WORKERS
from evenflow.actors.driver import driver_workers


def processes(job: str, keep: str = "60s", *, fails: bool = False) -> set[int]:
    """Run a job whose two workers report their process ids, and return these."""
    flow, rows = ef.Dataflow(job), []

    def where(state, row):
        if fails and row["item"] == 999:
            raise ValueError(row)
        return (state or 0) + 1, {"pid": os.getpid(), "seen": (state or 0) + 1}

    flow.read(ef.from_items(list(range(1000)))).key_by("item").stateful_map(where).write(ef.to_list(rows))
    running = flow.run(parallelism=2, config=ef.JobConfig(worker=ef.WorkerConfig(keep=keep)))
    if fails:
        with pytest.raises(ef.RecordError, match="999"):
            running.wait("60s")
    else:
        running.wait("60s")
        assert len(rows) == 1000
        assert {row["seen"] for row in rows} == {1}, "no state of another job"
    return {row["pid"] for row in rows}


def test_next_job_runs_in_the_processes_of_the_ones_before(cluster, monkeypatch):
    monkeypatch.setattr(driver_workers, "REST_PATIENCE", patience(10))
    processes("kept", keep="600s")
    before = set(WORKERS.idle())
    assert len(before) >= 3, "those of a source and of two workers"
    for name in ("kept", "kept-other"):
        processes(name, keep="600s")
        assert set(WORKERS.idle()) <= before, "it started no process"


def test_process_that_was_killed_while_it_waited_is_replaced(cluster):
    victim = max(processes("kept-killed"))
    os.kill(victim, signal.SIGKILL)
    again = processes("kept-killed")
    assert victim not in again
    assert len(again) == 2


def test_job_that_failed_leaves_processes_that_can_be_used(cluster):
    processes("kept-failed", fails=True)
    processes("kept-failed")


def test_processes_that_are_not_kept_end_with_the_job(cluster, folder):
    pids = processes("kept-not", keep="0s")
    until(lambda: not pids & processes_of(folder).keys(), "the processes have ended")
    assert not [name for name in actors() if name.startswith("kept-not/")]


def test_kept_processes_end_after_a_while(cluster, folder):
    pids = processes("kept-short", keep="1s")
    until(lambda: not pids & processes_of(folder).keys(), "the processes have ended")
