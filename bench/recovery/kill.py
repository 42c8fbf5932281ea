"""The time from the SIGKILL of one of two workers to new output, with a million keys of state in the last checkpoint."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import evenflow as ef

from ...testing.settings import changed
from ..harness.conditions import scratch
from ..harness.jobs import cancelled, until
from .live_stream import LiveSource, OutputSink, count
from .output_log import KEYS, Resumed, outputs, processes, resumed, writers

INTERVAL = 10.0
"""Seconds between two checkpoints, of every system."""

WAIT = 180.0


def measure(name: str, settings: dict[str, Any]) -> Resumed:
    """Kill a worker half an interval after a checkpoint, in a job of its own. `settings`: additional ones of its JobConfig."""
    with scratch("recovery") as folder:
        log = folder / "outputs"
        log.mkdir()
        flow = ef.Dataflow(f"bench-recovery-{name}")
        flow.read(LiveSource()).key_by("key").stateful_map(count).write(OutputSink(str(log)))
        config = ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(f"{folder}/checkpoints", interval=None))
        with cancelled(flow.run(config=changed(config, **settings)), WAIT) as job:
            return _kill_one(job, str(log))


def _kill_one(job: ef.Job, log: str) -> Resumed:
    until(lambda: rows_written(log) >= KEYS, f"{KEYS:,} keys are written", WAIT)
    job.checkpoint(WAIT)
    time.sleep(INTERVAL / 2)
    old, victim = writers(log), processes(log)[-1]
    killed = time.time_ns()
    os.kill(victim, signal.SIGKILL)
    until(lambda: resumed(outputs(log), killed, old), "new output is written after the kill", WAIT)
    time.sleep(1.0)  # to check the counts of one more second
    return until(lambda: resumed(outputs(log), killed, old), "the output is read", WAIT)


def rows_written(log: str) -> int:
    """Return the number of rows of all outputs."""
    return sum(output.rows for output in outputs(log))
