"""DS2 scales NexMark's queries, as in table 4 of its paper: how many steps does it need from too few and too many workers to enough?

Kalavri et al., "Three steps is all you need" (OSDI 2018). The main operator of each query waits for each record instead of computing, so
the fewest workers that are enough are known, and more workers help on two cores. All results are compared with DuckDB's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import evenflow as ef

from ...actors.cluster import start_cluster
from ...connectors.nexmark.source import STREAMS
from ...engine.plan.graph import Graph, Node
from ..harness import machine
from ..harness.benchmark import Argument, Benchmark, Say, some_of
from ..harness.conditions import scratch
from ..harness.errors import BenchmarkError
from ..harness.record import Case, Findings, Verdict
from ..scaling.course import Course, Phase
from .check import compare, connect
from .live import LiveEvents, live
from .queries import QUERIES
from .waits import waiting

RATE, LENGTH = 3_000.0, 30.0
"""Events a second of all streams, for this many seconds."""


@dataclass(frozen=True, slots=True)
class Waited:
    """The operator of a query that waits, and the records that it gets for each event of all streams.

    `rate`: events a second of all streams. Of Q3's people a half passes its filter, of its auctions a fifth: at 3,000 events a second that
    is 130 records in 2 s, give or take 9, which is a quarter of a worker. So Q3 gets four times as many.
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
"""Worker-seconds of waiting in a second. The rest of the fourth worker is for the engine's own work, and for the chance of Q3's filters."""

READERS = 2
"""Workers of each source: neither of the starts, so that the operator is not chained to them."""

START, PATIENCE = 40.0, 180.0
"""Seconds that the processes get before the first event is due, and that the job may take after the last one was due."""

INTERVAL, SAMPLE, MOST_WORKERS = 2.0, 0.25, 12
MOST_STEPS = 3


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Measure each query from each start. Raises BenchmarkError for a job that doesn't end."""
    start_cluster()
    cases: list[Case] = []
    courses: dict[str, Course] = {}
    reasons: dict[str, tuple[str, ...]] = {}
    for query in given.queries:
        for start in given.starts:
            name = f"{query}, {start}"
            busy = machine.busy_share()
            courses[name], reasons[name] = measure(query, STARTS[start])
            cases += courses[name].cases(name, ({"busy_before": busy},))
            say(courses[name].line(name))
    series = {**{name: course.drawn for name, course in courses.items()}, "decisions": reasons}
    facts = {"rates": {query: WAITED[query].rate for query in given.queries}, "seconds": LENGTH, "needed": NEEDED}
    return Findings(cases, verdicts(courses), series=series, facts=facts)


def measure(query: str, workers: int) -> tuple[Course, tuple[str, ...]]:
    """Run a job that begins with this many workers; returns its course and the decisions."""
    waited, begun, name = WAITED[query], time.time() + START, f"nexmark-ds2-{query}-{workers}"
    flow = ef.Dataflow(name)
    arguments: dict[str, Any] = {"begun": begun, "rate": waited.rate, "events": int(waited.rate * LENGTH), "readers": READERS}
    config = ef.JobConfig(
        parallelism=workers,
        combine=False,
        autoscale=ef.AutoscaleConfig("ds2", mode="act", interval=INTERVAL, max_parallelism=MOST_WORKERS),
        metrics=ef.MetricsConfig(window="500ms"),
        checkpoint=ef.CheckpointConfig(interval=None),
    )
    with scratch(f"ds2-{query}") as folder:
        QUERIES[query](live(flow, **arguments)).write(ef.write_parquet(folder / "out"))
        add_waits(flow.graph, waited)
        for stream in STREAMS:
            LiveEvents(stream, **arguments).write(folder / "events" / stream)
        job = flow.run(config=config)
        if time.time() > begun:
            job.cancel()
            raise BenchmarkError(f"the job `{name}` did not start within {START:g} s: other programs use the machine too much")
        samples = sampled(job, waited.operator, begun, LENGTH + PATIENCE)
        decisions = [decision for decision in job.decisions() if decision.decided.parallelism]
        job.wait(PATIENCE)
        with connect(folder / "events") as database:
            _, missing, wrong = compare(database, query, folder / "out")
    phase = Phase(0.0, LENGTH, waited.rate, {waited.operator: ceil(NEEDED)})
    reasons = tuple(f"{d.time - begun:.1f} s: {d}" for d in decisions)
    return Course((phase,), tuple(samples), tuple(d.time - begun for d in decisions), lost=missing + wrong), reasons


def sampled(job: ef.Job, operator: str, begun: float, longest: float) -> list[tuple[float, dict[str, int]]]:
    """Sample the workers of the operator until the job has ended; times are seconds since `begun`.

    Cancels the job and raises BenchmarkError if it has not ended `longest` seconds after `begun`.
    """
    samples = []
    while not job.status().state.final:
        workers = sum(name.startswith(f"{operator}-") for name in job.status().workers)
        samples.append((time.time() - begun, {operator: workers}))
        if time.time() > begun + longest:
            job.cancel()
            raise BenchmarkError(f"the job `{job.name}` has not ended {longest:g} s after it began to read")
        time.sleep(SAMPLE)
    return samples


def add_waits(graph: Graph, waited: Waited) -> None:
    """Make the operator wait, and run all nodes before it in the sources' workers."""
    node = next(node for node in graph if node.name == waited.operator)
    graph.nodes[node.id] = replace(node, operator=waiting(node.operator, NEEDED / (waited.rate * waited.share)))
    for other in _before(graph, node):
        other.parallelism = READERS


def _before(graph: Graph, node: Node) -> list[Node]:
    """Return the nodes whose records can reach this one."""
    inputs = [graph.nodes[edge.node] for edge in node.inputs]
    return [*inputs, *(above for each in inputs for above in _before(graph, each))]


def verdicts(courses: Mapping[str, Course]) -> list[Verdict]:
    """Judge DS2's promise: at most three steps, and enough workers. No row is missing or repeated."""
    return [
        Verdict("DS2's most steps", max(max(course.steps) for course in courses.values()), MOST_STEPS, "lower"),
        Verdict("DS2's most workers off the optimum at the end", max(max(course.off) for course in courses.values()), 0, "lower"),
        Verdict("rows that are missing or wrong, all jobs", sum(course.lost or 0 for course in courses.values()), 0, "lower"),
    ]


BENCHMARK = Benchmark(
    "nexmark-ds2",
    "DS2's steps from too few and too many workers to enough, query by query",
    (
        Argument("--queries", some_of(WAITED), list(WAITED), "queries"),
        Argument("--starts", some_of(STARTS), list(STARTS), "workers at the beginning"),
    ),
    run,
    (
        "operators that compute, on a core each: they wait here, for two cores can't show what more workers bring",
        "hot keys, which DS2 doesn't see: bids, bidders and sellers are uniform over the newest ones",
    ),
)
