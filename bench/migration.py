"""What a migration costs: latency while a quarter of the state moves between two workers, how long it takes, and the memory.

A row's clock starts when it was due, so that a stall counts against every row that it delayed. Every strategy gets a job of its own, with
the same keys, rate and groups to move, in one run.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Self

import numpy as np
import pyarrow as pa

import evenflow as ef

from ..engine.errors import JobError
from ..engine.keys import key_groups
from ..scheduler.migration import MigrationReport
from . import machine
from .conditions import record
from .preload import PreloadedSource
from .record import Case, Run, Verdict
from .trace import Trace, TraceSink, between, curve, firsts, percentile_of

KEYS = 1_000_000
STATE_BYTES = 64
KEY_GROUPS = 1024
MOVED = range(KEY_GROUPS // 4)
"""Worker 0 of two has twice as many: it gives half of its state, a quarter of all."""

SHARE = 0.5
"""Of the largest rate that the job can take."""

STEADY, AFTER, MAXIMUM = 8.0, 3.0, 8.0
"""Seconds: at the rate before the move, after it, and at full speed to find the largest rate."""

PIECE = 0.05
OPERATOR = "stateful_map"
WAIT = 180.0
NOT_MEASURED = ("restart: it needs savepoints, which are not there yet", "more than one machine: state goes over a Unix socket here")


@dataclass(frozen=True, slots=True)
class Move:
    """One migration: latencies are in ms, times in seconds, memory in MiB of all workers together.

    `first`: p99 over the moved keys of the latency of the first record that was due while the move went on.
    """

    steady: float
    p99: float
    largest: float
    first: float
    report: MigrationReport
    memory_before: float
    memory_peak: float
    memory_after: float
    curve: list[tuple[float, float, float]]
    busy: float

    @property
    def transient(self) -> float:
        """What the move needed beyond what the workers have after it."""
        return max(0.0, self.memory_peak - self.memory_after)


def run(*, strategies: Sequence[str], repeat: int, rate: int | None, say: Callable[[str], None]) -> Run:
    """Every strategy `repeat` times at `rate`, None for half of what the job can take."""
    chosen = float(rate) if rate is not None else SHARE * largest_rate()
    say(f"{chosen:,.0f} rows/s")
    moves: dict[str, list[Move]] = {strategy: [] for strategy in strategies}
    for number in range(repeat):
        for strategy in strategies:
            moves[strategy].append(move := measure(strategy, chosen, number))
            say(
                f"{strategy}: {move.report.seconds:.3f} s, {move.report.steps} steps; p99 {move.steady:.1f} ms, {move.p99:.1f} while "
                f"it moves, largest {move.largest:.1f}; "
                f"memory {move.memory_before:.0f}, {move.memory_peak:.0f}, {move.memory_after:.0f} MiB"
            )
    cases = [case for strategy in strategies for case in cases_of(strategy, moves[strategy])]
    arguments = {
        "rate": round(chosen), "repeat": repeat, "keys": KEYS, "state_bytes": STATE_BYTES, "key_groups": KEY_GROUPS,
        "moved_groups": len(MOVED), "steady_seconds": STEADY,
    }  # fmt: skip
    series = {strategy: [move.curve for move in measured] for strategy, measured in moves.items()}
    return record("migration", arguments, cases, verdicts(moves), not_measured=NOT_MEASURED, series=series)


def touch(state: bytes | None, row: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """A count in a state of 64 bytes; the row goes on."""
    count = int.from_bytes(state[:8], "little") if state is not None else 0
    return (count + 1).to_bytes(STATE_BYTES, "little"), row


def start(rate: float | None, name: str) -> tuple[ef.Job, TraceSink]:
    """The job with all state in place."""
    sink, flow = TraceSink(), ef.Dataflow(name)
    flow.read(PreloadedSource(KEYS, rate)).key_by("key").stateful_map(touch).write(sink)
    job = flow.run(config=ef.JobConfig(parallelism=2, key_groups=KEY_GROUPS, checkpoint_interval=None))
    deadline = time.monotonic() + WAIT
    while rows_taken(job) < KEYS:
        if time.monotonic() > deadline:
            raise JobError(f"benchmark migration: {KEYS:,} keys were not there within {WAIT:g} s")
        time.sleep(0.2)
    return job, sink


def rows_taken(job: ef.Job) -> int:
    """Rows that the workers with state have had."""
    return sum(figures.rows_in for figures in job.metrics() if figures.operator == OPERATOR)


def largest_rate() -> float:
    """Rows a second at full speed."""
    job, _ = start(None, "bench-migration-largest")
    time.sleep(2.0)
    begun, before = time.monotonic(), rows_taken(job)
    time.sleep(MAXIMUM)
    rate = (rows_taken(job) - before) / (time.monotonic() - begun)
    job.cancel()
    job.wait(WAIT)
    return rate


def measure(strategy: str, rate: float, number: int) -> Move:
    """One migration in a job of its own."""
    busy = machine.busy_share()
    job, sink = start(rate, f"bench-migration-{strategy}-{number}")
    time.sleep(STEADY)
    with MemoryWatch() as memory:
        time.sleep(0.2)
        before, begun = memory.newest, time.time()
        report = job.migrate(OPERATOR, groups=MOVED, to=1, strategy=strategy, timeout=WAIT)
        peak = memory.peak
        time.sleep(AFTER)
        after = memory.newest
    job.stop()
    job.wait(WAIT)
    ended = begun + (report.seconds or 0.0)
    trace = sink.trace()
    steady, moving = between(trace, begun - STEADY / 2, begun - PIECE), between(trace, begun, ended)
    around = between(trace, begun - 1.0, ended + AFTER - 1.0)
    return Move(
        percentile_of(steady, 0.99), percentile_of(moving, 0.99), percentile_of(between(trace, begun, ended + 1.0), 1.0),
        percentile_of(firsts(of_groups(moving)), 0.99), report, before, peak, after, curve(around, begun, PIECE), busy,
    )  # fmt: skip


def of_groups(trace: Trace) -> Trace:
    """The records whose keys move."""
    groups = key_groups([pa.array(trace["key"].astype(np.int64))], KEY_GROUPS, OPERATOR)
    return trace[groups < len(MOVED)]


def cases_of(strategy: str, moves: Sequence[Move]) -> list[Case]:
    """What is reported of a strategy."""
    details = tuple({"busy_before": move.busy} for move in moves)
    figures: dict[str, tuple[str, list[float]]] = {
        "steady p99": ("ms", [move.steady for move in moves]),
        "p99 while it moves": ("ms", [move.p99 for move in moves]),
        "ratio of the two": ("", [move.p99 / move.steady for move in moves]),
        "largest": ("ms", [move.largest for move in moves]),
        "first result of a moved key, p99": ("ms", [move.first for move in moves]),
        "duration": ("s", [move.report.seconds or 0.0 for move in moves]),
        "steps": ("", [float(move.report.steps) for move in moves]),
        "state moved": ("bytes", [float(move.report.state_bytes) for move in moves]),
        "memory for the move": ("MiB", [move.transient for move in moves]),
        "memory kept": ("MiB", [move.memory_after - move.memory_before for move in moves]),
    }
    return [Case(f"{strategy}/{name}", unit, "lower", tuple(values), details) for name, (unit, values) in figures.items()]


def verdicts(moves: dict[str, list[Move]]) -> list[Verdict]:
    """The targets of the strategies that were measured, by the median of the repeats."""
    found = []
    for strategy in ("batched", "lazy"):
        if measured := moves.get(strategy):
            ratio = median(move.p99 / move.steady for move in measured)
            found.append(Verdict(f"{strategy}: p99 while it moves / steady p99", ratio, 2.0, "lower"))
    for strategy in ("fluid", "batched"):
        if measured := moves.get(strategy):
            part = median(
                max(0.0, move.memory_peak - max(move.memory_after, move.memory_before)) / (move.report.state_bytes / 2**20)
                for move in measured
            )
            found.append(Verdict(f"{strategy}: memory beyond what is kept / state moved", part, 0.1, "lower"))
    if measured := moves.get("lazy"):
        ratio = median(move.first / move.steady for move in measured)
        found.append(Verdict("lazy: first result of a moved key (p99) / steady p99", ratio, 3.0, "lower"))
    return found


class MemoryWatch:
    """Resident memory (MiB) of all workers below this process, looked at every 20 ms: the newest and the largest."""

    def __init__(self) -> None:
        self._pids = [pid for pid, name in machine.descendants(os.getpid()).items() if name.startswith("ray::Worker")]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="evenflow-bench-memory", daemon=True)
        self.newest = self.peak = self._look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(10)

    def _follow(self) -> None:
        while not self._over.wait(0.02):
            self.newest = self._look()
            self.peak = max(self.peak, self.newest)

    def _look(self) -> float:
        return sum(machine.rss_bytes(pid) for pid in self._pids) / 2**20
