"""The cost of width: one keyed operator of 2 to 1,024 workers with 32,768 key groups, in one process, by processor time.

The real state machine of a coordinator gets real messages, which a crowd answers at once. No worker, socket or file exists.
"""

from __future__ import annotations

import argparse
from typing import Any

from ..harness import machine
from ..harness.benchmark import Argument, Benchmark, Say, numbers
from ..harness.record import Case, Findings, Run, Verdict, medians
from .crowd import KEY_GROUPS, Crowd
from .loads import Loads
from .measures import Figures, balanced, changes, coordinated, planned, rescaled, routed, viewed
from .page import shown

BOUNDS = {"reports": 100.0, "balance plan": 50.0, "script of the page": 100.0}
"""Targets at the largest number of workers, in milliseconds; for reports and the page of a second."""


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Measure every number of workers."""
    cases: list[Case] = []
    loads = Loads(KEY_GROUPS)
    for workers in given.workers:
        busy = {"busy_before": machine.busy_share()}
        for name, unit, value in measured(workers, given, loads):
            cases.append(Case(f"{workers} workers/{name}", unit, "lower", (value,), (busy,)))
            say(f"{workers} workers/{name}: {value:.4g} {unit}")
    return Findings(cases, verdicts(cases, max(given.workers)), facts={"key_groups": KEY_GROUPS})


def measured(workers: int, given: argparse.Namespace, loads: Loads) -> Figures:
    """Measure everything for one number of workers. A rescale doubles the workers up to this number."""
    yield from routed(workers)
    yield from planned(workers, given.sources)
    yield from balanced(workers)
    crowd = Crowd(workers, given.sources)
    yield from coordinated(crowd, loads, given.seconds)
    crowd.settle()
    yield from changes(crowd)
    yield from viewed(crowd, loads, given.seconds)
    if given.browser is not None:
        yield from shown(crowd, loads, given.seconds, given.browser)
    del crowd
    if workers <= given.rescaled:
        yield from rescaled(Crowd(workers // 2, given.sources))


COLOURS = 10
"""The lines of a plot that have a colour each; the others are dashed."""


def verdicts(cases: list[Case], workers: int) -> list[Verdict]:
    """Judge the figures of the largest number of workers."""
    found = medians(cases)
    measured = ((name, found.get(f"{workers} workers/{name}"), most) for name, most in BOUNDS.items())
    return [Verdict(f"{workers} workers: {name}, ms", value, most, "lower") for name, value, most in measured if value is not None]


def draw(run: Run, figure: Any) -> None:
    """Draw the milliseconds of each part by the number of workers."""
    axes = figure.subplots()
    series: dict[str, list[tuple[int, float]]] = {}
    for case in run.cases:
        workers, _, name = case.name.partition(" workers/")
        if case.unit.startswith("ms"):
            series.setdefault(name, []).append((int(workers), case.median))
    largest = sorted(series, key=lambda name: -series[name][-1][1])
    for number, name in enumerate(largest):
        axes.loglog(*zip(*series[name], strict=True), "o-" if number < COLOURS else "s--", label=name)
    axes.set_xlabel("workers")
    axes.set_ylabel("ms")
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


BENCHMARK = Benchmark(
    "wide",
    "what the coordinator, routing and views cost from 2 to 1,024 workers, in one process",
    (
        Argument("--workers", numbers, [2, 4, 16, 64, 256, 1024], "numbers of workers"),
        Argument("--sources", int, 16, "workers that read"),
        Argument("--seconds", int, 3, "seconds of reports; their median counts"),
        Argument("--rescaled", int, 64, "the most workers that a rescale is measured to"),
        Argument("--browser", str, None, "path of Chromium, in which the page is measured too (needs playwright)"),
    ),
    run,
    ("Ray's part of a message, sockets, and the processes of workers",),
    draw,
)
