"""The cost of measuring load for a job that doesn't use it: T1 with and without, in alternation, so that drifts of the machine affect both;
what its steps take of one job (`overhead_steps.py`); and the time of planning for a large operator.

The verdicts use processor time, which other programs disturb less than wall-clock time.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ..balancer.hotspot import Hotspot
from ..balancer.snapshot import GroupLoad, LoadSnapshot
from ..engine.protocol.routing import even_table
from ..state.hashing import MAX_GROUPS
from . import machine
from .conditions import record, scratch
from .data import Dataset, find
from .overhead_steps import share_percent
from .process import run_system
from .record import Case, Run, Verdict
from .report import number
from .task import Task

LIMIT_PERCENT = 2.0
NARROW = 1.0
"""Percentage points: a narrower interval decides, also one that has the limit in it."""

TIMEOUT = 1200.0
PLANNED_WORKERS = 1000
NOT_MEASURED = ("the channels between an operator's workers, which no setting takes away: idle sockets, through which T1 sends nothing",)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values of one of the job's settings; the second avoids the cost of the first."""

    claim: str
    setting: str
    names: tuple[str, str]
    values: tuple[Any, Any]


COMPARISONS = (
    Comparison("measuring load", "metrics", ("load-measured", "not-measured"), (True, False)),
    Comparison("1,024 key groups in place of 2, one per worker", "key_groups", ("1024-groups", "2-groups"), (1024, 2)),
)


def run(*, pairs: int, rows: int, cache: Path, say: Callable[[str], None]) -> Run:
    """`pairs` pairs of each comparison after one that warms up. Raises ConnectorError without data."""
    dataset = find(cache, "integers", rows)
    cases: list[Case] = []
    found: list[Verdict] = []
    checks: list[str] = []
    for comparison in COMPARISONS:
        measured, costs = compare(comparison, pairs, dataset)
        cases += measured
        found.append(
            Verdict(f"{comparison.claim}, cost in % of T1's processor time (median of pairs)", median(costs), LIMIT_PERCENT, "lower")
        )
        checks.append(f"{comparison.claim}: {certainty(costs)}")
        for case in measured:
            say(f"{case.name}: {', '.join(number(value) for value in case.values)} {case.unit}")
    steps = [share_percent(dataset) for _ in range(1 + pairs)][1:]
    say(f"the steps of measuring load, in one thread: {', '.join(f'{share:.2f}' for share in steps)} %")
    cases.append(Case("t1/steps of measuring load", "%", "lower", tuple(steps)))
    found.append(Verdict("the steps of measuring load, % of the processor time of T1 in one thread", median(steps), LIMIT_PERCENT, "lower"))
    checks.append(f"the steps of measuring load: {certainty(steps)}")
    planning = Case(f"plan of {MAX_GROUPS:,} key groups on {PLANNED_WORKERS:,} workers", "s", "lower", tuple(planning_seconds(pairs)))
    found.append(Verdict(f"{planning.name}, seconds", planning.median, 1.0, "lower"))
    say(f"{planning.name}: {planning.median:.3f} s")
    return record("overhead", {"pairs": pairs, "rows": rows}, [*cases, planning], found, checks=checks, not_measured=NOT_MEASURED)


def compare(comparison: Comparison, pairs: int, dataset: Dataset) -> tuple[list[Case], list[float]]:
    """The cases of both values, and the percentage that each pair's first value costs."""
    on, off = comparison.values
    # Off-on, on-off: the second of a pair has a warmer machine.
    order = [on, off] + [value for i in range(pairs) for value in ((on, off) if i % 2 else (off, on))]
    output = scratch("overhead")
    options = {"config": [{comparison.setting: value} for value in order]}
    task = Task("t1", str(dataset.folder), dataset.rows, dataset.last_window, f"{output}/out", len(order), options)
    try:
        busy = machine.busy_share()
        answers = run_system("evenflow", task, TIMEOUT)
    finally:
        shutil.rmtree(output)
    counted = list(zip(order, answers, strict=True))[2:]
    cases, used = [], []
    for name, value in zip(comparison.names, comparison.values, strict=True):
        mine = [answer for setting, answer in counted if setting == value]
        used.append([float(answer.details["cpu_seconds"]) for answer in mine])
        cases.append(Case(f"t1/{name}", "rows/s", "higher", tuple(a.rate for a in mine), tuple({"busy_before": busy} for _ in mine)))
        cases.append(Case(f"t1/{name}/processor", "s", "lower", tuple(used[-1])))
    return cases, costs_percent(*used)


def planning_seconds(repeat: int) -> list[float]:
    """The time that `hotspot` plans for the largest operator: random loads of groups, a hundredth of them ten times as hot."""
    random = np.random.default_rng(0)
    loads = random.exponential(1.0, MAX_GROUPS)
    loads[random.choice(MAX_GROUPS, MAX_GROUPS // 100, replace=False)] *= 10
    owners = even_table(MAX_GROUPS, PLANNED_WORKERS).groups.tolist()
    groups = [GroupLoad(group, owner, load, 1 << 20) for group, (owner, load) in enumerate(zip(owners, loads.tolist(), strict=True))]
    times = []
    for _ in range(repeat):
        begun = time.perf_counter()
        Hotspot().plan(LoadSnapshot(PLANNED_WORKERS, groups))
        times.append(time.perf_counter() - begun)
    return times


def costs_percent(measured: Sequence[float], unmeasured: Sequence[float]) -> list[float]:
    """The cost of the first value in each pair, in percent.

    >>> costs_percent([1.02, 1.01], [1.0, 1.0])
    [2.0, 1.0]
    """
    return [round((a / b - 1) * 100, 6) for a, b in zip(measured, unmeasured, strict=True)]


def interval(costs: Sequence[float]) -> tuple[float, float]:
    """The median's confidence interval (95 %), from the order of the values alone, by the normal approximation to the binomial.

    >>> interval([3.0, 1.0, 2.0, 9.0, 4.0, 5.0, 8.0, 7.0, 6.0])
    (2.0, 8.0)
    """
    ordered = sorted(costs)
    outside = max(0, int((len(ordered) - 1.96 * len(ordered) ** 0.5) / 2))
    return ordered[outside], ordered[-1 - outside]


def certainty(costs: Sequence[float]) -> str:
    """Whether the median can be held against the limit: its confidence interval lies on one side of it, or is narrow."""
    low, high = interval(costs)
    decides = "so the run decides" if high - low <= NARROW or not low <= LIMIT_PERCENT <= high else "so the run does not decide"
    return f"median {median(costs):.2f} %, 95 % confidence interval {low:.2f} to {high:.2f}; the limit is {LIMIT_PERCENT:g}, {decides}"
