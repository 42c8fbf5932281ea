"""The cost of checkpoints: one job, in turn ten seconds without a checkpoint and ten with one.

A running count per key, with all keys in place. At full speed the cost shows in rows per second, at half of that speed in latency. Both
come from the rows' own clocks.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from dataclasses import dataclass
from statistics import median

import numpy as np

import evenflow as ef

from . import machine
from .preload import PreloadedSource
from .recovery_kill import INTERVAL, until
from .sinks import LatencySink, percentile

STEADY = 3.0
"""Seconds before the first phase."""

WAIT = 300.0
HALF = 0.5
"""Of the full speed: where latency is measured."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Rows a second and p99 (ms) of whole seconds; `checkpoint`: how long the checkpoint in it took (s), None without one; its bytes."""

    rate: float
    p99: float
    checkpoint: float | None = None
    size: int = 0


@dataclass(frozen=True, slots=True)
class Pair:
    """Two phases that follow each other in one job."""

    without: Phase
    beside: Phase
    busy: float


def measure(keys: int, rate: float | None, pairs: int) -> list[Pair]:
    """Pairs of phases of a job with `keys` keys at `rate` rows a second, None for full speed."""
    folder = tempfile.mkdtemp(prefix="evenflow-bench-checkpoints-")
    sink, flow = LatencySink(), ef.Dataflow(f"bench-checkpoints-{keys}-{'full' if rate is None else 'half'}")
    updates = flow.read(PreloadedSource(keys, rate)).key_by("key").aggregate(n=ef.count(), created=ef.last("created"))
    updates.write(sink)
    busy = machine.busy_share()
    try:
        job = flow.run(config=ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(folder, interval=None)))
        try:
            until(lambda: _given(job) >= keys or None, f"{keys:,} keys are there", WAIT)
            job.checkpoint(WAIT)
            time.sleep(STEADY)
            spans = [_pair(job) for _ in range(pairs)]
            job.checkpoint(WAIT)  # which brings the last figures
        finally:
            job.cancel()
            job.wait(WAIT)
    finally:
        shutil.rmtree(folder)
    return [Pair(_phase(sink, *without), _phase(sink, *beside), busy) for without, beside in spans]


def _pair(job: ef.Job) -> tuple[tuple[int, int], tuple[int, int, float, int]]:
    """The seconds of both phases; a checkpoint that takes longer than the interval makes its phase longer."""
    first = _next_second()
    time.sleep(INTERVAL)
    middle = _next_second()
    report = job.checkpoint(WAIT)
    time.sleep(max(0.0, middle + INTERVAL - time.time()))
    return (first, first + int(INTERVAL)), (middle, _next_second(), report.seconds or 0.0, report.state_bytes)


def _given(job: ef.Job) -> int:
    """Rows that the source has given."""
    return sum(figures.rows_in for figures in job.metrics() if figures.operator.startswith("preload"))


def _next_second() -> int:
    """Wait for a whole second; which one it is."""
    second = math.ceil(time.time())
    time.sleep(max(0.0, second - time.time()))
    return second


def _phase(sink: LatencySink, first: int, end: int, checkpoint: float | None = None, size: int = 0) -> Phase:
    together = np.sum([sink.counts[second] for second in range(first, end) if second in sink.counts], axis=0)
    return Phase(float(np.sum(together)) / (end - first), percentile(together, 0.99), checkpoint, size)


def kept_rate(pairs: list[Pair]) -> float:
    """Throughput with checkpoints in parts of that without, the median of the pairs."""
    return median(pair.beside.rate / pair.without.rate for pair in pairs)


def latency_ratio(pairs: list[Pair]) -> float:
    """p99 with checkpoints in multiples of that without, the median of the pairs."""
    return median(pair.beside.p99 / pair.without.p99 for pair in pairs)
