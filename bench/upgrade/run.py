"""The cost of new code for a running job: gaps and latencies of a live upgrade, compared with a stop with a savepoint and a start.

A row's clock starts when it was due, so a stall counts for every row that it delayed. Every change gets a job of its own, with the same
keys and rate, in one run. `spares` is a live upgrade whose processes were started ahead. NexMark's queries show that the rows are right.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from ...actors.cluster import start_cluster
from ..harness.benchmark import Argument, Benchmark, Say, repeat, some_of
from ..harness.errors import BenchmarkError
from ..harness.record import Case, Findings, Run, Verdict
from ..nexmark.upgrades import RESULTS, Upgraded, upgraded
from ..recovery.output_log import KEYS, STATE_BYTES
from .change import SLOW_MS, Change
from .measure import ADDED, AFTER, CANARY, STEADY, WATCHED, WORKERS, capacity, live, restarted

SHARE = 0.5
"""The rate, as a part of the job's capacity."""

LIVE, SPARES, RESTART, NEW_PROCESSES = "live", "spares", "restart", "restart in new processes"
CHANGES: Mapping[str, Callable[[int, int], Change]] = {
    LIVE: lambda rate, number: live(rate, number, 0),
    SPARES: lambda rate, number: live(rate, number, ADDED),
    RESTART: lambda rate, number: restarted(rate, number, "60s"),
    NEW_PROCESSES: lambda rate, number: restarted(rate, number, "0s"),
}
"""The ways to bring new code. `restart` goes on in the processes that its driver has kept."""

MOST_GAP, MOST_P99, MOST_OF_RESTART = 0.25, 2.0, 0.05
"""Targets: seconds without output, p99 during the upgrade over the steady p99, and the gap over the restart's."""

Changes = Mapping[str, Sequence[Change]]


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Run every change in turn, and then the queries."""
    start_cluster()
    changes: dict[str, list[Change]] = {}
    facts: dict[str, Any] = {"keys": KEYS, "state_bytes": STATE_BYTES, "workers": WORKERS, "canary": CANARY, "watch_seconds": WATCHED}
    if given.repeat:
        facts["rate"] = rate = given.rate if given.rate is not None else round(SHARE * capacity())
        say(f"{rate:,} rows/s")
        changes = {name: [] for name in given.changes}
        for number in range(given.repeat):
            for name in given.changes:
                changes[name].append(change := CHANGES[name](rate, number))
                say(line_of(name, change))
    checks = [f"{name}: {change.checked}" for name, each in changes.items() for change in each]
    checked = list[Upgraded]()
    for query in given.queries:
        checked.append(found := upgraded(query))
        say(str(found))
        if not found.right:
            raise BenchmarkError(str(found))
    cases = [case for name, each in changes.items() for case in cases_of(name, each)] + [query_case(found) for found in checked]
    series = {name: [change.curve for change in each] for name, each in changes.items()}
    return Findings(cases, verdicts(changes), [*checks, *map(str, checked)], series, {**facts, "steady_seconds": STEADY, "after": AFTER})


def cases_of(name: str, changes: Sequence[Change]) -> list[Case]:
    """Return the measurements of a way, and the phases of a live upgrade."""
    details = tuple({"busy_before": change.busy} for change in changes)
    figures: dict[str, tuple[str, list[float]]] = {
        "longest gap": ("s", [change.gap for change in changes]),
        "longest gap before": ("s", [change.steady_gap for change in changes]),
        "duration": ("s", [change.seconds for change in changes]),
        f"time with latency above {SLOW_MS:g} ms": ("s", [change.disturbed for change in changes]),
        "largest latency": ("ms", [change.largest for change in changes]),
    }
    for when in ("before", "during", "after"):
        for place, percentile in enumerate(("p50", "p99")):
            figures[f"{percentile} {when}"] = "ms", [getattr(change, when)[place] for change in changes]
    if name in (LIVE, SPARES):
        figures["rows of the new code during the watch"] = "", [change.canary for change in changes]
    cases = [Case(f"{name}/{what}", unit, "lower", tuple(values), details) for what, (unit, values) in figures.items()]
    return [*cases, *phase_cases(name, changes)]


def phase_cases(name: str, changes: Sequence[Change]) -> list[Case]:
    """Return the seconds of each phase, in order, with the p99 and the largest latency of the rows that were due in it."""
    seconds, details = defaultdict[str, list[float]](list), defaultdict[str, list[dict[str, float]]](list)
    for change in changes:
        for phase, (p99, largest) in zip(change.phases, change.slowest, strict=True):
            seconds[phase.name].append(phase.seconds)
            details[phase.name].append({"p99_ms": p99, "largest_ms": largest})
    return [Case(f"{name}/phase: {phase}", "s", "lower", tuple(each), tuple(details[phase])) for phase, each in seconds.items()]


def query_case(found: Upgraded) -> Case:
    """Return the time that the upgrades of a query took."""
    details = ({"rows": found.rows, "only_old": found.only_old, "only_new": found.only_new},) * 2
    return Case(f"{found.query}/duration of its two upgrades", "s", "lower", found.seconds, details)


def line_of(name: str, change: Change) -> str:
    """Describe a change in one line."""
    shown = ", ".join(f"{p50:.1f} and {p99:.1f}" for p50, p99 in (change.before, change.during, change.after))
    gap = f"longest gap {change.gap * 1e3:.0f} ms, largest latency {change.largest:.0f} ms"
    return f"{name}: {change.seconds:.1f} s, {gap}; p50 and p99 before, during and after it: {shown} ms"


def verdicts(changes: Changes) -> list[Verdict]:
    """Judge live upgrades by the median of their repeats."""
    found = []
    for name in (LIVE, SPARES):
        if not (each := changes.get(name)):
            continue
        gap = median(change.gap for change in each)
        found.append(Verdict(f"{name}: longest gap in s", gap, MOST_GAP, "lower"))
        ratio = median(change.during[1] / change.before[1] for change in each)
        found.append(Verdict(f"{name}: p99 during / steady p99", ratio, MOST_P99, "lower"))
        for other in (RESTART, NEW_PROCESSES):
            if restarts := changes.get(other):
                part = gap / median(change.gap for change in restarts)
                found.append(Verdict(f"{name}: longest gap / that of {other}", part, MOST_OF_RESTART, "lower"))
    return found


def draw(run: Run, figure: Any) -> None:
    """Draw the latency around the first change of each way."""
    axes = figure.subplots()
    for name, curves in run.series.items():
        axes.plot([piece[0] for piece in curves[0]], [piece[1] for piece in curves[0]], label=name)
    axes.axvline(0.0, color="gray", linestyle=":")
    axes.set_yscale("log")
    axes.set_xlabel("seconds since the change began, of when a row was due")
    axes.set_ylabel("p99 of 50 ms, ms")
    axes.legend()


def queries(text: str) -> list[str]:
    """Parse names of queries separated by commas.

    >>> queries("q5,q8"), queries("")
    (['q5', 'q8'], [])
    """
    return some_of(RESULTS)(text) if text else []


BENCHMARK = Benchmark(
    "upgrade",
    "gaps and latency while a running job gets new code, compared with a restart, and the rows of NexMark's queries",
    (
        Argument("--changes", some_of(CHANGES), list(CHANGES), "ways to bring new code"),
        repeat(3, "changes of each; 0 for the queries alone"),
        Argument("--rate", int, None, "rows per second (default: half of the job's capacity)"),
        Argument("--queries", queries, list(RESULTS), "NexMark's queries whose rows are checked; an empty text for none"),
    ),
    run,
    (
        "Flink, which is not installed",
        "more than one machine, and a core for each worker",
    ),
    draw,
)
