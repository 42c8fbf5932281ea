"""Latency while an operator with state goes from two workers to three and back at half load, against a savepoint and a restart with three.

A worker sleeps for each record instead of computing, so that a third worker helps on two cores. Half load: it is busy half of its time. A
row's clock starts when it was due, so a stall counts for every row that it delayed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import evenflow as ef

from . import machine
from .errors import BenchmarkError
from .migration import OPERATOR, STATE_BYTES, longest_wait, rows_taken
from .preload import PreloadedSource
from .record import Case, Verdict
from .trace import Trace, TraceSink, between, curve, percentile_of

KEYS = 100_000
SERVICE = 0.001
"""Seconds that a worker waits for a record."""

RATE = 1000.0
"""Rows a second: half of what two workers can take."""

STEADY, AFTER, PIECE = 8.0, 3.0, 0.05
"""Seconds: before a scaling and after it, and of a point of the curve."""

WAIT = 120.0
RESTART = "savepoint and restart"
SPARES: Mapping[str, int] = {"live, a spare started before": 1, "live, a new process": 0}
MOST = dict(zip(SPARES, (2.0, 3.0), strict=True))
"""Targets: the largest latency while a third worker comes over the steady p99."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """Latencies in ms: p99 `steady` and `steady_most` before, the `largest` while it went on, which took `seconds`.

    `silent`: the longest time in which no result came, ms.
    """

    steady: float
    steady_most: float
    largest: float
    silent: float
    seconds: float
    curve: list[tuple[float, float, float]]
    busy: float

    @property
    def ratio(self) -> float:
        """The largest latency meanwhile over the steady p99."""
        return self.largest / self.steady


def touch(state: bytes | None, row: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """A count in a state of 64 bytes; the row goes on. What only fills the state takes no time."""
    if row["created"]:
        time.sleep(SERVICE)
    count = int.from_bytes(state[:8], "little") if state is not None else 0
    return (count + 1).to_bytes(STATE_BYTES, "little"), row


def start(name: str, config: ef.JobConfig, savepoint: str | None = None) -> tuple[ef.Job, TraceSink]:
    """The job, with all state in place."""
    sink, flow = TraceSink(), ef.Dataflow(name)
    flow.read(PreloadedSource(KEYS, RATE)).key_by("key").stateful_map(touch).write(sink)
    job = flow.run(config=config, from_savepoint=savepoint)
    deadline = time.monotonic() + WAIT
    while savepoint is None and rows_taken(job) < KEYS:
        if time.monotonic() > deadline:
            raise BenchmarkError(f"benchmark scaling: {KEYS:,} keys were not there within {WAIT:g} s")
        time.sleep(0.2)
    return job, sink


def live(spares: int) -> tuple[Scaling, Scaling]:
    """From two workers to three, and back."""
    busy = machine.busy_share()
    config = ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(interval=None), worker=ef.WorkerConfig(warm_spares=spares))
    job, sink = start(f"bench-scaling-latency-{spares}", config)
    spans = []
    for workers in (3, 2):
        time.sleep(STEADY)
        begun = time.time()
        report = job.scale(OPERATOR, workers, timeout=WAIT)
        spans.append((begun, report.seconds or 0.0))
    time.sleep(AFTER)
    job.stop(drain=True)
    job.wait(WAIT)
    out, back = (scaling_of(sink.trace(), begun, took, busy) for begun, took in spans)
    return out, back


def restarted() -> Scaling:
    """A savepoint with two workers, the end of the job, and another that begins from it with three."""
    busy = machine.busy_share()
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-scaling-") as folder:
        name, saved = "bench-scaling-restart", f"{folder}/saved"
        job, before = start(name, ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(folder, interval=None)))
        time.sleep(STEADY)
        begun = time.time()
        job.savepoint(saved, WAIT)
        job.cancel()
        job.wait(WAIT)
        job, after = start(name, ef.JobConfig(parallelism=3, checkpoint=ef.CheckpointConfig(folder, interval=None)), saved)
        took = time.time() - begun
        time.sleep(AFTER)
        job.stop(drain=True)
        job.wait(WAIT)
    return scaling_of(np.concatenate([before.trace(), after.trace()]), begun, took, busy)


def scaling_of(trace: Trace, begun: float, took: float, busy: float) -> Scaling:
    """The scaling that began at `begun` (seconds since the epoch) and took `took` seconds."""
    steady, moving = between(trace, begun - STEADY / 2, begun - PIECE), between(trace, begun - PIECE, begun + took + 1.0)
    around = between(trace, begun - 1.0, begun + took + AFTER - 1.0)
    return Scaling(
        percentile_of(steady, 0.99), percentile_of(steady, 1.0), longest_wait(moving), silence(moving), took,
        curve(around, begun, PIECE), busy,
    )  # fmt: skip


def silence(trace: Trace) -> float:
    """The longest time (ms) in which no result came.

    >>> from .trace import TRACE
    >>> silence(np.array([(0, 5.0, 1), (1_000_000, 6.0, 2), (2_000_000, 25.0, 3)], TRACE))
    20.0
    """
    came = np.sort(trace["created"] / 1e6 + trace["latency"])
    return float(np.diff(came).max(initial=0.0))


def run() -> dict[str, Scaling]:
    """All ways to scale, one job each."""
    found = {}
    for name, spares in SPARES.items():
        found[f"2 to 3, {name}"], found[f"3 to 2, {name}"] = live(spares)
    return {**found, f"2 to 3, {RESTART}": restarted()}


def cases_of(name: str, scaling: Scaling) -> list[Case]:
    """What is reported of a scaling."""
    details = ({"busy_before": scaling.busy},)
    figures = {"steady p99": scaling.steady, "steady largest": scaling.steady_most, "largest": scaling.largest}
    return [
        *(Case(f"{name}/{what}", "ms", "lower", (value,), details) for what, value in figures.items()),
        Case(f"{name}/longest without results", "ms", "lower", (scaling.silent,), details),
        Case(f"{name}/duration", "s", "lower", (scaling.seconds,), details),
    ]


def line_of(name: str, scaling: Scaling) -> str:
    """One line on a scaling."""
    return (
        f"{name}: {scaling.seconds:.2f} s, largest {scaling.largest:.1f} ms, before it p99 {scaling.steady:.1f} and at most "
        f"{scaling.steady_most:.1f} ms, longest without results {scaling.silent:.0f} ms"
    )


def verdicts(scalings: Mapping[str, Scaling]) -> list[Verdict]:
    """The largest latency against the steady p99, and against a restart."""
    restart = scalings[f"2 to 3, {RESTART}"]
    found = []
    for name in SPARES:
        out = scalings[f"2 to 3, {name}"]
        found.append(Verdict(f"2 to 3, {name}: largest latency / steady p99", out.ratio, MOST[name], "lower"))
        found.append(Verdict(f"2 to 3, {name}: largest latency / that of {RESTART}", out.largest / restart.largest, 0.1, "lower"))
    return found


def doubts(scalings: Mapping[str, Scaling]) -> list[str]:
    """Which verdicts the run can't decide: the largest of many latencies is above twice their p99 without a scaling, too."""
    found = []
    for name, most in MOST.items():
        one = scalings[f"2 to 3, {name}"]
        if most < one.ratio <= one.steady_most / one.steady:
            found.append(
                f"2 to 3, {name}: before it, too, the largest latency was {one.steady_most / one.steady:.1f} times the p99: not decided"
            )
    return found
