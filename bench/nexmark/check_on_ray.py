"""Runs a query on Ray, at a steady rate, while its keys move, its operators scale and its processes are killed: all rows must be DuckDB's.

The job generates the events itself, by the seed of the files that DuckDB reads.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass

import evenflow as ef
from evenflow.testing.chaos.chaos import COORDINATOR, WORKER, WORKERS, Chaos

from ...actors.cluster import start_cluster
from ..harness.benchmark import Say
from ..harness.chaos import POLL_SECONDS, disturbed_config
from ..harness.conditions import scratch
from ..harness.errors import BenchmarkError
from ..harness.jobs import has_ended
from .check import Checked, add_progress, compared
from .made import Made
from .queries import QUERIES
from .queries.events import Events
from .unrest import Unrest

KINDS = (WORKER, WORKERS, COORDINATOR)
KILL_EVERY = 6.0
PATIENCE = 600.0
"""Seconds that a job may take after its last event was due."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The disturbances of a job. `rate`: events of all streams a second, which decides how long the job lasts."""

    moves: bool
    kills: bool
    rate: float


def check_on_ray(name: str, made: Made, trouble: Trouble, say: Say) -> Checked:
    """Run one query on Ray. Raises BenchmarkError for a job that ends before anything happened to it."""
    start_cluster()
    with scratch(f"nexmark-ray-{name}") as folder:
        flow = ef.Dataflow(f"nexmark-check-{name}")
        events = Events.generated(flow, rate=trouble.rate, every="50ms", **made.arguments)
        QUERIES[name](events).write(ef.write_parquet(folder / "out"))
        add_progress(flow, name, folder)
        config = disturbed_config(folder, interval="1s", parallelism=2, key_groups=64, metrics=ef.MetricsConfig(window="200ms"))
        job = flow.run(runtime="ray", config=config)
        try:
            _disturb(job, flow, made, trouble, say)
            seconds = job.wait(PATIENCE).status().running_seconds
        finally:
            job.cancel()
        return compared(flow, name, made.folder, folder, seconds, by_progress=True)


def _disturb(job: ef.Job, flow: ef.Dataflow, made: Made, trouble: Trouble, say: Say) -> None:
    """Disturb the job until all events were due and each kind of trouble has happened, or the job has ended."""
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
            time.sleep(POLL_SECONDS)
    if unrest is not None:
        say(f"{job.name}: {', '.join(f'{count} {what}' for what, count in unrest.begun.items())} begun")
    if chaos is not None:
        say(f"{job.name}: {len(chaos.kills)} kills: {'; '.join(kill.victims for kill in chaos.kills)}")
    if _spared(unrest, chaos):
        raise BenchmarkError(f"{job.name}: all events had arrived before anything was moved or killed: use more events, or a lower rate")


def _spared(unrest: Unrest | None, chaos: Chaos | None) -> bool:
    """Return True if a chosen kind of trouble has not happened yet."""
    return (unrest is not None and not unrest.begun) or (chaos is not None and not chaos.kills)
