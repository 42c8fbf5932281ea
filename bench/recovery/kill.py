"""The time from a SIGKILL of one of two workers, or of the coordinator, to new output, with many keys of state in the last checkpoint."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from typing import Any

import ray

import evenflow as ef

from ...actors.processes.process import NAMESPACE
from ...testing.settings import changed
from ..harness.conditions import scratch
from ..harness.jobs import cancelled, until
from .live_stream import LiveSource, OutputSink, count
from .output_log import Resumed, outputs, processes, resumed, writers
from .timeline import Phase, Step, phases, steps_of

INTERVAL = 10.0
"""Seconds between two checkpoints, of every system."""

WAIT = 180.0

EVERY = 0.5
"""Seconds between two looks at the output, which take a processor: the times are those that the workers logged."""


@dataclass(frozen=True, slots=True)
class Kill:
    """A kind of kill: of a worker or the coordinator, of a job that keeps so many warm spares."""

    spares: int = 0
    coordinator: bool = False


@dataclass(frozen=True, slots=True)
class Recovery:
    """A recovery: the time until output, and its phases."""

    resumed: Resumed
    phases: tuple[Phase, ...]


def measure(name: str, kill: Kill, keys: int, changing: int, after: float) -> Recovery:
    """Kill a process `after` seconds after the second checkpoint, as a job that has run for longer would lose it, in a job of its own.

    `changing` of the `keys` get rows once all of them have one.
    """
    with scratch("recovery") as folder:
        log, inputs = folder / "outputs", folder / "inputs"
        log.mkdir()
        inputs.mkdir()
        flow = ef.Dataflow(f"bench-recovery-{name}")
        rows = flow.read(LiveSource(str(inputs), keys, changing))
        rows.key_by("key").stateful_map(count).write(OutputSink(str(log), keys, changing))
        config = ef.JobConfig(parallelism=2, log_level="info", checkpoint=ef.CheckpointConfig(f"{folder}/checkpoints", interval=None))
        with cancelled(flow.run(config=changed(config, worker={"warm_spares": kill.spares})), WAIT) as job:
            until(lambda: rows_written(str(log)) >= keys, f"{keys:,} keys are written", WAIT, EVERY)
            until(lambda: job.status().spares == kill.spares, "the spares are there", WAIT)
            return _kill_one(job, kill, str(log), str(inputs), after)


def _kill_one(job: ef.Job, kill: Kill, log: str, inputs: str, after: float) -> Recovery:
    job.checkpoint(WAIT)
    time.sleep(INTERVAL)
    job.checkpoint(WAIT)
    time.sleep(after)
    old, victim = writers(log), _coordinator(job) if kill.coordinator else processes(log)[-1]
    killed = time.time_ns()
    os.kill(victim, signal.SIGKILL)
    until(lambda: resumed(outputs(log), killed, old), "new output is written after the kill", WAIT, EVERY)
    time.sleep(1.0)  # to check the counts of one more second
    found = until(lambda: resumed(outputs(log), killed, old), "the output is read", WAIT)
    at = killed / 1e9
    taken = [Step(first.at / 1e9, "first input") for first in outputs(inputs)]
    taken += [Step(at + found.first, "first output"), Step(at + found.new, "first new output")]
    return Recovery(found, phases(at, [*steps_of(job), *taken]))


def _coordinator(job: ef.Job) -> int:
    actor: Any = ray.get_actor(f"{job.name}/coordinator", namespace=NAMESPACE)
    pid: int = ray.get(actor.__ray_call__.remote(lambda _: os.getpid()), timeout=WAIT)
    return pid


def rows_written(log: str) -> int:
    """Return the number of rows of all outputs."""
    return sum(output.rows for output in outputs(log))
