"""NexMark's queries compared with Flink's SQL, and with the same SQL in evenflow: rows per second and processor time over the same files,
with checked results.

The rows are those of the streams that a query reads. Measured queries discard their results. Each system also runs the query over fewer
events and writes its results: all of evenflow's rows must be DuckDB's. The report says how many of Flink's are not.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from ..harness import machine
from ..harness.benchmark import FOLDER, Argument, Benchmark, Say, one_of, repeat, some_of
from ..harness.conditions import scratch
from ..harness.errors import BenchmarkError
from ..harness.process import run_system
from ..harness.record import Case, Findings, Run, Verdict, medians, ratio_verdicts
from ..harness.report import number
from ..harness.task import Answer, Task
from .changelog import write_final_rows
from .check import compare, connect
from .data import FORMATS, EventFiles, files_of, make
from .flink import CHANGES
from .flink_environment import install
from .flink_sql import NOT_IN_FLINK
from .queries import QUERIES
from .sql import TEXTS
from .streams import INPUTS, streams_of

EVENTS, CHECKED_EVENTS = 10_000_000, 500_000
TIMEOUT = 3600.0
TARGET, MEAN_TARGET = 3.0, 5.0
"""The least ratio of evenflow's rate to Flink's in each query, and in the geometric mean of all."""

SYSTEMS = ("evenflow", "sql", "flink")
"""evenflow's flows, its SQL, and Flink."""

MOST_FOR_SQL, MOST_FOR_AVERAGES = 1.3, 1.5
"""The most processor time of a query in SQL compared with its flow; of q4, whose flow needs no weights."""

NOT_CHECKED = ("q12",)
"""Flink drops the rows of the last processing-time window when the input ends."""

WHY_FLINK = ". With few events its two readers may not read side by side; then it drops rows as late."
COLOURS = {"evenflow": "tab:blue", "sql": "tab:green", "flink": "tab:orange"}
WIDTH = 0.8
"""The part of a query's width that its bars take together."""


@dataclass(frozen=True, slots=True)
class Input:
    """The `measured` events and the `checked` ones, read as `form`, one of `INPUTS`; Flink's interpreter, if it is compared."""

    form: str
    measured: EventFiles
    checked: EventFiles
    flink: Path | None = None


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Measure each query with each system. Raises BenchmarkError if a system fails, or if evenflow's results are wrong."""
    form = given.origin
    if form != "csv" and "flink" in given.systems:
        raise BenchmarkError(f"Flink reads NexMark's CSV files only: --from csv, not --from {form}")
    flink = install(given.folder, say) if "flink" in given.systems else None
    measured = make(given.folder, given.events, say) if form in FORMATS else files_of(given.folder, given.events)
    events = Input(form, measured, make(given.folder, given.checked_events, say), flink)
    cases: list[Case] = []
    checks: list[str] = []
    for name, system in product(given.queries, given.systems):
        if system == "evenflow" or name in (TEXTS if system == "sql" else QUERIES.keys() - NOT_IN_FLINK):
            found, check = _measure(name, system, given.repeat, events)
            cases += found
            checks += check
            for case in found:
                say(f"{case.name}: {', '.join(map(number, case.values))} {case.unit}")
    return Findings(cases, verdicts(cases), checks)


def _measure(name: str, system: str, repeat: int, events: Input) -> tuple[list[Case], list[str]]:
    """Return the cases of a query, and the result of its check. Raises BenchmarkError if a row of evenflow's is wrong."""
    options: dict[str, Any]
    rows = sum(events.measured.rows(stream) for stream in streams_of(name))
    folder, checked = events.measured.folder, events.checked.folder
    if system == "flink":
        folder, options = folder / events.form, {"checked": str(checked / events.form), "python": str(events.flink)}
    else:
        options = {"input": events.form, "events": events.measured.events, "checked": str(checked), "checked_events": events.checked.events}
        options["sql"] = system == "sql"
    with scratch(f"{system}-{name}") as output:
        busy = machine.busy_share()
        module = "nexmark.flink" if system == "flink" else "nexmark.evenflow"
        answers = run_system(module, Task(name, str(folder), rows, 0, str(output / "out"), repeat, options), TIMEOUT)
        counted, differing = _check(name, system, output / "out", events.checked)
    if differing and system != "flink":
        raise BenchmarkError(f"NexMark's results are not DuckDB's: {name}: of the rows of {system} {differing}")
    check = []
    if differing:
        check = [f"{name}: of Flink's rows {differing}{WHY_FLINK}"]
    elif counted is not None:
        check = [f"{name}: {system} emits the {counted:,} rows of DuckDB for {events.checked.events:,} events"]
    return _cases(name, system, answers, busy), check


def _cases(name: str, system: str, answers: Sequence[Answer], busy: float) -> list[Case]:
    details = tuple({"seconds": answer.seconds, "busy_before": busy, **answer.details} for answer in answers)
    used = tuple(answer.cpu_per_million for answer in answers)
    cases = [
        Case(f"{name}/{system}", "rows/s", "higher", tuple(answer.rate for answer in answers), details),
        Case(f"{name}/{system}, processor", "s per million rows", "lower", used),
    ]
    if all("state_bytes" in answer.details for answer in answers):
        cases.append(Case(f"{name}/{system}, state", "bytes", "lower", tuple(answer.details["state_bytes"] for answer in answers)))
    return cases


def _check(name: str, system: str, output: Path, events: EventFiles) -> tuple[int | None, str]:
    """Return the number of rows that were checked, None if none were, and how many are missing and wrong."""
    if system == "flink" and name in NOT_CHECKED:
        return None, ""
    with connect(events.folder / "parquet") as database:
        if system == "flink":
            write_final_rows(database, name, output / CHANGES, output)
        rows, missing, wrong = compare(database, name, output, by_position=system == "sql")
    return rows, f"{missing:,} are missing and {wrong:,} are wrong" if missing or wrong else ""


def verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """Judge each query, and the geometric mean if all queries that Flink can run were measured."""
    found = medians(cases)
    targets = [
        target
        for name in QUERIES
        for target in (
            (f"{name}/evenflow", f"{name}/flink", TARGET, f"{name}, rows/s of evenflow / of Flink"),
            (f"{name}/flink, processor", f"{name}/evenflow, processor", TARGET, f"{name}, processor time of Flink / of evenflow"),
        )
    ]
    names = QUERIES.keys() - NOT_IN_FLINK.keys()
    judged = ratio_verdicts(cases, targets)
    for name in TEXTS:
        ours, flow = (found.get(f"{name}/{system}, processor") for system in ("sql", "evenflow"))
        if ours is not None and flow is not None:
            most = MOST_FOR_AVERAGES if name == "q4" else MOST_FOR_SQL
            judged.append(Verdict(f"{name}, processor time of SQL / of its flow", ours / flow, most, "lower"))
    if all(f"{name}/{system}" in found for name in names for system in ("evenflow", "flink")):
        mean = geometric_mean(found[f"{name}/evenflow"] / found[f"{name}/flink"] for name in names)
        judged.append(Verdict("rows/s of evenflow / of Flink, geometric mean of all queries", mean, MEAN_TARGET, "higher"))
    return judged


def draw(run: Run, figure: Any) -> None:
    """Draw bars of the median rates of each query and system."""
    axes = figure.subplots()
    queries = [query for query in QUERIES if any(run.case(f"{query}/{system}") for system in COLOURS)]
    systems = [system for system in COLOURS if any(run.case(f"{query}/{system}") for query in queries)]
    figure.set_size_inches(max(6.0, 0.55 * len(queries) + 1.5), 4.5)
    for place, system in enumerate(systems):
        rates = [case.median / 1e6 if (case := run.case(f"{query}/{system}")) else math.nan for query in queries]
        left = -WIDTH / 2 + (place + 0.5) * WIDTH / len(systems)
        axes.bar([at + left for at in range(len(queries))], rates, WIDTH / len(systems), label=system, color=COLOURS[system])
    axes.set_xticks(range(len(queries)), queries)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("million rows per second (median, logarithmic)")
    axes.legend(loc="upper right", ncols=len(systems))


BENCHMARK = Benchmark(
    "nexmark",
    "the queries of NexMark, compared with Flink",
    (
        Argument("--queries", some_of(QUERIES), list(QUERIES), "queries"),
        Argument("--events", int, EVENTS, "events of all streams together"),
        Argument("--checked-events", int, CHECKED_EVENTS, "events whose results are compared with DuckDB's"),
        Argument("--from", one_of(INPUTS), "csv", f"the input of evenflow, of {', '.join(INPUTS)}", "origin"),
        Argument("--systems", some_of(SYSTEMS), ["evenflow"], f"of {', '.join(SYSTEMS)}"),
        repeat(3),
        FOLDER,
    ),
    run,
    (
        "more than one machine, and more than two cores",
        "checkpoints: Flink and evenflow keep state in memory only",
        "starting: processes, Ray, the JVM; of Flink the time of the same query over one row is subtracted",
        "writing: the results are discarded",
        "events out of order",
        *(f"{name} in Flink: {why}" for name, why in NOT_IN_FLINK.items()),
    ),
    draw,
)
