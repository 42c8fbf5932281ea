"""End-to-end latency of a running count per key at a fixed rate: from when a row was due to when its update reaches the sink.

A row's clock starts when it was due, not when the source read it, so a stall counts for every row that it delayed. With 100,000 uniform
keys nearly every row makes an update of its own; rows that share a key and a batch count as the newest one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

import evenflow as ef

from . import machine
from .conditions import record
from .record import Case, Run, Verdict
from .sinks import LatencySink, percentile

KEYS = 100_000
WARM_UP = 5
TARGETS = {50_000: {"p50": 3.0, "p99": 15.0}, 200_000: {"p99": 50.0}}
NOT_MEASURED = ("other systems' latency", "more than one machine", "latency while state moves or workers come and go")


def run(*, rates: Sequence[int], seconds: int, say: Callable[[str], None]) -> Run:
    """Each rate for `seconds` after a warm-up."""
    cases: list[Case] = []
    series: dict[str, list[tuple[int, float, float]]] = {}
    for rate in rates:
        measured, figures = measure(rate, seconds)
        cases += measured
        series[str(rate)] = figures
        say(f"{rate:,} rows/s: " + ", ".join(f"{c.name.rpartition('/')[2]} {c.median:.2f} ms" for c in measured))
    arguments = {"rates": list(rates), "seconds": seconds, "keys": KEYS, "warm_up_seconds": WARM_UP}
    return record("latency", arguments, cases, verdicts(cases), not_measured=NOT_MEASURED, series=series)


def measure(rate: int, seconds: int) -> tuple[list[Case], list[tuple[int, float, float]]]:
    """Percentiles of one rate, and p50 and p99 of every second."""
    sink = LatencySink()
    flow = ef.Dataflow(f"bench-latency-{rate}")
    rows = flow.read(ef.generate(rate=rate, total=rate * (seconds + WARM_UP), keys=KEYS, created=True))
    rows.key_by("key").aggregate(n=ef.count(), created=ef.last("created")).write(sink)
    busy = machine.busy_share()
    flow.run().wait(seconds + WARM_UP + 120)
    first = min(sink.counts) + WARM_UP
    kept = {second - first: counts for second, counts in sorted(sink.counts.items()) if second >= first}
    together = np.sum(list(kept.values()), axis=0)
    details = ({"busy_before": busy, "updates": int(together.sum()), "rows": rate * seconds, "at": time.time()},)
    cases = [Case(f"{rate}/{name}", "ms", "lower", (percentile(together, share),), details) for name, share in shares().items()]
    return cases, [(second, percentile(counts, 0.5), percentile(counts, 0.99)) for second, counts in kept.items()]


def shares() -> dict[str, float]:
    """The percentiles that are reported."""
    return {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


def verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """The targets of the rates that were measured."""
    medians = {case.name: case.median for case in cases}
    return [
        Verdict(f"{name} in ms at {rate:,} rows/s", medians[f"{rate}/{name}"], target, "lower")
        for rate, targets in TARGETS.items()
        for name, target in targets.items()
        if f"{rate}/{name}" in medians
    ]
