"""Recordings for tests: a real job's views, and constructed views, one per second."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

import evenflow as ef
from evenflow.engine.protocol.routing import RoutingTable, even_table
from evenflow.recording.file import RecordingWriter
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.dataflow.scaled_stage import ScaledStage
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import ShowView
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.scheduler.protocol.view import JobView, StageView

BEGIN = 1_000_000.0
GROUPS = 8


def finished_job():
    """Run a job of two workers with skewed keys to its end; return it and a view of it."""
    flow = ef.Dataflow("clicks")
    rows = flow.read(ef.generate(total=200_000, keys=50, zipf=1.0, string_keys=True))
    rows.key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_list([]))
    job = flow.run(runtime="local", config=ef.JobConfig(parallelism=2, key_groups=16, metrics=ef.MetricsConfig(window="50ms")))
    job.wait("60s")
    return job, job._runtime.ask(ShowView())


def view_at(second: int, loads=(0.9, 0.1), table: RoutingTable | None = None, **parts) -> JobView:
    """Return a view of a source and a keyed operator with two workers, which had these loads in the second before."""
    now, table = BEGIN + second, even_table(GROUPS, 2) if table is None else table
    windows = [WorkerWindow("read-0", now - 1, 1.0, rows_in=1000, rows_out=1000, useful=0.1)]
    for worker, load in enumerate(loads):
        groups = np.flatnonzero(table.groups == worker).astype(np.int32)
        each = np.full(len(groups), load / max(len(groups), 1))
        windows.append(WorkerWindow(f"count-{worker}", now - 1, 1.0, 500, 0, load, keyed_records=500, groups=groups, load=each))
    stages = (
        StageView("read", ("read",), ("read-0",), ("count",), True, scaled=ScaledStage("read", 1, ("count",), True, 1000.0, fixed=True)),
        StageView("count", ("count",), ("count-0", "count-1"), (), False, table, scaled=ScaledStage("count", 2, key_groups=GROUPS)),
    )
    status = JobStatus("clicks", JobState.RUNNING, None, ("read-0", "count-0", "count-1"), 0, float(second))
    settings = PolicySettings(interval_s=2.0, warm_up_s=2.0)
    return replace(JobView(now, status, stages, tuple(windows), policy_settings=settings), **parts)


def recorded(path: Path, views: Iterable[JobView]) -> Path:
    """Write the views to a file."""
    with RecordingWriter(path, "clicks", BEGIN) as writer:
        for view in views:
            writer.add(view)
    return path
