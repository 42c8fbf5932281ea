"""Lets simulated workers report their counts, so that a balancer decides by the actual load.

A record costs the same at every worker, and a window ends after enough records: nothing is timed on a virtual clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np

from ...scheduler.configs.job import JobConfig
from ...scheduler.load.window import WorkerWindow
from ...scheduler.protocol.effects import JobState
from ..settings import changed
from ..simulation.actions import COORDINATOR, Action, Choice, World, poll
from ..simulation.simulation import random_config
from ..simulation.workers import SimulatedWorker
from .moving import poll_slowly

EACH = 10_000
"""Records that a simulated one stands for, so that a dozen of them are no chance to a balancer."""

WINDOW = 0.05
"""Seconds of a reported window: `MetricsConfig(window="50ms")`."""


def with_measured_load(actions: Sequence[Action], records: int = 12) -> tuple[Action, ...]:
    """Return `actions` with windows of about `records` keyed records, by which automatic balancing decides; the job must measure its load.

    Sources read slowly, so that decisions are carried out before the stream ends. `check(make_flow, [seed], config=acting_on_load(seed),
    actions=with_measured_load(ACTIONS))`
    """

    def measure(world: World) -> Iterator[Choice]:
        if world.coordinator.core.state is JobState.RUNNING:
            counted = sum(int(worker.task.load.records.sum()) for worker in _reporting(world))
            if counted >= records:
                yield Choice(COORDINATOR, "measure", _measure, (world,))

    return *(action for action in actions if action not in (poll, poll_slowly)), poll_slowly, measure


def acting_on_load(seed: int) -> JobConfig:
    """Return settings with two to four workers and a balancer that acts after a window or two; the seed chooses the rest."""
    config = random_config(Random(seed), 2 + seed % 3)  # noqa: S311 -- the point is that it can be repeated
    quick = {"policy": "hotspot", "after": "50ms", "cooldown": "50ms", "rest": "100ms", "least_busy": 0.0}
    return changed(config, metrics={"enabled": True}, balance=quick)


def _reporting(world: World) -> list[SimulatedWorker]:
    return [worker for worker in world.workers.values() if worker.started and not worker.dead]


def _measure(world: World) -> None:
    """Let every worker report its counts since the last time."""
    metrics, workers = world.coordinator.core.record.metrics, _reporting(world)
    starts = [window.start for worker in workers if (window := metrics.newest(worker.name)) is not None]
    start = max(starts, default=0.0) + WINDOW
    counts = {worker.name: worker.task.load.take() for worker in workers}
    cost = WINDOW / max(1, *(int(records.sum()) for records in counts.values()))
    for worker in workers:
        records = counts[worker.name].astype(np.float64)
        groups, hot = np.flatnonzero(records), worker.task.load.take_hot()
        window = WorkerWindow(
            worker.name, start, WINDOW, useful=float(records.sum()) * cost, keyed_records=int(records.sum()) * EACH,
            groups=groups.astype(np.int32), load=records[groups] * cost,
            hot_keys=tuple((key, count * EACH) for key, (count, _) in hot.items()),
            hot_left=tuple(left * EACH for _, left in hot.values()),
        )  # fmt: skip
        world.coordinator.interpreter.report(worker.name, worker.attempt, window)
