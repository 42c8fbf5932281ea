"""A running count of a topic's records per key in evenflow and in Bytewax: the same topic, in turns, with equal results."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import product

from ..harness import machine
from ..harness.benchmark import Say
from ..harness.conditions import scratch
from ..harness.process import run_system
from ..harness.record import Case, Findings, ratio_verdicts
from ..harness.task import Answer, Task, check_results

TARGET = 3.0
TIMEOUT = 900.0
INTERVAL = "5s"
"""The time between two checkpoints of evenflow. Bytewax takes no snapshots here."""

SYSTEMS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "evenflow": ("count_in_evenflow", {"how": "aggregate", "interval": INTERVAL}),
    "evenflow-function": ("count_in_evenflow", {"how": "function", "interval": INTERVAL}),
    "bytewax": ("count_in_bytewax", {}),
}
"""The module that runs each system in a process of its own, and its options."""

PAIRS = tuple(product(tuple(SYSTEMS)[:2], tuple(SYSTEMS)[2:]))


def measure(bootstrap: str, topic: str, given: argparse.Namespace, say: Say) -> Findings:
    """Count the rows of `records.batch_of` in the topic with each system. Raises BenchmarkError if one fails, or if results differ."""
    rows = given.rows
    found: dict[str, list[Answer]] = {name: [] for name in given.systems}
    details: dict[str, list[dict[str, float]]] = {name: [] for name in given.systems}
    for _ in range(given.repeat):
        for name in given.systems:
            system, options = SYSTEMS[name]
            with scratch(system) as output:
                task = Task("count", "", rows, 0, str(output / "out"), 1, {"bootstrap": bootstrap, "topic": topic, **options})
                busy = machine.busy_share()
                (answer,) = run_system(f"kafka.{system}", task, TIMEOUT)
            found[name].append(answer)
            details[name].append({"seconds": answer.seconds, "busy_before": busy, **answer.details})
            say(f"count, {name}: {answer.rate:,.0f} rows/s, {answer.cpu_per_million:.2f} s of processor time per million rows")
    cases = []
    for name, answers in found.items():
        used = tuple(answer.cpu_per_million for answer in answers)
        cases.append(Case(f"count/{name}", "rows/s", "higher", tuple(answer.rate for answer in answers), tuple(details[name])))
        cases.append(Case(f"count/{name}, processor", "s per million rows", "lower", used))
    targets = [
        target
        for ours, theirs in PAIRS
        for target in (
            (f"count/{ours}", f"count/{theirs}", TARGET, f"count/{ours}, rows/s / {theirs}'s"),
            (f"count/{theirs}, processor", f"count/{ours}, processor", TARGET, f"count/{ours}, {theirs}'s processor time / its own"),
        )
    ]
    checks = check_results("count", {name: answers[-1].result for name, answers in found.items()})
    return Findings(cases, ratio_verdicts(cases, targets), checks)
