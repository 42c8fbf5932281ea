"""The cost of checkpoints: one job, in turn ten seconds without a checkpoint and ten with one.

The job is a running count per key. All keys are in place, and some change. At full speed the cost shows in rows per second, at
half of that speed in latency. Both come from the rows' own clocks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

import evenflow as ef

from ..harness import machine
from ..harness.conditions import scratch
from ..harness.jobs import cancelled, rows_read, until
from ..harness.preload import PreloadedSource
from ..harness.record import Case
from ..harness.sinks import LatencySink, percentile
from .kill import INTERVAL

STEADY = 3.0
"""Seconds before the first phase."""

WAIT = 300.0


@dataclass(frozen=True, slots=True)
class Phase:
    """Rows a second and p99 (ms) of whole seconds; the seconds and the bytes of the `checkpoint` in it, if there was one."""

    rate: float
    p99: float
    checkpoint: float = 0.0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Pair:
    """Two phases that follow each other in one job: without a checkpoint, and with one."""

    without: Phase
    including: Phase
    busy: float


def measure(keys: int, changing: int, rate: float | None, pairs: int) -> list[Pair]:
    """Measure pairs of phases of a job with `keys` keys; `changing` keys get rows, at `rate` rows a second, None for full speed."""
    with scratch("checkpoints") as folder:
        sink, flow = LatencySink(), ef.Dataflow(f"bench-checkpoints-{keys}-{'full' if rate is None else 'half'}")
        updates = flow.read(PreloadedSource(keys, rate, changing)).key_by("key").aggregate(n=ef.count(), created=ef.last("created"))
        updates.write(sink)
        busy = machine.busy_share()
        config = ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(str(folder), interval=None))
        with cancelled(flow.run(config=config), WAIT) as job:
            until(lambda: rows_read(job, "preload") >= keys, f"the job has {keys:,} keys", WAIT)
            job.checkpoint(WAIT)
            time.sleep(STEADY)
            spans = [_pair(job) for _ in range(pairs)]
            job.checkpoint(WAIT)  # which brings the last figures
    return [Pair(_phase(sink, *without), _phase(sink, *including), busy) for without, including in spans]


def _pair(job: ef.Job) -> tuple[tuple[int, int], tuple[int, int, float, int]]:
    """Return the seconds of both phases; a checkpoint that takes longer than the interval makes its phase longer."""
    first = _next_second()
    time.sleep(INTERVAL)
    middle = _next_second()
    report = job.checkpoint(WAIT)
    time.sleep(max(0.0, middle + INTERVAL - time.time()))
    return (first, first + int(INTERVAL)), (middle, _next_second(), report.seconds or 0.0, report.state_bytes)


def _next_second() -> int:
    second = math.ceil(time.time())
    time.sleep(max(0.0, second - time.time()))
    return second


def _phase(sink: LatencySink, first: int, end: int, checkpoint: float = 0.0, size: int = 0) -> Phase:
    together = np.sum([sink.counts[second] for second in range(first, end) if second in sink.counts], axis=0)
    return Phase(float(np.sum(together)) / (end - first), percentile(together, 0.99), checkpoint, size)


def kept_rate(pairs: Sequence[Pair]) -> float:
    """Return the throughput with checkpoints in parts of that without, the median of the pairs."""
    return median(pair.including.rate / pair.without.rate for pair in pairs)


def latency_ratio(pairs: Sequence[Pair]) -> float:
    """Return p99 with checkpoints in multiples of that without, the median of the pairs."""
    return median(pair.including.p99 / pair.without.p99 for pair in pairs)


def phase_cases(name: str, pairs: Sequence[Pair]) -> list[Case]:
    """Return throughput and latency of the phases, and the checkpoints in them."""
    details = tuple({"busy_before": pair.busy} for pair in pairs)
    return [
        Case(f"{name}/without", "rows/s", "higher", tuple(pair.without.rate for pair in pairs), details),
        Case(f"{name}/with", "rows/s", "higher", tuple(pair.including.rate for pair in pairs), details),
        Case(f"{name}/p99 without", "ms", "lower", tuple(pair.without.p99 for pair in pairs), details),
        Case(f"{name}/p99 with", "ms", "lower", tuple(pair.including.p99 for pair in pairs), details),
        Case(f"{name}/checkpoint takes", "s", "lower", tuple(pair.including.checkpoint for pair in pairs), details),
        Case(f"{name}/checkpoint", "bytes", "lower", tuple(float(pair.including.size) for pair in pairs), details),
    ]
