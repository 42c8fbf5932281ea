"""The latency of NexMark's results while state moves and workers join, compared with a savepoint and a restart: Megaphone's experiment.

Hoffmann et al., "Megaphone: latency-conscious state migration for distributed streaming dataflows" (VLDB 2019). Events come at a steady
rate, and event time is that of the clock. The latency of a result is the time from its event time to the sink: from when its event was
due, or from the end of its window. Every change begins shortly before a full ten seconds, when windows of q5 and q8 end.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

import evenflow as ef

from ...actors.cluster import start_cluster
from ...engine.batch import Batch
from ...engine.sink import SinkWriter
from ..harness import machine
from ..harness.benchmark import Argument, Benchmark, Say, some_of
from ..harness.conditions import scratch
from ..harness.errors import BenchmarkError
from ..harness.jobs import drain
from ..harness.plots import panels
from ..harness.record import Case, Findings, Run, Verdict
from ..harness.sinks import DiscardSink
from ..harness.trace import Trace, TraceSink, TraceWriter, between, curve, percentile_of
from ..migration.run import KEY_GROUPS, MOVED, RESTART, SHARE
from .live import live
from .queries import QUERIES

OPERATORS: Mapping[str, str] = {"q4": "valid-bids", "q5": "counts", "q8": "newcomers", "q11": "aggregate"}
"""The operator of each query whose state moves, and that gets another worker."""

MOVES, SCALE = ("batched", "lazy"), "2 to 3 workers"
WORKERS, READERS = 2, 2
FULL = 10.0
"""Seconds: the longest windows, so that each such span of event time has results."""

BEFORE, PIECE, AFTER = 0.1, 0.05, 1.0
"""Seconds: from a change's begin to a full ten seconds, of a point of the curve, and after a change that count as a part of it."""

SETTLE = 21.0
"""Seconds at the rate before each change: two windows of q8 have ended then."""

CAPACITY_EVENTS, WAIT = 300_000, 300.0
START = 40.0
"""Seconds that the processes get before the first event is due."""

MOST_P99 = 2.0
"""Target: p99 while state moves or a worker joins over the steady p99."""

COLUMNS, PANEL = 2, (5.0, 3.0)
"""Panels in a row, and inches of one."""


class ResultTrace(TraceSink):
    """Records the latency of results of any columns; their event times are when they were due."""

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return ResultTraceWriter()


class ResultTraceWriter(TraceWriter):
    """The writer of `ResultTrace`."""

    def write(self, batch: Batch) -> None:
        assert batch.times is not None
        self.note(np.zeros(batch.num_rows, np.int32), batch.times * 1000)


@dataclass(frozen=True, slots=True)
class Change:
    """Latencies in ms: `steady` in the ten seconds before it; p99, the largest and the number of results while it took `seconds`."""

    steady: float
    p99: float
    largest: float
    results: int
    seconds: float
    curve: list[tuple[float, float, float]]
    busy: float


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Measure all changes of each query."""
    start_cluster()
    changes: dict[str, dict[str, Change]] = {}
    rates: dict[str, float] = {}
    for query in given.queries:
        rates[query] = given.rate if given.rate is not None else SHARE * capacity(query)
        say(f"{query}: {rates[query]:,.0f} events/s")
        changes[query] = {**moved(query, rates[query]), RESTART: restarted(query, rates[query])}
        for name, change in changes[query].items():
            say(line_of(f"{query}, {name}", change))
    cases = [case for query, each in changes.items() for name, change in each.items() for case in cases_of(f"{query}, {name}", change)]
    series = {query: {name: change.curve for name, change in each.items()} for query, each in changes.items()}
    return Findings(cases, verdicts(changes), series=series, facts={"rates": rates, "key_groups": KEY_GROUPS, "moved_groups": len(MOVED)})


def capacity(query: str) -> float:
    """Measure the events of all streams a second at full speed."""
    flow = ef.Dataflow(f"nexmark-moves-capacity-{query}")
    QUERIES[query](live(flow, begun=0.0, rate=10_000.0, events=CAPACITY_EVENTS, readers=READERS)).write(DiscardSink())
    job = flow.run(config=ef.JobConfig(parallelism=WORKERS, checkpoint=ef.CheckpointConfig(interval=None)))
    begun = job.status().running_seconds
    return CAPACITY_EVENTS / (job.wait(WAIT).status().running_seconds - begun)


def moved(query: str, rate: float) -> dict[str, Change]:
    """Move a quarter of the state of one job by one strategy and back by the other, and then add a worker."""
    busy = machine.busy_share()
    job, sink, begun = start(query, rate)
    operator, spans = OPERATORS[query], {}
    for number, name in enumerate((*MOVES, SCALE)):
        at = await_full((begun if not number else time.time()) + SETTLE)
        if name == SCALE:
            took = job.scale(operator, WORKERS + 1, timeout=WAIT).seconds
        else:
            took = job.migrate(operator, groups=MOVED, to=1 - number, strategy=name, timeout=WAIT).seconds
        spans[name] = at, took or 0.0
    await_full(time.time() + FULL)
    drain(job, WAIT)
    trace = sink.trace()
    return {name: change_of(trace, at, took, busy) for name, (at, took) in spans.items()}


def restarted(query: str, rate: float) -> Change:
    """Take a savepoint with two workers, end the job, and start another from it with three."""
    busy = machine.busy_share()
    with scratch("moves") as folder:
        job, before, begun = start(query, rate, str(folder))
        at = await_full(begun + SETTLE)
        job.savepoint(f"{folder}/saved", WAIT)
        job.cancel()
        job.wait(WAIT)
        job, after, _ = start(query, rate, str(folder), begun, f"{folder}/saved")
        took = time.time() - at
        await_full(time.time() + 2 * FULL)
        drain(job, WAIT)
    return change_of(np.concatenate([before.trace(), after.trace()]), at, took, busy)


def start(
    query: str, rate: float, folder: str | None = None, begun: float | None = None, savepoint: str | None = None
) -> tuple[ef.Job, TraceSink, float]:
    """Start the job; returns it, its sink, and when its events begin to be due. From a `savepoint` it has one worker more.

    Raises BenchmarkError if its processes took too long: then it would first have to catch up.
    """
    begun = begun if begun is not None else time.time() + START
    flow, sink = ef.Dataflow(f"nexmark-moves-{query}"), ResultTrace()
    QUERIES[query](live(flow, begun=begun, rate=rate, base_time=int(begun * 1000), readers=READERS)).write(sink)
    node = next(node for node in flow.graph if node.name == OPERATORS[query])
    node.parallelism = WORKERS if savepoint is None else WORKERS + 1
    config = ef.JobConfig(parallelism=WORKERS, key_groups=KEY_GROUPS, checkpoint=ef.CheckpointConfig(folder, interval=None))
    job = flow.run(config=config, from_savepoint=savepoint)
    if savepoint is None and time.time() > begun:
        job.cancel()
        raise BenchmarkError(f"the job of {query} did not start within {START:g} s: other programs use the machine too much")
    return job, sink, begun


def await_full(earliest: float) -> float:
    """Sleep until shortly before the first full ten seconds of the clock from `earliest` on; returns that time."""
    at = ceil(earliest / FULL) * FULL - BEFORE
    time.sleep(max(0.0, at - time.time()))
    return at


def change_of(trace: Trace, at: float, took: float, busy: float) -> Change:
    """Summarise the change that began at `at` (seconds since the epoch) and took `took` seconds, of results in any order."""
    trace = trace[np.argsort(trace["created"], kind="stable")]
    steady, meanwhile = between(trace, at - FULL, at - PIECE), between(trace, at - PIECE, at + took + AFTER)
    around = between(trace, at - FULL, at + took + FULL)
    return Change(
        percentile_of(steady, 0.99), percentile_of(meanwhile, 0.99), percentile_of(meanwhile, 1.0), len(meanwhile), took,
        curve(around, at, PIECE), busy,
    )  # fmt: skip


def cases_of(name: str, change: Change) -> list[Case]:
    """Return the measurements of a change."""
    details = ({"busy_before": change.busy, "results": change.results},)
    figures = {"steady p99": change.steady, "p99 meanwhile": change.p99, "largest": change.largest}
    found = [Case(f"{name}/{what}", "ms", "lower", (value,), details) for what, value in figures.items()]
    return [*found, Case(f"{name}/duration", "s", "lower", (change.seconds,), details)]


def line_of(name: str, change: Change) -> str:
    """Describe a change in one line."""
    return (
        f"{name}: {change.seconds:.2f} s, p99 {change.p99:.1f} ms and at most {change.largest:.1f} ms of {change.results:,} results, "
        f"steady p99 {change.steady:.1f} ms"
    )


def verdicts(changes: Mapping[str, Mapping[str, Change]]) -> list[Verdict]:
    """Judge Megaphone's claims: latency hardly grows, and is orders of magnitude below that of a restart."""
    found = []
    for query, each in changes.items():
        for name, change in each.items():
            if name != RESTART:
                found.append(Verdict(f"{query}, {name}: p99 meanwhile / steady p99", change.p99 / change.steady, MOST_P99, "lower"))
                found.append(Verdict(f"{query}, {name}: largest / restart's", change.largest / each[RESTART].largest, 0.1, "lower"))
    return found


def draw(run: Run, figure: Any) -> None:
    """Draw the latency around each change, a panel for each query."""
    for axes, (query, curves) in zip(panels(figure, len(run.series), COLUMNS, PANEL), run.series.items(), strict=True):
        for name, points in curves.items():
            axes.plot([point[0] for point in points], [point[2] for point in points], ".-", linewidth=0.8, markersize=3, label=name)
        axes.axvline(0.0, color="gray", linestyle=":")
        axes.set_yscale("log")
        axes.set_title(query, fontsize="medium")
        axes.set_xlabel("seconds since the change began, of when a result was due")
        axes.set_ylabel("largest of 50 ms, ms")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


BENCHMARK = Benchmark(
    "nexmark-moves",
    "the latency of NexMark's results while state moves and workers join",
    (
        Argument("--queries", some_of(OPERATORS), list(OPERATORS), "queries"),
        Argument("--rate", float, None, "events a second (default: half of each query's capacity)"),
    ),
    run,
    (
        "more than one machine, and a core for each worker",
        "the rows themselves: they are discarded; the simulations compare those of jobs whose state moves",
    ),
    draw,
)
