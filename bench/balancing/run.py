"""The cost of automatic balancing for a load that is even: jobs with the balancer off and on in turn, in pairs.

Compared are processor time, which other programs hardly change, and the p99 of a running count at a fixed rate. The ratio of a pair is
that of two jobs that follow each other, so a machine that gets slower changes it little.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

import evenflow as ef

from ..harness import machine
from ..harness.benchmark import FOLDER, Argument, Benchmark, Say, repeat, some_of
from ..harness.conditions import scratch
from ..harness.process import run_system
from ..harness.record import Case, Findings, Verdict
from ..harness.sinks import percentile
from ..harness.task import Task
from ..latency.run import WARM_UP, after_warm_up, evenflow
from ..nexmark.data import make
from ..nexmark.run import EVENTS
from ..nexmark.streams import streams_of
from ..throughput.data import ROWS, find

BALANCERS = ("off", "hotspot")
MOST = 1.01
"""Target: the median ratio of the pairs."""

CHECKED_EVENTS = 10_000
RATE, SECONDS = 50_000, 20
"""Rows a second of the latency, and seconds after the warm-up."""

TIMEOUT = 3600.0
LATENCY = "latency"
TASKS = ("t1", "t2", "q1", "q5", "q8", LATENCY)


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Measure the pairs of each task."""
    cases: list[Case] = []
    verdicts: list[Verdict] = []
    for name in given.tasks:
        busy = machine.busy_share()
        unit, values = ("ms", _latencies(given)) if name == LATENCY else ("s per million rows", _processor(name, given))
        pairs = [(off, on) for off, on in zip(values[::2], values[1::2], strict=True)]
        ratios = [on / off for off, on in pairs]
        for balancer, measured in zip(BALANCERS, zip(*pairs, strict=True), strict=True):
            cases.append(Case(f"{name}/{balancer}", unit, "lower", tuple(measured), ({"busy_before": busy},)))
        cases.append(Case(f"{name}/ratio", "", "lower", tuple(ratios)))
        verdicts.append(Verdict(f"{name}: balanced / not, {spread_of(ratios)}", median(ratios), MOST, "lower"))
        say(f"{name}: {median(ratios):.3f}, {spread_of(ratios)}")
    return Findings(cases, verdicts)


def spread_of(ratios: Sequence[float]) -> str:
    """Return the middle half of the ratios as text.

    >>> spread_of([0.9, 0.99, 1.0, 1.01, 1.3])
    'half of the pairs from 0.990 to 1.010'
    """
    low, high = np.percentile(ratios, [25, 75])
    return f"half of the pairs from {low:.3f} to {high:.3f}"


def _processor(name: str, given: argparse.Namespace) -> list[float]:
    """Return the processor time of jobs without and with balancing in turn, in seconds per million rows."""
    options: dict[str, Any] = {"balancers": BALANCERS}
    with scratch(f"balancing-{name}") as output:
        if name.startswith("t"):
            data = find(given.folder, "integers", given.rows)
            folder, rows, last, module = data.folder, data.rows, data.last_window, "throughput.evenflow"
            options["runtime"] = "ray"
        else:
            events, checked = (make(given.folder, count, lambda _: None) for count in (given.events, CHECKED_EVENTS))
            folder, rows, last, module = events.folder, sum(events.rows(stream) for stream in streams_of(name)), 0, "nexmark.evenflow"
            options |= {
                "input": "csv",
                "events": events.events,
                "checked": str(checked.folder),
                "checked_events": CHECKED_EVENTS,
                "sql": False,
            }
        task = Task(name, str(folder), rows, last, str(output / "out"), 2 * (1 + given.repeat), options)
        answers = run_system(module, task, TIMEOUT)
    return [answer.cpu_per_million for answer in answers[2:]]  # the first pair warms up


def _latencies(given: argparse.Namespace) -> list[float]:
    """Return the p99 of running counts without and with balancing in turn, in milliseconds."""
    found = []
    for number in range(2 * given.repeat):
        config = ef.JobConfig(parallelism=2, balance=ef.BalanceConfig(BALANCERS[number % 2]))
        counts = after_warm_up(evenflow(RATE, RATE * (SECONDS + WARM_UP), config))
        found.append(percentile(np.sum(list(counts.values()), axis=0), 0.99))
    return found


BENCHMARK = Benchmark(
    "balancing",
    "what automatic balancing costs a job with an even load, in pairs",
    (
        Argument("--tasks", some_of(TASKS), list(TASKS), "what to measure"),
        repeat(6, "pairs of each"),
        Argument("--rows", int, ROWS, "rows of t1 and t2"),
        Argument("--events", int, EVENTS, "events of NexMark"),
        FOLDER,
    ),
    run,
    ("more than two workers an operator",),
)
