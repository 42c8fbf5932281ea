"""What measuring load costs: T1 with and without it, in alternation, so that a drift of the machine meets both.

The verdict is by processor time, which others' load disturbs less than the time on the wall.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from . import machine
from .conditions import record, scratch
from .data import find
from .process import run_system
from .record import Case, Run, Verdict
from .report import number
from .task import Task

LIMIT_PERCENT = 3.0
TIMEOUT = 1200.0


def run(*, pairs: int, rows: int, cache: Path, say: Callable[[str], None]) -> Run:
    """`pairs` pairs after one that warms up. Raises ConnectorError without data."""
    dataset = find(cache, "integers", rows)
    output = scratch("overhead")
    # Off-on, on-off: whichever comes second has a warmer machine.
    order = [True, False] + [on for i in range(pairs) for on in ((True, False) if i % 2 else (False, True))]
    task = Task("t1", str(dataset.folder), rows, dataset.last_window, f"{output}/out", len(order), {"metrics": order})
    try:
        busy = machine.busy_share()
        answers = run_system("evenflow", task, TIMEOUT)[2:]
    finally:
        shutil.rmtree(output)
    cases, used = [], {}
    for name, on in (("t1/load-measured", True), ("t1/not-measured", False)):
        mine = [a for a in answers if a.details["metrics"] is on]
        used[on] = [float(a.details["cpu_seconds"]) for a in mine]
        cases.append(Case(name, "rows/s", "higher", tuple(a.rate for a in mine), tuple({"busy_before": busy} for _ in mine)))
        cases.append(Case(f"{name}/processor", "s", "lower", tuple(used[on])))
    for case in cases:
        say(f"{case.name}: {', '.join(number(value) for value in case.values)} {case.unit}")
    costs = costs_percent(used[True], used[False])
    verdict = Verdict("measuring load, cost in % of T1's processor time (median of pairs)", median(costs), LIMIT_PERCENT, "lower")
    return record("overhead", {"pairs": pairs, "rows": rows}, cases, [verdict], checks=[certainty(costs)])


def costs_percent(measured: Sequence[float], unmeasured: Sequence[float]) -> list[float]:
    """How much more each pair takes with the measurement, in percent.

    >>> costs_percent([1.02, 1.01], [1.0, 1.0])
    [2.0, 1.0]
    """
    return [round((a / b - 1) * 100, 6) for a, b in zip(measured, unmeasured, strict=True)]


def certainty(costs: Sequence[float]) -> str:
    """Whether the pairs agree well enough to hold their median against the limit: half of them lie closer together than the limit."""
    ordered = sorted(costs)
    middle = ordered[(3 * len(ordered)) // 4] - ordered[len(ordered) // 4]
    decides = "so the run decides" if middle <= LIMIT_PERCENT else "so the run does not decide"
    return f"the middle half of the pairs lies within {middle:.1f} percentage points; the limit is {LIMIT_PERCENT:g}, {decides}"
