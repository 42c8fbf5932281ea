"""Stela's topologies on several Ray nodes of this machine: a node more and a node less, by Stela and by round robin.

The operators wait instead of computing, so that one more node helps on two cores. The offered load exceeds the operators' capacity, so
the sources are held back. Every run must emit exactly the rows of the sequential computation.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Final

import evenflow as ef

from ....scheduler.policies.nodes.node_policies import NODE_POLICIES
from ...harness import machine
from ...harness.benchmark import Argument, Benchmark, Say, repeat, some_of
from ...harness.errors import BenchmarkError
from ...harness.jobs import drain, until
from ...harness.plots import panels
from ...harness.record import Better, Case, Findings, Run, Verdict
from .course import Course, curve, measure
from .flow import TopologyFlow
from .load import Load
from .nodes import Nodes
from .topologies import TOPOLOGIES

POLICIES: Final = tuple(NODE_POLICIES)
DIRECTIONS: Final = ("more", "less")
NODES = 3
"""Nodes before the change. Workers fill one after the other, so the nodes differ and a policy can choose which one leaves."""

SETTLE = 8.0
"""Seconds after the first results, in which the channels fill up."""

WINDOW = 10.0
"""Seconds before the order in which throughput is measured."""

FEW_ROWS = ef.NetworkConfig(batch_rows=4, source_rows=16, credit_batches=2)
"""A worker processes some ten rows a second: the default limits for fast operators would be a minute's work for it."""

FIRST_ROWS_SECONDS = 120.0
WAIT = 180.0
FIGURES: Final[tuple[tuple[str, str, Better], ...]] = (
    ("before", "rows/s", "higher"),
    ("after", "rows/s", "higher"),
    ("converged", "s", "lower"),
    ("downtime", "s", "lower"),
)
PANEL = (4.2, 2.4)
"""Inches."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: its course, the rows by second, the job's report of the change, and the differences of each sink."""

    course: Course
    curve: list[tuple[float, float]]
    report: str
    workers: Mapping[str, tuple[int, int]]
    differences: Mapping[str, tuple[int, int, int]]
    busy: float


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Run every topology, direction and policy. Raises BenchmarkError for a job that can't be scaled, and for wrong rows."""
    outcomes: dict[str, list[Outcome]] = {}
    for topology in given.topologies:
        with Nodes(NODES, cpus_of(topology)) as nodes:
            for direction, _, policy in product(given.directions, range(given.repeat), given.policies):
                name = case_name(topology, direction, policy)
                found = once(nodes, topology, direction, policy, given.pace, given.after)
                outcomes.setdefault(name, []).append(found)
                say(f"{name}: {found.course}; {found.report}; {checks_of({name: [found]})[0]}")
    cases = [case for name, several in outcomes.items() for case in cases_of(name, several)]
    series = {name: several[0].curve for name, several in outcomes.items()}
    return Findings(cases, verdicts(outcomes, given.topologies), checks_of(outcomes), series)


def case_name(topology: str, direction: str, policy: str) -> str:
    """Return the name of a case."""
    return f"{topology}, a node {direction}, {policy}"


def cpus_of(topology: str) -> int:
    """Return the CPUs of a node: its share of the topology's workers. A node takes more workers when another leaves."""
    return -(-workers_of(topology) // NODES)


def workers_of(topology: str) -> int:
    """Return the workers of all operators and sources of a topology."""
    return sum(stage.parallelism for stage in TopologyFlow.of(topology, load=Load()).flow.plan(config=ef.JobConfig()).stages)


def once(nodes: Nodes, topology: str, direction: str, policy: str, pace: float, after: float) -> Outcome:
    """Run a topology while a node joins or leaves. Raises BenchmarkError if the job emits no rows, or the node can't join or leave."""
    busy = machine.busy_share()
    flow = TopologyFlow.of(topology, load=Load(pace))
    added: Any = None
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-stela-") as folder:
        job = flow.flow.run(runtime="ray", config=_config(folder))
        try:
            until(lambda: all(flow.rows.values()) or job.status().state.final, "all sinks have rows", FIRST_ROWS_SECONDS, every=0.2)
            begun = time.time()
            time.sleep(SETTLE)
            if direction == "more":
                added = nodes.add(workers_of(topology) // NODES)
            time.sleep(WINDOW)
            ordered = time.time()
            report = job.scale_out(policy=policy, timeout=WAIT) if direction == "more" else job.scale_in(policy=policy, timeout=WAIT)[0]
            time.sleep(after)
            ended = time.time()
            drain(job, WAIT)
        except ef.EvenflowError as error:
            raise BenchmarkError(f"benchmark stela: {case_name(topology, direction, policy)}: {error}") from error
        finally:
            if not job.status().state.final:
                job.cancel()
                job.wait(WAIT)
            if added is not None:
                nodes.remove(added)
    times = [row["at"] / 1e9 for rows in flow.rows.values() for row in rows]
    return Outcome(
        measure(times, ordered, ended, WINDOW), curve(times, ordered, max(begun, ordered - 2 * WINDOW), ended), str(report),
        dict(report.parallelism), flow.differences(), busy,
    )  # fmt: skip


def cases_of(name: str, outcomes: Sequence[Outcome]) -> list[Case]:
    """Return the measurements of all runs of one kind."""
    details = tuple(
        {"report": one.report, "workers": one.workers, "longest_before": one.course.longest_before, "busy_before": one.busy}
        for one in outcomes
    )
    figures = [asdict(one.course) for one in outcomes]
    return [
        Case(f"{name}/{figure}", unit, better, tuple(one[figure] for one in figures), details if figure == "after" else ())
        for figure, unit, better in FIGURES
    ]


def verdicts(outcomes: Mapping[str, Sequence[Outcome]], topologies: Sequence[str]) -> list[Verdict]:
    """Judge Stela's throughput by round robin's in the first run of each, by the topology in which it is lowest."""
    found = []
    for direction in DIRECTIONS:
        pairs = [[outcomes.get(case_name(topology, direction, policy)) for policy in POLICIES] for topology in topologies]
        ratios = [stela[0].course.after / other[0].course.after for stela, other in pairs if stela and other]
        if ratios:
            found.append(Verdict(f"one node {direction}: Stela's throughput / round robin's, the lowest", min(ratios), 1.0, "higher"))
    return found


def checks_of(outcomes: Mapping[str, Sequence[Outcome]]) -> list[str]:
    """Check that all rows are right. Raises BenchmarkError, naming sinks, if one is not."""
    wrong, total = [], 0
    for name, several in outcomes.items():
        for sink, (rows, missing, too_many) in (item for one in several for item in one.differences.items()):
            total += rows
            if missing or too_many:
                wrong.append(f"{name}: sink {sink} lacks {missing:,} rows and has {too_many:,} wrong ones")
    if wrong:
        raise BenchmarkError(f"benchmark stela: not all rows are those of the sequential computation: {'; '.join(wrong)}")
    return [f"{total:,} rows at the sinks of {len(outcomes)} kinds of runs, all those of the sequential computation"]


def _config(folder: str) -> ef.JobConfig:
    return ef.JobConfig(
        parallelism=1,
        worker=ef.WorkerConfig(cpus=0, placement="pack", start_timeout="2m"),
        network=FEW_ROWS,
        checkpoint=ef.CheckpointConfig(folder, interval="1s"),
    )


def draw(run: Run, figure: Any) -> None:
    """Draw the throughput by second around the order, a row of panels for each topology."""
    curves: dict[str, dict[str, Any]] = {}
    for name, points in run.series.items():
        what, _, policy = name.rpartition(", ")
        curves.setdefault(what, {})[policy] = points
    columns = len(run.arguments["directions"])
    for axes, (what, by_policy) in zip(panels(figure, len(curves), columns, PANEL), curves.items(), strict=True):
        for policy, points in by_policy.items():
            axes.plot([second for second, _ in points], [rate for _, rate in points], label=policy, linewidth=1.2)
        axes.axvline(0.0, color="gray", linestyle=":")
        axes.set_title(what, fontsize="medium")
        axes.set_xlabel("seconds since the order")
        axes.set_ylabel("rows/s at the sinks")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize="x-small")


BENCHMARK = Benchmark(
    "stela",
    "Stela's topologies while a node joins or leaves, by Stela and by round robin",
    (
        Argument("--topologies", some_of(TOPOLOGIES), list(TOPOLOGIES), "topologies"),
        Argument("--policies", some_of(POLICIES), list(POLICIES), "policies"),
        Argument("--directions", some_of(DIRECTIONS), list(DIRECTIONS), "one node more or one less"),
        Argument("--pace", float, 2.0, "factor of the operators' waits, by which the offered load is divided"),
        Argument("--after", float, 25.0, "seconds after the node has joined or left"),
        repeat(1, "runs of each"),
    ),
    run,
    ("nodes on machines of their own", "operators that compute instead of waiting"),
    draw,
)
