"""DS2 drives NexMark's queries, as in table 4 of its paper: from too few and too many workers, how many steps does it take to enough?

Kalavri et al., "Three steps is all you need" (OSDI 2018). One operator of each query, its main one, waits for each record instead of
computing, so the fewest workers that are enough are known, and more workers help on two cores. All results are compared with DuckDB's.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import evenflow as ef

from ...actors.cluster import start_cluster
from ...connectors.nexmark.source import STREAMS
from ...engine.plan.graph import Graph, Node
from .. import machine
from ..conditions import record, scratch
from ..errors import BenchmarkError
from ..record import Case, Run, Verdict
from ..scaling_course import Course, Phase
from ..scaling_live import watched
from ..throughput import check_names
from .check import compare, connect
from .live import LiveEvents, live
from .queries import QUERIES
from .waits import waiting

RATE, LENGTH = 3_000.0, 30.0
"""Events a second of all streams, for so many seconds."""


@dataclass(frozen=True, slots=True)
class Waited:
    """The operator of a query that waits, and the records that come to it for each event of all streams.

    `rate`: events a second of all streams. Of Q3's people a half passes its filter, of its auctions a fifth: at 3,000 events a second that
    is 130 records in a look of 2 s, give or take 9, which is a quarter of a worker. So four times as many come.
    """

    operator: str
    share: float
    rate: float = RATE


WAITED: Mapping[str, Waited] = {
    "q1": Waited("map_batches", 46 / 50),
    "q3": Waited("sellers", (1 / 2 + 3 / 5) / 50, rate=4 * RATE),
    "q5": Waited("counts", 46 / 50),
    "q8": Waited("newcomers", 4 / 50),
    "q11": Waited("aggregate", 46 / 50),
}
STARTS: Mapping[str, int] = {"too few": 1, "too many": 8}
NEEDED = 3.4
"""Worker-seconds of waiting in a second. The rest of the fourth worker is for the engine's own work, and for the chance of q3's filters."""

READERS = 2
"""Of each source; neither of the starts, so that the operator is not chained to them."""

START, PATIENCE = 40.0, 180.0
"""Seconds that the processes get before the first event is due, and that the job may take after the last one was due."""

INTERVAL, MOST_WORKERS = 2.0, 12
MOST_STEPS = 3
NOT_MEASURED = (
    "operators that compute, on a core each: they wait here, for two cores can't show what more workers bring",
    "hot keys, which DS2 doesn't see: bids, bidders and sellers are uniform over the newest ones",
)


def run(*, queries: Sequence[str], starts: Sequence[str], say: Callable[[str], None]) -> Run:
    """Each query from each start. Raises BenchmarkError for an unknown query or start, and for a job that doesn't end."""
    check_names("query", queries, WAITED)
    check_names("start", starts, STARTS)
    start_cluster()
    cases: list[Case] = []
    courses: dict[str, Course] = {}
    reasons: dict[str, tuple[str, ...]] = {}
    for query in queries:
        for start in starts:
            name = f"{query}, {start}"
            busy = machine.busy_share()
            courses[name], reasons[name] = measure(query, STARTS[start])
            cases += courses[name].cases(name, ({"busy_before": busy},))
            say(courses[name].line(name))
    begin_with = {start: STARTS[start] for start in starts}
    rates = {query: WAITED[query].rate for query in queries}
    arguments = {"queries": list(queries), "starts": begin_with, "rates": rates, "seconds": LENGTH, "needed": NEEDED}
    series = {**{name: course.drawn for name, course in courses.items()}, "decisions": reasons}
    return record("nexmark-ds2", arguments, cases, verdicts(courses), not_measured=NOT_MEASURED, series=series)


def measure(query: str, workers: int) -> tuple[Course, tuple[str, ...]]:
    """The course of a job that begins with so many workers, and what was decided."""
    waited, folder = WAITED[query], Path(scratch(f"ds2-{query}"))
    begun, name = time.time() + START, f"nexmark-ds2-{query}-{workers}"
    flow = ef.Dataflow(name)
    arguments: dict[str, Any] = {"begun": begun, "rate": waited.rate, "events": int(waited.rate * LENGTH), "readers": READERS}
    QUERIES[query](live(flow, **arguments)).write(ef.write_parquet(folder / "out"))
    give_waits(flow.graph, waited)
    config = ef.JobConfig(
        parallelism=workers,
        combine=False,
        autoscale=ef.AutoscaleConfig("ds2", interval=INTERVAL, max_parallelism=MOST_WORKERS),
        metrics=ef.MetricsConfig(window="500ms"),
        checkpoint=ef.CheckpointConfig(interval=None),
    )
    try:
        for stream in STREAMS:
            LiveEvents(stream, **arguments).write(folder / "events" / stream)
        job = flow.run(config=config)
        if time.time() > begun:
            job.cancel()
            raise BenchmarkError(f"the job `{name}` did not begin within {START:g} s: other programs use the machine too much")
        samples = watched(job, (waited.operator,), begun, LENGTH + PATIENCE)
        decisions = [decision for decision in job.decisions() if decision.decided.parallelism]
        job.wait(PATIENCE)
        with connect(folder / "events") as database:
            _, missing, wrong = compare(database, query, folder / "out")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    phase = Phase(0.0, LENGTH, waited.rate, {waited.operator: ceil(NEEDED)})
    told = tuple(f"{d.time - begun:.1f} s: {d}" for d in decisions)
    return Course((phase,), tuple(samples), tuple(d.time - begun for d in decisions), lost=missing + wrong), told


def give_waits(graph: Graph, waited: Waited) -> None:
    """Make the operator wait, and run all that is before it in the sources' workers."""
    node = next(node for node in graph if node.name == waited.operator)
    graph.nodes[node.id] = replace(node, operator=waiting(node.operator, NEEDED / (waited.rate * waited.share)))
    for other in _before(graph, node):
        other.parallelism = READERS


def _before(graph: Graph, node: Node) -> list[Node]:
    """The nodes whose records can reach this one."""
    inputs = [graph.nodes[edge.node] for edge in node.inputs]
    return [*inputs, *(above for each in inputs for above in _before(graph, each))]


def verdicts(courses: Mapping[str, Course]) -> list[Verdict]:
    """DS2's promise: at most three steps, and enough workers. Nothing is lost or comes twice."""
    return [
        Verdict("DS2's most steps", max(max(course.steps) for course in courses.values()), MOST_STEPS, "lower"),
        Verdict("DS2's most workers off the optimum at the end", max(max(course.off) for course in courses.values()), 0, "lower"),
        Verdict("rows that are missing or wrong, all jobs", sum(course.lost or 0 for course in courses.values()), 0, "lower"),
    ]
