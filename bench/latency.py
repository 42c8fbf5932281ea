"""End-to-end latency of a running count per key at a fixed rate: from when a row was due to when its update reaches the sink.

A row's clock starts when it was due, not when the source read it, so a stall counts for every row that it delayed. With 100,000 uniform
keys nearly every row makes an update of its own; rows that share a key and a batch count as the newest one. Bytewax makes an update of
every row. It runs in two processes, as evenflow does: one has the source, and both count.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import evenflow as ef

from . import machine
from .conditions import record
from .record import Case, Run, Verdict
from .sinks import LatencySink, add_counts, percentile
from .systems.bytewax import run_cluster
from .throughput import check_names

KEYS = 100_000
WARM_UP = 5
TARGETS = {50_000: {"p50": 3.0, "p99": 15.0}, 200_000: {"p99": 10.0}}
BESIDE = {50_000: ("p50", "p99")}
"""The rates and percentiles that must not be above Bytewax's."""

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
NOT_MEASURED = ("more than one machine", "latency while state moves or workers come and go", "Bytewax with snapshots")

Counts = dict[int, npt.NDArray[np.int64]]
"""Histograms by second of creation."""


def run(*, rates: Sequence[int], seconds: int, systems: Sequence[str], repeat: int, say: Callable[[str], None]) -> Run:
    """Each rate for `seconds` after a warm-up, the systems in turn. Raises BenchmarkError for an unknown system."""
    check_names("system", systems, SYSTEMS)
    cases: list[Case] = []
    series: dict[str, list[tuple[int, float, float]]] = {}
    for rate in rates:
        found: dict[str, list[tuple[Counts, Mapping[str, float]]]] = {system: [] for system in systems}
        for _ in range(repeat):
            for system in systems:
                busy = machine.busy_share()
                measured = _after_warm_up(SYSTEMS[system](rate, rate * (seconds + WARM_UP)))
                found[system].append((measured, {"busy_before": busy, "at": time.time(), "rows": rate * seconds}))
        for system, iterations in found.items():
            of_system = _cases(rate, system, iterations)
            cases += of_system
            say(f"{rate:,} rows/s, {system}: " + ", ".join(f"{case.name.rpartition('/')[2]} {case.median:.2f} ms" for case in of_system))
        if "evenflow" in found:
            series[str(rate)] = [(s, percentile(c, 0.5), percentile(c, 0.99)) for s, c in found["evenflow"][-1][0].items()]
    arguments = {"rates": [*rates], "seconds": seconds, "systems": [*systems], "repeat": repeat, "keys": KEYS, "warm_up_seconds": WARM_UP}
    return record("latency", arguments, cases, verdicts(cases), not_measured=NOT_MEASURED, series=series)


def evenflow(rate: int, total: int) -> Counts:
    """One source worker and one that counts."""
    sink = LatencySink()
    flow = ef.Dataflow(f"bench-latency-{rate}")
    rows = flow.read(ef.generate(rate=rate, total=total, keys=KEYS, created=True))
    rows.key_by("key").aggregate(n=ef.count(), created=ef.last("created")).write(sink)
    flow.run().wait(total / rate + 120)
    return sink.counts


def bytewax(rate: int, total: int) -> Counts:
    """Two processes of one worker each."""
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-latency-") as folder:
        options = {"RATE": rate, "TOTAL": total, "KEYS": KEYS, "FOLDER": folder}
        environment = {f"EVENFLOW_BENCH_{name}": str(value) for name, value in options.items()}
        run_cluster("evenflow.bench.systems.bytewax_latency:flow", environment)
        counts: Counts = {}
        for path in Path(folder).glob("*.npz"):
            with np.load(path) as histograms:
                for second, of_second in zip(histograms["seconds"].tolist(), histograms["counts"], strict=True):
                    add_counts(counts, second, of_second)
    return counts


SYSTEMS: Mapping[str, Callable[[int, int], Counts]] = {"evenflow": evenflow, "bytewax": bytewax}


def verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """The targets of the rates that were measured, and of the ratios to Bytewax: the medians of both systems' iterations."""
    medians = {case.name: case.median for case in cases}
    found = [
        Verdict(f"{name} in ms at {rate:,} rows/s", medians[f"{rate}/evenflow/{name}"], target, "lower")
        for rate, targets in TARGETS.items()
        for name, target in targets.items()
        if f"{rate}/evenflow/{name}" in medians
    ]
    return found + [
        Verdict(f"{name} at {rate:,} rows/s / Bytewax's", ours / theirs, 1.0, "lower")
        for rate, names in BESIDE.items()
        for name in names
        if (ours := medians.get(f"{rate}/evenflow/{name}")) and (theirs := medians.get(f"{rate}/bytewax/{name}"))
    ]


def _after_warm_up(counts: Counts) -> Counts:
    first = min(counts) + WARM_UP
    return {second - first: of_second for second, of_second in sorted(counts.items()) if second >= first}


def _cases(rate: int, system: str, iterations: Sequence[tuple[Counts, Mapping[str, float]]]) -> list[Case]:
    together = [np.sum(list(counts.values()), axis=0) for counts, _ in iterations]
    details = tuple({**facts, "updates": int(all_.sum())} for all_, (_, facts) in zip(together, iterations, strict=True))
    return [
        Case(f"{rate}/{system}/{name}", "ms", "lower", tuple(percentile(counts, share) for counts in together), details)
        for name, share in SHARES.items()
    ]
