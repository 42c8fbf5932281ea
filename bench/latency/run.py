"""End-to-end latency of a running count per key at a fixed rate: from when a row was due to when its update reaches the sink.

A row's clock starts when it was due, not when the source read it, so a stall counts for every row that it delayed. With 100,000 uniform
keys nearly every row makes an update of its own; rows that share a key and a batch count as the newest one. Bytewax makes an update of
every row. Both systems run in two processes: one has the source, and evenflow counts in the other, Bytewax in both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import evenflow as ef

from ..baselines.bytewax import run_cluster
from ..harness import machine
from ..harness.benchmark import Argument, Benchmark, Say, numbers, repeat, some_of
from ..harness.conditions import scratch
from ..harness.record import Case, Findings, Run, Verdict, medians
from ..harness.sinks import Histogram, LatencySink, add_counts, percentile

KEYS = 100_000
WARM_UP = 5
TARGETS = {50_000: {"p50": 3.0, "p99": 15.0}, 200_000: {"p99": 10.0}}
NOT_ABOVE_BYTEWAX = {50_000: ("p50", "p99")}
"""The rates and percentiles that must not be above Bytewax's."""

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}

Counts = dict[int, Histogram]
"""Histograms by second of creation."""


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Measure each rate after a warm-up, the systems in turn."""
    cases: list[Case] = []
    series: dict[str, list[tuple[int, float, float]]] = {}
    for rate in given.rates:
        found: dict[str, list[tuple[Counts, Mapping[str, float]]]] = {system: [] for system in given.systems}
        for _ in range(given.repeat):
            for system in given.systems:
                busy = machine.busy_share()
                measured = after_warm_up(SYSTEMS[system](rate, rate * (given.seconds + WARM_UP)))
                found[system].append((measured, {"busy_before": busy, "at": time.time(), "rows": rate * given.seconds}))
        for system, iterations in found.items():
            of_system = _cases(rate, system, iterations)
            cases += of_system
            say(f"{rate:,} rows/s, {system}: " + ", ".join(f"{case.name.rpartition('/')[2]} {case.median:.2f} ms" for case in of_system))
        if "evenflow" in found:
            series[str(rate)] = [(s, percentile(c, 0.5), percentile(c, 0.99)) for s, c in found["evenflow"][-1][0].items()]
    return Findings(cases, verdicts(cases), series=series, facts={"keys": KEYS, "warm_up_seconds": WARM_UP})


def evenflow(rate: int, total: int, config: ef.JobConfig | None = None) -> Counts:
    """Run one source worker and one that counts, or as many as `config` says."""
    sink = LatencySink()
    flow = ef.Dataflow(f"bench-latency-{rate}")
    rows = flow.read(ef.generate(rate=rate, total=total, keys=KEYS, created=True))
    rows.key_by("key").aggregate(n=ef.count(), created=ef.last("created")).write(sink)
    flow.run(config=config).wait(total / rate + 120)
    return sink.counts


def bytewax(rate: int, total: int) -> Counts:
    """Run two processes of one worker each."""
    with scratch("latency") as folder:
        options = {"RATE": rate, "TOTAL": total, "KEYS": KEYS, "FOLDER": folder}
        run_cluster(f"{__package__}.bytewax_flow:flow", {f"EVENFLOW_BENCH_{name}": str(value) for name, value in options.items()})
        counts: Counts = {}
        for path in folder.glob("*.npz"):
            with np.load(path) as histograms:
                for second, of_second in zip(histograms["seconds"].tolist(), histograms["counts"], strict=True):
                    add_counts(counts, second, of_second)
    return counts


SYSTEMS: Mapping[str, Callable[[int, int], Counts]] = {"evenflow": evenflow, "bytewax": bytewax}


def verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """Judge the rates that were measured by their targets, and by Bytewax's medians."""
    found = medians(cases)
    judged = [
        Verdict(f"{name} in ms at {rate:,} rows/s", found[f"{rate}/evenflow/{name}"], target, "lower")
        for rate, targets in TARGETS.items()
        for name, target in targets.items()
        if f"{rate}/evenflow/{name}" in found
    ]
    return judged + [
        Verdict(f"{name} at {rate:,} rows/s / Bytewax's", ours / theirs, 1.0, "lower")
        for rate, names in NOT_ABOVE_BYTEWAX.items()
        for name in names
        if (ours := found.get(f"{rate}/evenflow/{name}")) and (theirs := found.get(f"{rate}/bytewax/{name}"))
    ]


def draw(run: Run, figure: Any) -> None:
    """Draw the latency by second."""
    axes = figure.subplots()
    for rate, figures in run.series.items():
        seconds = [figure[0] for figure in figures]
        (line,) = axes.plot(seconds, [figure[2] for figure in figures], label=f"{int(rate):,} rows/s, p99")
        axes.plot(seconds, [figure[1] for figure in figures], linestyle=":", color=line.get_color(), label=f"{int(rate):,} rows/s, p50")
    axes.set_yscale("log")
    axes.set_xlabel("second")
    axes.set_ylabel("end-to-end latency, ms")
    axes.legend()


def after_warm_up(counts: Counts) -> Counts:
    """Return the histograms of the seconds after the warm-up, counted from its end."""
    first = min(counts) + WARM_UP
    return {second - first: of_second for second, of_second in sorted(counts.items()) if second >= first}


def _cases(rate: int, system: str, iterations: Sequence[tuple[Counts, Mapping[str, float]]]) -> list[Case]:
    together = [np.sum(list(counts.values()), axis=0) for counts, _ in iterations]
    details = tuple({**facts, "updates": int(all_.sum())} for all_, (_, facts) in zip(together, iterations, strict=True))
    return [
        Case(f"{rate}/{system}/{name}", "ms", "lower", tuple(percentile(counts, share) for counts in together), details)
        for name, share in SHARES.items()
    ]


BENCHMARK = Benchmark(
    "latency",
    "p50 and p99 at fixed rates",
    (
        Argument("--rates", numbers, [50_000, 200_000], "rows per second"),
        Argument("--seconds", int, 30, "of each rate, after the warm-up"),
        Argument("--systems", some_of(SYSTEMS), ["evenflow"], f"of {', '.join(SYSTEMS)}"),
        repeat(1),
    ),
    run,
    ("more than one machine", "latency while state moves or workers come and go", "Bytewax with snapshots"),
    draw,
)
