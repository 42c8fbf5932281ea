"""What measuring load costs: T1 with and without it, in alternation, so that a drift of the machine meets both."""

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
    rates = {on: tuple(a.rate for a in answers if a.details["metrics"] is on) for on in (True, False)}
    cases = [
        Case(name, "rows/s", "higher", rates[on], tuple({"busy_before": busy} for _ in rates[on]))
        for name, on in (("t1/load-measured", True), ("t1/not-measured", False))
    ]
    for case in cases:
        say(f"{case.name}: {', '.join(f'{value / 1e6:.2f}' for value in case.values)} M rows/s")
    cost = cost_percent(rates[True], rates[False])
    verdict = Verdict("measuring load, cost in % of T1's throughput (median of pairs)", cost, LIMIT_PERCENT, "lower")
    return record("overhead", {"pairs": pairs, "rows": rows}, cases, [verdict])


def cost_percent(measured: Sequence[float], unmeasured: Sequence[float]) -> float:
    """Median over the pairs of how much lower the rate is with the measurement, in percent.

    >>> cost_percent([98.0, 99.0, 97.0], [100.0, 100.0, 100.0])
    2.0
    """
    return round(median((1 - a / b) * 100 for a, b in zip(measured, unmeasured, strict=True)), 9)
