"""NexMark's queries beside Flink's and Spark's SQL: rows per second and processor time over the same files, and whether results are right.

The rows are those of the streams that a query reads. Measured queries discard their results. Each system also runs the query over fewer
events and writes what it gives: all of evenflow's rows must be those that DuckDB gives for them. The report says whether the others' are.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from .. import machine
from ..conditions import record, scratch
from ..errors import BenchmarkError
from ..kafka.broker import kafka_broker
from ..operators import FLINK, TARGET
from ..process import run_system
from ..record import Case, Run, Verdict
from ..report import number
from ..systems.nexmark_flink import CHANGES
from ..task import Answer, Task
from ..throughput import check_names
from .changelog import write_final_rows
from .check import compare, connect
from .data import FORMATS, EventFiles, files_of, make
from .flink_sql import NOT_IN_FLINK
from .queries import QUERIES
from .spark_sql import NOT_IN_SPARK, UNTIL_THE_END
from .streams import INPUTS, streams_of
from .topics import EventTopics, event_topics

EVENTS, CHECKED_EVENTS = 10_000_000, 500_000
TIMEOUT = 3600.0
MEAN_TARGET = 5.0
"""How many times Flink's rate evenflow's shall be in the geometric mean of all queries; in each of them it is `TARGET`."""

SYSTEMS = ("evenflow", "flink", "spark")
NOT_IN: Mapping[str, Mapping[str, str]] = {"evenflow": {}, "flink": NOT_IN_FLINK, "spark": NOT_IN_SPARK}
"""The queries that a system can't say, and why."""

NOT_CHECKED = {"flink": ("q12",)}
"""Flink drops what the last processing-time window holds when the input ends."""

WHY_FLINK = ". With few events its two readers may not read side by side; then it drops rows as late."
WHY_SPARK = ". It doesn't give the windows that are open when the input ends."
NOT_MEASURED = (
    "more than one machine, and more than two cores",
    "checkpoints: Flink and evenflow keep state in memory only, Spark's state store writes its files",
    "starting: processes, Ray, the JVM; of Flink the time of the same query over one row is taken off",
    "writing: the results are discarded",
    "events out of order",
    *(f"{name} in {system.capitalize()}: {why}" for system, queries in NOT_IN.items() for name, why in queries.items()),
)


@dataclass(frozen=True, slots=True)
class Input:
    """The `measured` events and the `checked` ones, read as `form`, one of `INPUTS`; `topics` has both if they come from Kafka."""

    form: str
    measured: EventFiles
    checked: EventFiles
    topics: tuple[EventTopics, EventTopics] | None = None


def run(
    *,
    queries: Sequence[str],
    events: int,
    checked_events: int,
    form: str,
    systems: Sequence[str],
    repeat: int,
    cache: Path,
    say: Callable[[str], None],
    bootstrap: str | None = None,
) -> Run:
    """`form`: what evenflow reads; "kafka" fills topics on the broker at `bootstrap`, None for a broker of its own.

    Raises BenchmarkError for an unknown query or form, if a system fails, or if evenflow's results are wrong.
    """
    check_names("query", queries, QUERIES)
    check_names("input", [form], INPUTS)
    check_names("system", systems, SYSTEMS)
    if form != "csv" and set(systems) != {"evenflow"}:
        raise BenchmarkError(f"Flink and Spark read NexMark's CSV files only: --from csv, not --from {form}")
    if "flink" in systems and not os.environ.get(FLINK):
        raise BenchmarkError(f"Flink needs an environment of its own: set {FLINK} to its interpreter, or leave out --systems flink")
    in_files = form in FORMATS
    measured = make(cache, events, say) if in_files else files_of(cache, events)
    given = Input(form, measured, make(cache, checked_events, say))
    with ExitStack() as stack:
        if form == "kafka":
            given = replace(given, topics=_topics(stack, bootstrap, given, say))
        cases, checks = _all(queries, systems, repeat, given, say)
    arguments = {"queries": list(queries), "events": events, "from": form, "systems": list(systems), "repeat": repeat}
    return record("nexmark", arguments, cases, _verdicts(cases), checks=checks, not_measured=NOT_MEASURED)


def _topics(stack: ExitStack, bootstrap: str | None, given: Input, say: Callable[[str], None]) -> tuple[EventTopics, EventTopics]:
    """The measured events and the checked ones, until the stack ends."""
    address = stack.enter_context(kafka_broker(bootstrap))
    measured = stack.enter_context(event_topics(address, given.measured.events, say))
    if given.checked.events == measured.events:
        return measured, measured
    return measured, stack.enter_context(event_topics(address, given.checked.events, say))


def _all(
    queries: Sequence[str], systems: Sequence[str], repeat: int, given: Input, say: Callable[[str], None]
) -> tuple[list[Case], list[str]]:
    """The cases of all queries, and what was found out about their results."""
    cases: list[Case] = []
    checks: list[str] = []
    for name in queries:
        for system in (s for s in systems if name not in NOT_IN[s]):
            found, rows, differing = _measure(name, system, repeat, given)
            cases += found
            for case in found:
                say(f"{case.name}: {', '.join(map(number, case.values))} {case.unit}")
            if differing and system == "evenflow":
                raise BenchmarkError(f"NexMark's results are not DuckDB's: {name}: of evenflow's rows {differing}")
            if differing:
                checks.append(f"{name}: of {system.capitalize()}'s rows {differing}{_why(name, system)}")
            elif rows is not None:
                checks.append(f"{name}: {system} gave the {rows:,} rows that DuckDB gives for {given.checked.events:,} events")
    return cases, checks


def _measure(name: str, system: str, repeat: int, given: Input) -> tuple[list[Case], int | None, str]:
    """The cases; how many rows were checked, None if none were; what is wrong with them, "" for nothing."""
    output = Path(scratch(f"{system}-{name}"))
    options: dict[str, Any]
    rows = sum(given.measured.rows(stream) for stream in streams_of(name))
    folder, checked = given.measured.folder, given.checked.folder
    if system != "evenflow":
        folder, options = folder / given.form, {"checked": str(checked / given.form)}
    elif given.topics is not None:
        options = {"input": given.form, "topics": [asdict(each) for each in given.topics]}
    else:
        options = {"input": given.form, "events": given.measured.events, "checked": str(checked), "checked_events": given.checked.events}
    task = Task(name, str(folder), rows, 0, str(output / "out"), repeat, options)
    try:
        busy = machine.busy_share()
        answers = run_system(f"nexmark_{system}", task, TIMEOUT)
        counted, differing = _check(name, system, output / "out", given.checked)
    finally:
        shutil.rmtree(output, ignore_errors=True)
    details = tuple({"seconds": answer.seconds, "busy_before": busy, **answer.details} for answer in answers)
    return _cases(name, system, answers, details), counted, differing


def _cases(name: str, system: str, answers: Sequence[Answer], details: tuple[dict[str, float], ...]) -> list[Case]:
    used = tuple(answer.details["cpu_seconds"] / answer.rows * 1e6 for answer in answers)
    cases = [
        Case(f"{name}/{system}", "rows/s", "higher", tuple(answer.rate for answer in answers), details),
        Case(f"{name}/{system}, processor", "s per million rows", "lower", used),
    ]
    if all("state_bytes" in answer.details for answer in answers):
        cases.append(Case(f"{name}/{system}, state", "bytes", "lower", tuple(answer.details["state_bytes"] for answer in answers)))
    return cases


def _check(name: str, system: str, output: Path, events: EventFiles) -> tuple[int | None, str]:
    if name in NOT_CHECKED.get(system, ()):
        return None, ""
    with connect(events.folder / "parquet") as database:
        if system == "flink":
            write_final_rows(database, name, output / CHANGES, output)
        rows, missing, wrong = compare(database, name, output)
    return rows, f"{missing:,} are missing and {wrong:,} are wrong" if missing or wrong else ""


def _why(name: str, system: str) -> str:
    """Why other rows than DuckDB's are to be expected, as far as that is known."""
    if system == "spark":
        return WHY_SPARK if name in UNTIL_THE_END else ""
    return WHY_FLINK


def _verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """Of each query, and of the geometric mean if all that Flink can say were measured."""
    medians = {case.name: case.median for case in cases}
    found, beside_flink = [], dict[str, float]()
    for name, system in product(QUERIES, SYSTEMS[1:]):
        ours, theirs, other = f"{name}/evenflow", f"{name}/{system}", system.capitalize()
        if ours in medians and theirs in medians:
            ratio = medians[ours] / medians[theirs]
            if system == "flink":
                beside_flink[name] = ratio
            found.append(Verdict(f"{name}, rows/s of evenflow / of {other}", ratio, TARGET, "higher"))
            ours, theirs = f"{ours}, processor", f"{theirs}, processor"
            found.append(Verdict(f"{name}, processor time of {other} / of evenflow", medians[theirs] / medians[ours], TARGET, "higher"))
    if beside_flink.keys() == QUERIES.keys() - NOT_IN_FLINK.keys():
        mean = geometric_mean(beside_flink.values())
        found.append(Verdict("rows/s of evenflow / of Flink, geometric mean of all queries", mean, MEAN_TARGET, "higher"))
    return found
