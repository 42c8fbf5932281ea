"""From the SIGKILL of one of two workers to new output, with a million keys of state: the job goes back to its last checkpoint."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import evenflow as ef

from ..testing.settings import changed
from .errors import BenchmarkError
from .live_stream import LiveSource, OutputSink, count
from .output_log import KEYS, Resumed, outputs, processes, resumed, writers

INTERVAL = 10.0
"""Seconds between two checkpoints, of every system."""

WAIT = 180.0

T = TypeVar("T")


def until(condition: Callable[[], T | None], what: str, patience: float = WAIT) -> T:
    """The first value of `condition`. Raises BenchmarkError after `patience` seconds."""
    deadline = time.monotonic() + patience
    while (found := condition()) is None:
        if time.monotonic() > deadline:
            raise BenchmarkError(f"benchmark recovery: waited {patience:g} s in vain until {what}")
        time.sleep(0.02)
    return found


def measure(name: str, settings: dict[str, Any]) -> Resumed:
    """One job, one kill, half an interval after a checkpoint. `settings`: what its JobConfig has besides."""
    folder = tempfile.mkdtemp(prefix="evenflow-bench-recovery-")
    log = f"{folder}/outputs"
    Path(log).mkdir()
    flow = ef.Dataflow(f"bench-recovery-{name}")
    flow.read(LiveSource()).key_by("key").stateful_map(count).write(OutputSink(log))
    try:
        job = flow.run(
            config=changed(ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(f"{folder}/checkpoints", interval=None)), **settings)
        )
        try:
            return _kill_one(job, log)
        finally:
            job.cancel()
            job.wait(WAIT)
    finally:
        shutil.rmtree(folder)


def _kill_one(job: ef.Job, log: str) -> Resumed:
    until(lambda: _all_there(log), f"{KEYS:,} keys have come out")
    job.checkpoint(WAIT)
    time.sleep(INTERVAL / 2)
    old, victim = writers(log), processes(log)[-1]
    killed = time.time_ns()
    os.kill(victim, signal.SIGKILL)
    until(lambda: resumed(outputs(log), killed, old), "new output comes after the kill")
    time.sleep(1.0)  # to check the counts of one more second
    found = resumed(outputs(log), killed, old)
    assert found is not None
    return found


def _all_there(log: str) -> bool | None:
    return sum(output.rows for output in outputs(log)) >= KEYS or None
