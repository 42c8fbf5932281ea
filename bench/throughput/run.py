"""Throughput: rows per second of every system on the same files in the same session, with equal results.

T1 counts and sums per key and tumbling window of 1 s. T2 calls a Python function per record that keeps a running mean per key and emits
rows far above it; `t2-columns` is T2 by the batch, and `t1-strings` is T1 with string keys.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

from ..harness import machine
from ..harness.benchmark import FOLDER, Argument, Benchmark, Say, repeat, some_of
from ..harness.conditions import scratch
from ..harness.process import run_system
from ..harness.record import Case, Findings, ratio_verdicts
from ..harness.task import Answer, Task, check_results
from .data import ROWS, find

SYSTEMS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "evenflow": ("evenflow", {"runtime": "ray"}),
    "local": ("evenflow", {"runtime": "local"}),
    "spark": ("spark", {}),
    "duckdb": ("duckdb", {}),
    "bytewax": ("bytewax", {}),
    "loop": ("loop", {}),
}
"""The module that runs each system, and its options. `local`: evenflow in one thread."""

SYSTEMS_OF = {
    "t1": ("evenflow", "local", "spark", "duckdb"),
    "t1-strings": ("evenflow", "spark", "duckdb"),
    "t2": ("evenflow", "loop", "bytewax"),
    "t2-columns": ("evenflow",),
}
TARGETS = (
    ("t1/evenflow", "t1/spark", 12.0, "T1, evenflow / Spark Structured Streaming"),
    ("t1/evenflow", "t1/duckdb", 1.2, "T1, evenflow / DuckDB (batch)"),
    ("t1/evenflow", "t1/local", 1.8, "T1, two workers an operator on Ray / one thread of the local runtime"),
    ("t1-strings/evenflow", "t1/evenflow", 0.8, "T1, string keys / integer keys"),
    ("t2/evenflow", "t2/bytewax", 10.0, "T2, evenflow / Bytewax with two processes"),
    ("t2/evenflow", "t2/loop", 0.85, "T2, evenflow / plain loop in two processes"),
    ("t2-columns/evenflow", "t2/evenflow", 3.0, "T2, by columns / by record"),
)
TIMEOUT = 1200.0


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Measure each task with each system. Raises ConnectorError without data, BenchmarkError if a system fails or results differ."""
    cases: list[Case] = []
    checks: list[str] = []
    results: dict[str, dict[str, Mapping[str, float]]] = {}
    for name in given.tasks:
        for system in (s for s in SYSTEMS_OF[name] if s in given.systems):
            case, answers = measure(name, system, given)
            cases.append(case)
            results.setdefault(name.partition("-")[0], {})[case.name] = answers[-1].result
            used = [f"{d['cpu_seconds']:.2f}" for d in case.details if "cpu_seconds" in d]
            cpu = f", {', '.join(used)} s of processor time" if used else ""
            say(f"{case.name}: {', '.join(f'{value / 1e6:.2f}' for value in case.values)} M rows/s{cpu}")
    for family, same in results.items():
        checks += check_results(family, same)
    return Findings(cases, ratio_verdicts(cases, TARGETS), checks)


def measure(name: str, system: str, given: argparse.Namespace) -> tuple[Case, list[Answer]]:
    """Measure one system on one task, in a process of its own."""
    dataset = find(given.folder, "strings" if name.endswith("strings") else "integers", given.rows)
    module, options = SYSTEMS[system]
    with scratch(f"{system}-{name}") as output:
        options = {**options, "files_per_trigger": given.spark_files}
        task = Task(name, str(dataset.folder), dataset.rows, dataset.last_window, str(output / "out"), given.repeat, options)
        busy = machine.busy_share()
        answers = run_system(f"throughput.{module}", task, TIMEOUT)
    details = tuple({"seconds": a.seconds, "busy_before": busy, **a.details} for a in answers)
    return Case(f"{name}/{system}", "rows/s", "higher", tuple(a.rate for a in answers), details), answers


def draw(run: Any, figure: Any) -> None:
    """Draw a bar for each case."""
    cases, axes = run.cases[::-1], figure.subplots()
    colours = ["tab:blue" if case.name.endswith("/evenflow") else "tab:gray" for case in cases]
    bars = axes.barh([case.name for case in cases], [case.median / 1e6 for case in cases], color=colours)
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.set_xscale("log")
    axes.set_xlabel("million rows per second (median, logarithmic)")
    axes.margins(x=0.1)


BENCHMARK = Benchmark(
    "throughput",
    "rows per second compared with other systems",
    (
        Argument("--tasks", some_of(SYSTEMS_OF), list(SYSTEMS_OF), "what to measure"),
        Argument("--systems", some_of(SYSTEMS), list(SYSTEMS), "with which systems"),
        repeat(3),
        Argument("--spark-files", int, 10, "Spark's maxFilesPerTrigger; all 10 is its fastest"),
        Argument("--rows", int, ROWS, "rows of each variant"),
        FOLDER,
    ),
    run,
    (
        "more than one machine, and more than two cores",
        "checkpoints of state to disk: evenflow and Bytewax keep state in memory only here, Spark's state store writes its files",
        "starting: processes, Ray, the JVM",
        "the last window of T1 in the comparison of results: Spark emits it only when later rows come",
    ),
    draw,
)
