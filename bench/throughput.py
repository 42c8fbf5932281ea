"""Throughput: rows per second of every system on the same files in the same session, with equal results.

T1 counts and sums per key and tumbling window of 1 s. T2 calls a Python function per record that keeps a running mean per key and emits
rows far above it; `t2-columns` is T2 by the batch, and `t1-strings` is T1 with string keys.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from . import machine
from .conditions import record, scratch
from .data import find
from .errors import BenchmarkError
from .process import run_system
from .record import Case, Run, Verdict
from .task import Answer, Task

SYSTEMS_OF = {
    "t1": ("evenflow", "local", "spark", "duckdb"),
    "t1-strings": ("evenflow", "spark", "duckdb"),
    "t2": ("evenflow", "loop", "bytewax"),
    "t2-columns": ("evenflow",),
}
SYSTEMS = ("evenflow", "local", "spark", "duckdb", "bytewax", "loop")
TARGETS = (
    ("t1/evenflow", "t1/spark", 12.0, "T1, evenflow / Spark Structured Streaming"),
    ("t1/evenflow", "t1/duckdb", 1.2, "T1, evenflow / DuckDB (batch)"),
    ("t1/evenflow", "t1/local", 1.8, "T1, two workers an operator on Ray / one thread of the local runtime"),
    ("t1-strings/evenflow", "t1/evenflow", 0.8, "T1, string keys / integer keys"),
    ("t2/evenflow", "t2/bytewax", 10.0, "T2, evenflow / Bytewax with two processes"),
    ("t2/evenflow", "t2/loop", 0.85, "T2, evenflow / plain loop in two processes"),
    ("t2-columns/evenflow", "t2/evenflow", 3.0, "T2, by columns / by record"),
)
NOT_MEASURED = (
    "more than one machine, and more than two cores",
    "checkpoints of state to disk: evenflow and Bytewax keep state in memory only here, Spark's state store writes its files",
    "starting: processes, Ray, the JVM",
    "the last window of T1, which Spark emits only when later rows come, is left out of the comparison of results",
)
TIMEOUT = 1200.0


def run(
    *, tasks: Sequence[str], systems: Sequence[str], repeat: int, rows: int, cache: Path, spark_files: int, say: Callable[[str], None]
) -> Run:
    """Raises ConnectorError without data, BenchmarkError for an unknown task or system, if one fails, or results differ."""
    check_names("task", tasks, SYSTEMS_OF)
    check_names("system", systems, SYSTEMS)
    cases: list[Case] = []
    checks: list[str] = []
    results: dict[str, dict[str, Mapping[str, float]]] = {}
    for name in tasks:
        for system in (s for s in SYSTEMS_OF[name] if s in systems):
            case, answers = measure(name, system, repeat, rows, cache, spark_files)
            cases.append(case)
            results.setdefault(name.partition("-")[0], {})[case.name] = answers[-1].result
            used = [f"{d['cpu_seconds']:.2f}" for d in case.details if "cpu_seconds" in d]
            cpu = f", {', '.join(used)} s of processor time" if used else ""
            say(f"{case.name}: {', '.join(f'{value / 1e6:.2f}' for value in case.values)} M rows/s{cpu}")
    for family, same in results.items():
        checks += check_results(family, same)
    arguments = {"tasks": list(tasks), "systems": list(systems), "repeat": repeat, "rows": rows, "spark_files_per_trigger": spark_files}
    return record("throughput", arguments, cases, verdicts(cases), checks=checks, not_measured=NOT_MEASURED)


def measure(name: str, system: str, repeat: int, rows: int, cache: Path, spark_files: int) -> tuple[Case, list[Answer]]:
    """One system on one task, in a process of its own."""
    dataset = find(cache, "strings" if name.endswith("strings") else "integers", rows)
    output = scratch(f"{system}-{name}")
    task = Task(name, str(dataset.folder), rows, dataset.last_window, f"{output}/out", repeat, {"files_per_trigger": spark_files})
    try:
        busy = machine.busy_share()
        answers = run_system(system, task, TIMEOUT)
    finally:
        shutil.rmtree(output)
    details = tuple({"seconds": a.seconds, "busy_before": busy, **a.details} for a in answers)
    return Case(f"{name}/{system}", "rows/s", "higher", tuple(a.rate for a in answers), details), answers


def check_results(name: str, results: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Raises BenchmarkError unless all systems, in all variants of task `name`, came to the same result; says what was equal."""
    if len(results) < 2:
        return []
    (first, expected), *others = results.items()
    for system, result in others:
        if result != expected:
            raise BenchmarkError(f"benchmark {name}: {system} came to {dict(result)}, {first} to {dict(expected)}")
    figures = ", ".join(f"{what} {value:,.10g}" for what, value in expected.items())
    return [f"{name}: {', '.join(results)} came to the same: {figures}"]


def verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """The targets whose both sides were measured."""
    medians = {case.name: case.median for case in cases}
    return [
        Verdict(claim, medians[ours] / medians[theirs], target, "higher")
        for ours, theirs, target, claim in TARGETS
        if ours in medians and theirs in medians
    ]


def check_names(what: str, given: Sequence[str], known: Sequence[str] | Mapping[str, object]) -> None:
    """Raises BenchmarkError for a name that isn't known."""
    for name in given:
        if name not in known:
            raise BenchmarkError(f"{what} {name!r} is unknown; there are: {', '.join(known)}")
