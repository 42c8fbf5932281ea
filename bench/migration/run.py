"""The cost of a migration: latency while a quarter of the state moves between two workers, duration, and memory.

A row's clock starts when it was due, so a stall counts for every row that it delayed. Every strategy gets a job of its own, with the same
keys, rate and groups to move, in one run. The baseline is `restart`, which stops the job with a savepoint and starts it with the new table.
After the moves of a strategy the same job runs once more, while other processes take the processor time that a move took: what the machine
adds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

import evenflow as ef

from ...engine.keys.encoding import key_groups
from ...scheduler.configs.job import LIVE
from ...scheduler.protocol.reports import MigrationReport
from ..harness import machine
from ..harness.benchmark import Argument, Benchmark, Say, repeat, some_of
from ..harness.conditions import scratch
from ..harness.jobs import drain, rows_read, until
from ..harness.preload import PreloadedSource
from ..harness.record import Case, Findings, Run, Verdict
from ..harness.trace import TRACE, Trace, TraceSink, between, curve, firsts, percentile_of
from . import slices
from .competitor import compete
from .memory import Memory, MemoryWatch

KEYS = 1_000_000
STATE_BYTES = 64
KEY_GROUPS = 1024
MOVED = range(KEY_GROUPS // 4)
"""The groups to move: half of worker 0's, a quarter of all."""

SHARE = 0.5
"""The rate, as a part of the job's capacity."""

STEADY, AFTER, FULL_SPEED = 8.0, 3.0, 8.0
"""Seconds: at the rate before the move, after it, and at full speed to measure the capacity."""

VIRTUAL_RATE = 100_000
"""Rows a second of the run on virtual processors."""

PIECE = 0.05
MOST_P99 = {"batched": 1.5, "lazy": 2.0, "fluid": 1.5, "sudden": 4.0}
"""Targets by strategy: p99 while keys move over the steady p99."""

MOST_MEMORY, MOST_STEADY_MS = 0.1, 15.0
"""Targets: memory for the move over the state moved, and the steady p99."""

OPERATOR = "stateful_map"
WAIT = 180.0
RESTART = "restart"
SAVE_FIRST = 2.0
"""Seconds before a restart at which a checkpoint empties the workers' trace, so that the savepoint doesn't carry it."""


COMPETED = ("batched", "lazy")
"""The strategies that are compared with a competitor."""


Reading = tuple[float, float]
"""A time, and the processor seconds of all processes so far."""


@dataclass(frozen=True, slots=True)
class Move:
    """One migration: latencies are in ms, times in seconds. `cpu`: processor seconds that it took beyond those of its records.

    `first`: over the moved keys, the p99 of the latency of each key's first record that was due during the move.
    """

    steady: float
    p99: float
    largest: float
    first: float
    report: MigrationReport
    memory: Memory
    curve: list[tuple[float, float, float]]
    busy: float
    cpu: float

    @property
    def transient_part(self) -> float:
        """The memory that the move needed beyond the workers' memory before and after it, as a part of the state moved."""
        return self.memory.transient / (self.report.state_bytes / 2**20)


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Run every strategy and `restart`, in turn."""
    strategies = tuple(dict.fromkeys((*given.strategies, RESTART)))
    rate = float(given.rate) if given.rate is not None else SHARE * capacity()
    say(f"{rate:,.0f} rows/s")
    moves: dict[str, list[Move]] = {strategy: [] for strategy in strategies}
    for number in range(given.repeat):
        for strategy in strategies:
            moves[strategy].append(move := measure(strategy, rate, number))
            say(line_of(strategy, move))
    cases = [case for strategy in strategies for case in cases_of(strategy, moves[strategy])]
    for strategy in [strategy for strategy in COMPETED if strategy in given.strategies]:
        cases += competed(strategy, rate, moves[strategy], say)
    for strategy in given.strategies:
        sliced = slices.measure_slices(strategy, lambda rows: rows.stateful_map(touch), KEYS, VIRTUAL_RATE, KEY_GROUPS, MOVED)
        say(slices.line_of(strategy, sliced))
        cases += slices.cases_of(strategy, sliced)
    facts = {"rate": round(rate), "keys": KEYS, "state_bytes": STATE_BYTES, "moved_groups": len(MOVED), "steady_seconds": STEADY}
    series = {strategy: [move.curve for move in measured] for strategy, measured in moves.items()}
    return Findings(cases, verdicts(moves), doubts(moves), series, facts)


def touch(state: bytes | None, row: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """Count in a state of 64 bytes, and pass the row on."""
    count = int.from_bytes(state[:8], "little") if state is not None else 0
    return (count + 1).to_bytes(STATE_BYTES, "little"), row


def start(rate: float | None, name: str, checkpoints: str | None = None) -> tuple[ef.Job, TraceSink]:
    """Start the job, and wait until it has all keys."""
    sink, flow = TraceSink(), ef.Dataflow(name)
    flow.read(PreloadedSource(KEYS, rate)).key_by("key").stateful_map(touch).write(sink)
    config = ef.JobConfig(parallelism=2, key_groups=KEY_GROUPS, checkpoint=ef.CheckpointConfig(checkpoints, interval=None))
    job = flow.run(config=config)
    until(lambda: rows_read(job, OPERATOR) >= KEYS, f"the job has {KEYS:,} keys", WAIT, every=0.2)
    return job, sink


def capacity() -> float:
    """Measure the rows a second at full speed."""
    job, _ = start(None, "bench-migration-largest")
    time.sleep(2.0)
    begun, before = time.monotonic(), rows_read(job, OPERATOR)
    time.sleep(FULL_SPEED)
    rate = (rows_read(job, OPERATOR) - before) / (time.monotonic() - begun)
    job.cancel()
    job.wait(WAIT)
    return rate


def measure(strategy: str, rate: float, number: int) -> Move:
    """Measure one migration in a job of its own."""
    busy = machine.busy_share()
    with scratch("migration") as folder:
        job, sink = start(rate, f"bench-migration-{strategy}-{number}", str(folder) if strategy == RESTART else None)
        with MemoryWatch(rate * TRACE.itemsize / 2**20) as watch:
            settling = time.monotonic(), processor_seconds()
            settle(job, strategy)
            begun, begun_watch = time.time(), time.monotonic()
            moving_from = begun_watch, processor_seconds()
            report = job.migrate(OPERATOR, groups=MOVED, to=1, strategy=strategy, timeout=WAIT)
            cpu = extra_seconds(settling, moving_from, (time.monotonic(), processor_seconds()))
            time.sleep(AFTER)
        drain(job, WAIT)
    took = report.seconds or 0.0
    ended, trace = begun + took, sink.trace()
    steady, moving = between(trace, begun - STEADY / 2, begun - PIECE), between(trace, begun, ended)
    around = between(trace, begun - 1.0, ended + AFTER - 1.0)
    return Move(
        percentile_of(steady, 0.99), percentile_of(moving, 0.99), longest_wait(between(trace, begun - PIECE, ended + 1.0)),
        percentile_of(firsts(of_groups(moving)), 0.99), report, Memory.around(watch.samples, begun_watch, begun_watch + took, STEADY / 2),
        curve(around, begun, PIECE), busy, cpu,
    )  # fmt: skip


def processor_seconds() -> float:
    """Return the processor seconds of all processes below this one so far."""
    return sum(machine.cpu_of(pid) or 0.0 for pid in machine.descendants(os.getpid()))


def extra_seconds(settling: Reading, begun: Reading, ended: Reading) -> float:
    """Return the processor seconds of a move beyond those that the steady phase before it would have taken, at least 0.

    >>> extra_seconds((0.0, 10.0), (8.0, 14.0), (10.0, 16.0))
    1.0
    """
    steady = (begun[1] - settling[1]) / (begun[0] - settling[0])
    return max(0.0, ended[1] - begun[1] - steady * (ended[0] - begun[0]))


def competed(strategy: str, rate: float, moves: Sequence[Move], say: Say) -> list[Case]:
    """Measure the job while nothing moves, but competitors take the processor time that the moves took, for as long."""
    took = median(move.report.seconds or 0.0 for move in moves)
    cores = median(move.cpu for move in moves) / took
    if not cores:
        say(f"{strategy}: its moves took no processor time that could be told from that of the records, so nothing competes")
        return []
    job, sink = start(rate, f"bench-migration-competitor-{strategy}")
    time.sleep(STEADY)
    nice = psutil.Process(machine.workers_below(os.getpid())[0]).nice()
    begun = compete(cores, took, nice)
    time.sleep(AFTER)
    drain(job, WAIT)
    trace = sink.trace()
    before, during = (
        percentile_of(between(trace, first, last), 0.99) for first, last in ((begun - STEADY / 2, begun - PIECE), (begun, begun + took))
    )
    say(f"{strategy}, a competitor in its place ({cores:.2f} cores for {took:.1f} s): p99 {before:.1f} ms, {during:.1f} meanwhile")
    figures = {
        "steady p99": ("ms", before),
        "p99 while it moves": ("ms", during),
        "duration": ("s", took),
        "ratio of the two": ("", during / before),
        "cores": ("", cores),
    }
    return [Case(f"{strategy}, competitor/{name}", unit, "lower", (value,)) for name, (unit, value) in figures.items()]


def settle(job: ef.Job, strategy: str) -> None:
    """Wait for the steady phase before the move."""
    if strategy == RESTART:
        time.sleep(STEADY - SAVE_FIRST)
        job.checkpoint(WAIT)
        time.sleep(SAVE_FIRST)
    else:
        time.sleep(STEADY)


def longest_wait(trace: Trace) -> float:
    """Return the largest latency (ms). A restarted source leaves a gap; rows due in it waited for the first result after it.

    >>> longest_wait(np.array([(0, 2.0, 7), (1_000_000, 3.0, 7), (501_000_000, 4.0, 7)], TRACE))
    504.0
    """
    if not len(trace):
        return 0.0
    holes = np.diff(trace["created"], prepend=trace["created"][:1]) / 1e6
    return float((holes + trace["latency"]).max())


def of_groups(trace: Trace) -> Trace:
    """Return the records whose keys move."""
    groups = key_groups([pa.array(trace["key"].astype(np.int64))], KEY_GROUPS, OPERATOR)
    return trace[groups < len(MOVED)]


def cases_of(strategy: str, moves: Sequence[Move]) -> list[Case]:
    """Return the measurements of a strategy. A restart has its stall only."""
    details = tuple({"busy_before": move.busy} for move in moves)
    figures: dict[str, tuple[str, list[float]]] = {
        "largest": ("ms", [move.largest for move in moves]),
        "duration": ("s", [move.report.seconds or 0.0 for move in moves]),
    }
    if strategy != RESTART:
        figures |= {
            "steady p99": ("ms", [move.steady for move in moves]),
            "p99 while it moves": ("ms", [move.p99 for move in moves]),
            "ratio of the two": ("", [move.p99 / move.steady for move in moves]),
            "first result of a moved key, p99": ("ms", [move.first for move in moves]),
            "steps": ("", [float(move.report.steps) for move in moves]),
            "state moved": ("bytes", [float(move.report.state_bytes) for move in moves]),
            "memory for the move": ("MiB", [move.memory.transient for move in moves]),
            "memory kept": ("MiB", [move.memory.after - move.memory.before for move in moves]),
            "scatter of memory before": ("MiB", [move.memory.scatter for move in moves]),
        }
    return [Case(f"{strategy}/{name}", unit, "lower", tuple(values), details) for name, (unit, values) in figures.items()]


def line_of(strategy: str, move: Move) -> str:
    """Describe a migration in one line."""
    took = f"{strategy}: {move.report.seconds:.3f} s, largest {move.largest:.1f} ms"
    if strategy == RESTART:
        return took
    memory = f"memory {move.memory.before:.0f}, {move.memory.peak:.0f}, {move.memory.after:.0f} MiB"
    return f"{took}, {move.report.steps} steps; p99 {move.steady:.1f} ms, {move.p99:.1f} while it moves; {memory}"


def verdicts(moves: Mapping[str, Sequence[Move]]) -> list[Verdict]:
    """Judge the strategies that were measured by the median of their repeats."""
    found = [Verdict("steady p99 in ms, all jobs", median(steady_p99s(moves)), MOST_STEADY_MS, "lower")]
    for strategy in _measured(moves, *MOST_P99):
        ratio = median(move.p99 / move.steady for move in moves[strategy])
        found.append(Verdict(f"{strategy}: p99 while it moves / steady p99", ratio, MOST_P99[strategy], "lower"))
    for strategy in _measured(moves, "fluid", "batched"):
        part = median(move.transient_part for move in moves[strategy])
        found.append(Verdict(f"{strategy}: memory beyond what is kept / state moved", part, MOST_MEMORY, "lower"))
    for strategy in _measured(moves, "lazy"):
        ratio = median(move.first / move.steady for move in moves[strategy])
        found.append(Verdict(f"{strategy}: first result of a moved key (p99) / steady p99", ratio, 3.0, "lower"))
    for strategy in _measured(moves, "batched", "lazy") if moves.get(RESTART) else ():
        ratio = median(move.largest for move in moves[strategy]) / median(move.largest for move in moves[RESTART])
        found.append(Verdict(f"{strategy}: largest latency / restart's", ratio, 0.1, "lower"))
    return found


def steady_p99s(moves: Mapping[str, Sequence[Move]]) -> list[float]:
    """Return the steady p99s of all jobs that are not restarted."""
    return [move.steady for strategy, measured in moves.items() if strategy != RESTART for move in measured]


def doubts(moves: Mapping[str, Sequence[Move]]) -> list[str]:
    """Name the verdicts that the run can't decide, because their baseline scatters too much."""
    found = []
    steady = steady_p99s(moves)
    for strategy in _measured(moves, *MOST_P99):
        p99, most = median(move.p99 for move in moves[strategy]), MOST_P99[strategy]
        if p99 / max(steady) <= most < p99 / min(steady):
            span = f"the steady p99 is {min(steady):.1f} to {max(steady):.1f} ms in the jobs of this run"
            found.append(f"{strategy}: {span}; its p99 of {p99:.1f} ms is more than {most:g} times some of them: not decided")
    for strategy in _measured(moves, "fluid", "batched"):
        scatter = median(move.memory.scatter for move in moves[strategy])
        limit = median(move.report.state_bytes for move in moves[strategy]) / 2**20 * MOST_MEMORY
        if scatter > limit:
            found.append(f"{strategy}: memory scatters by {scatter:.1f} MiB before the move, the limit is {limit:.1f} MiB: not decided")
    return found


def _measured(moves: Mapping[str, Sequence[Move]], *strategies: str) -> list[str]:
    return [strategy for strategy in strategies if moves.get(strategy)]


def draw(run: Run, figure: Any) -> None:
    """Draw the latency around the first migration of each strategy."""
    axes = figure.subplots()
    for strategy, curves in run.series.items():
        axes.plot([piece[0] for piece in curves[0]], [piece[1] for piece in curves[0]], label=strategy)
    axes.axvline(0.0, color="gray", linestyle=":")
    axes.set_yscale("log")
    axes.set_xlabel("seconds since the migration began")
    axes.set_ylabel("p99 of 50 ms, ms")
    axes.legend()


BENCHMARK = Benchmark(
    "migration",
    "latency and memory while a quarter of the state moves, by strategy",
    (
        Argument("--strategies", some_of((*LIVE, RESTART)), list(LIVE), f"compared with {RESTART}"),
        repeat(1, "migrations of each"),
        Argument("--rate", int, None, "rows per second (default: half of the job's capacity)"),
    ),
    run,
    (
        "rows that restart delays after its stall: its source restarts their schedule, so only the stall counts",
        "memory of restart: its workers are new processes",
        "more than one machine: state goes over a Unix socket here, and a savepoint onto a local disk",
    ),
    draw,
)
