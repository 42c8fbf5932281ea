"""Runs a query on Ray, at a steady rate, while its keys move, its operators scale and its processes are killed: all rows must be DuckDB's.

The job makes the events itself, by the seed with which those for DuckDB were written.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import evenflow as ef
from evenflow.testing.chaos.chaos import COORDINATOR, WORKER, WORKERS, Chaos

from ...actors.cluster import start_cluster
from ..disturbed import LOOK_SECONDS, disturbed_config, has_ended
from ..errors import BenchmarkError
from .check import Checked, add_progress, checked_query, compared
from .events import Events
from .made import Made
from .unrest import Unrest

KINDS = (WORKER, WORKERS, COORDINATOR)
KILL_EVERY = 6.0
PATIENCE = 600.0
"""Seconds that a job may take after its last event was due."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What happens to a job meanwhile. `rate`: events of all streams a second, so it lasts for all events over that."""

    moves: bool
    kills: bool
    rate: float


def check_on_ray(name: str, made: Made, trouble: Trouble, say: Callable[[str], object]) -> Checked:
    """Raises BenchmarkError for an unknown query, and for a job that doesn't come to its end."""
    query, folder = checked_query(name), Path(tempfile.mkdtemp(prefix=f"nexmark-ray-{name}-"))
    start_cluster()
    flow = ef.Dataflow(f"nexmark-check-{name}")
    query(Events.generated(flow, rate=trouble.rate, every="50ms", **made.arguments)).write(ef.write_parquet(folder / "out"))
    add_progress(flow, name, folder)
    try:
        config = disturbed_config(folder, interval="1s", parallelism=2, key_groups=64, metrics=ef.MetricsConfig(window="200ms"))
        job = flow.run(runtime="ray", config=config)
        try:
            _go_through(job, flow, made, trouble, say)
            seconds = job.wait(PATIENCE).status().running_seconds
        finally:
            job.cancel()
        return compared(flow, name, made.folder, folder, seconds, by_progress=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _go_through(job: ef.Job, flow: ef.Dataflow, made: Made, trouble: Trouble, say: Callable[[str], object]) -> None:
    """Trouble until all events were due and there was some of each kind, or the job has ended."""
    until = time.monotonic() + made.events / trouble.rate
    stages = flow.plan(config=ef.JobConfig(parallelism=2)).stages
    with ExitStack() as stack:
        unrest: Unrest | None = None
        chaos: Chaos | None = None
        if trouble.moves:
            keyed = [stage.name for stage in stages if stage.is_keyed]
            unrest = stack.enter_context(Unrest(job, keyed, [stage.name for stage in stages if stage.can_be_scaled], seed=made.seed))
        if trouble.kills:
            chaos = stack.enter_context(Chaos(job, every=KILL_EVERY, kinds=KINDS, seed=made.seed))
        while (time.monotonic() < until or _spared(unrest, chaos)) and not has_ended(job):
            time.sleep(LOOK_SECONDS)
    if unrest is not None:
        say(f"{job.name}: {', '.join(f'{count} {what}' for what, count in unrest.begun.items())} begun")
    if chaos is not None:
        say(f"{job.name}: {len(chaos.kills)} kills: {'; '.join(kill.victims for kill in chaos.kills)}")
    if _spared(unrest, chaos):
        raise BenchmarkError(f"{job.name}: all events had come before anything was moved or killed: use more events, or a lower rate")


def _spared(unrest: Unrest | None, chaos: Chaos | None) -> bool:
    """Whether something that was asked for has not happened to the job."""
    return (unrest is not None and not unrest.begun) or (chaos is not None and not chaos.kills)
