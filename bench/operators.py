"""Joins, session windows and top rows beside Flink's SQL and Spark Structured Streaming: rows per second over the same CSV files.

`join`: rows of left with the rows of right of their key within the next second. `session`: count and sum per key and session with a gap of
20 s. `top`: the three rows with the largest value per key and window of 10 s. Every system writes CSV files, and the results must be equal.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import duckdb

from . import machine
from .conditions import record, scratch
from .errors import BenchmarkError
from .operators_data import Input, find
from .process import run_system
from .record import Case, Run, Verdict
from .task import Answer, Task
from .throughput import check_names, check_results

SYSTEMS = ("evenflow", "flink", "spark")
SYSTEMS_OF = {"join": SYSTEMS, "session": SYSTEMS, "top": ("evenflow", "flink")}
TARGET = 3.0
NOT_MEASURED = (
    "more than one machine, and more than two cores",
    "checkpoints: Flink and evenflow keep state in memory only, Spark's state store writes its files",
    "starting: processes, Ray, the JVM; of Flink the time of the same query over one row is taken off",
    "top rows in Spark: its streams have no row_number",
    "what ends in the last minute of event time, which Spark does not emit, is left out of the comparison of results",
)
TIMEOUT = 3600.0
FLINK = "EVENFLOW_FLINK_PYTHON"
"""The environment variable with the interpreter of an environment in which apache-flink is installed; it needs an older pyarrow."""

RESULTS = {
    "join": "SELECT count(*), sum(a), sum(b) FROM rows WHERE t < {end}",
    "session": "SELECT count(*), sum(n), sum(total) FROM rows WHERE t < {end}",
    "top": "SELECT count(*), sum(value), max(value) FROM rows WHERE t < {end}",
}
COLUMNS = {"join": ("key", "a", "b", "t"), "session": ("key", "t", "n", "total"), "top": ("key", "t", "value")}


def run(*, tasks: Sequence[str], systems: Sequence[str], repeat: int, rows: int, cache: Path, say: Callable[[str], None]) -> Run:
    """Raises BenchmarkError for an unknown task or system, if one fails, or results differ."""
    check_names("task", tasks, SYSTEMS_OF)
    check_names("system", systems, SYSTEMS)
    if "flink" in systems and not os.environ.get(FLINK):
        raise BenchmarkError(f"Flink needs an environment of its own: set {FLINK} to its interpreter, or leave out --systems flink")
    cases: list[Case] = []
    checks: list[str] = []
    for name in tasks:
        results: dict[str, Mapping[str, float]] = {}
        for system in (s for s in SYSTEMS_OF[name] if s in systems):
            case, results[system] = _measure(name, system, repeat, find(cache, name, rows))
            cases.append(case)
            say(f"{case.name}: {', '.join(f'{value / 1e6:.2f}' for value in case.values)} M rows/s")
        checks += check_results(name, results)
    arguments = {"tasks": list(tasks), "systems": list(systems), "repeat": repeat, "rows": rows}
    return record("operators", arguments, cases, _verdicts(cases), checks=checks, not_measured=NOT_MEASURED)


def _measure(name: str, system: str, repeat: int, data: Input) -> tuple[Case, dict[str, float]]:
    output = scratch(f"{system}-{name}")
    task = Task(name, str(data.folder), data.rows, data.last, f"{output}/out", repeat)
    try:
        busy = machine.busy_share()
        answers: list[Answer] = run_system(f"operators_{system}", task, TIMEOUT)
        found = _result(task)
    finally:
        shutil.rmtree(output, ignore_errors=True)
    details = tuple({"seconds": answer.seconds, "busy_before": busy, **answer.details} for answer in answers)
    return Case(f"{name}/{system}", "rows/s", "higher", tuple(answer.rate for answer in answers), details), found


def _result(task: Task) -> dict[str, float]:
    """What the last iteration wrote, but for the last minute."""
    files = [str(path) for path in Path(task.output).rglob("*") if path.is_file() and path.name.startswith("part-") and path.stat().st_size]
    names = COLUMNS[task.name]
    columns = ", ".join(f"'{name}': '{'DOUBLE' if name in ('value', 'total') else 'BIGINT'}'" for name in names)
    table = f"read_csv({files!r}, columns={{{columns}}}, ignore_errors=false, header={_has_header(files[0])})"
    query = RESULTS[task.name].format(end=task.last_window - 60_000).replace("rows", table)
    row = duckdb.execute(query).fetchone() or (0, 0, 0)
    return dict(zip(("rows", "first column", "second column"), (float(value or 0) for value in row), strict=True))


def _has_header(path: str) -> bool:
    with Path(path).open() as file:
        return not file.read(1).isdigit()


def _verdicts(cases: Sequence[Case]) -> list[Verdict]:
    medians = {case.name: case.median for case in cases}
    return [
        Verdict(f"{name}, evenflow / {other}", medians[f"{name}/evenflow"] / medians[f"{name}/{other}"], TARGET, "higher")
        for name in SYSTEMS_OF
        for other in ("flink", "spark")
        if f"{name}/evenflow" in medians and f"{name}/{other}" in medians
    ]
