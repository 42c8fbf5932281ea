"""Stela's topologies on several Ray nodes of this machine: a node more and a node less, by Stela and by round robin.

The operators wait instead of computing, so that a node more helps on two cores. What is offered is more than the operators can do, and the
sources are held back. Every run must give exactly the rows of the sequential computation.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Final

import evenflow as ef

from ...scheduler.policies.nodes.node_policies import NODE_POLICIES
from .. import machine
from ..conditions import record
from ..errors import BenchmarkError
from ..record import Case, Run, Verdict
from ..throughput import check_names
from .course import Course, curve, measure
from .flow import TopologyFlow
from .load import Load
from .nodes import Nodes
from .topologies import TOPOLOGIES

POLICIES: Final = tuple(NODE_POLICIES)
DIRECTIONS: Final = ("more", "less")
NODES = 3
"""Before the change. Workers fill one after the other, so that the nodes differ and there is something to choose when one leaves."""

SETTLE = 8.0
"""Seconds after the first results, in which the channels fill up."""

PACE = 2.0
"""The default, so that few rows keep the operators busy for long, also beside other programs."""

WINDOW, AFTER = 10.0, 25.0
"""Seconds before the order, and from its end to that of the run."""

FEW_ROWS = ef.NetworkConfig(batch_rows=4, source_rows=16, credit_batches=2)
"""A worker takes some ten rows a second: the allowance that suits fast operators would be a minute's work for it."""

WAIT = "3m"
FIGURES: Final = (("before", "rows/s", "higher"), ("after", "rows/s", "higher"), ("converged", "s", "lower"), ("downtime", "s", "lower"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: its course, the rows by second, what the job reported of the node, and the differences of each sink."""

    course: Course
    curve: list[tuple[float, float]]
    report: str
    workers: Mapping[str, tuple[int, int]]
    differences: Mapping[str, tuple[int, int, int]]
    busy: float


def run(
    *,
    topologies: Sequence[str],
    policies: Sequence[str],
    directions: Sequence[str],
    pace: float,
    repeat: int,
    after: float,
    say: Callable[[str], None],
) -> Run:
    """Every topology, direction and policy, `repeat` times; a run goes on for `after` seconds once the node has come or gone.

    Operators wait `pace` times as long as the topology says, for as much fewer lines. Raises BenchmarkError for unknown names, a job that
    does not come to it, and wrong rows.
    """
    check_names("topology", topologies, TOPOLOGIES)
    check_names("policy", policies, POLICIES)
    check_names("direction", directions, DIRECTIONS)
    outcomes: dict[str, list[Outcome]] = {}
    for topology in topologies:
        with Nodes(NODES, cpus_of(topology)) as nodes:
            for direction, _, policy in product(directions, range(repeat), policies):
                name = case_name(topology, direction, policy)
                found = once(nodes, topology, direction, policy, pace, after)
                outcomes.setdefault(name, []).append(found)
                say(f"{name}: {found.course}; {found.report}; {checks_of({name: [found]})[0]}")
    arguments = {
        "topologies": [*topologies],
        "policies": [*policies],
        "directions": [*directions],
        "pace": pace,
        "repeat": repeat,
        "after": after,
    }
    return record(
        "stela",
        arguments,
        [case for name, several in outcomes.items() for case in cases_of(name, several)],
        verdicts(outcomes, topologies),
        checks=checks_of(outcomes),
        not_measured=("nodes on machines of their own", "operators that compute instead of waiting"),
        series={name: several[0].curve for name, several in outcomes.items()},
    )


def case_name(topology: str, direction: str, policy: str) -> str:
    """What a topology with a node more or less by a policy is called."""
    return f"{topology}, a node {direction}, {policy}"


def cpus_of(topology: str) -> int:
    """The CPUs of a node: its share of the topology's workers. They order the nodes; a node takes more workers when another leaves."""
    return -(-workers_of(topology) // NODES)


def workers_of(topology: str) -> int:
    """The workers of all its operators and sources."""
    return sum(stage.parallelism for stage in TopologyFlow.of(topology, load=Load()).flow.plan(config=ef.JobConfig()).stages)


def once(nodes: Nodes, topology: str, direction: str, policy: str, pace: float, after: float) -> Outcome:
    """Run a topology while a node comes or goes. Raises BenchmarkError if the job gives no rows, or the node can't come or go."""
    busy = machine.busy_share()
    flow = TopologyFlow.of(topology, load=Load(pace))
    added: Any = None
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-stela-") as folder:
        job = flow.flow.run(runtime="ray", config=_config(folder))
        try:
            begun = _started(job, flow)
            time.sleep(SETTLE)
            if direction == "more":
                added = nodes.add(workers_of(topology) // NODES)
            time.sleep(WINDOW)
            ordered = time.time()
            report = job.scale_out(policy=policy, timeout=WAIT) if direction == "more" else job.scale_in(policy=policy, timeout=WAIT)[0]
            time.sleep(after)
            ended = time.time()
            job.stop(drain=True)
            job.wait(WAIT)
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
        measure(times, ordered, ended, WINDOW),
        curve(times, ordered, max(begun, ordered - 2 * WINDOW), ended),
        str(report),
        dict(report.parallelism),
        flow.differences(),
        busy,
    )


def cases_of(name: str, outcomes: Sequence[Outcome]) -> list[Case]:
    """The figures of all runs of one kind."""
    details = tuple(
        {"report": one.report, "workers": one.workers, "longest_before": one.course.longest_before, "busy_before": one.busy}
        for one in outcomes
    )
    figures = [asdict(one.course) for one in outcomes]
    return [
        Case(f"{name}/{figure}", unit, better, tuple(one[figure] for one in figures), details if figure == "after" else ())  # type: ignore[arg-type]  # mypy takes the texts of FIGURES for any
        for figure, unit, better in FIGURES
    ]


def verdicts(outcomes: Mapping[str, Sequence[Outcome]], topologies: Sequence[str]) -> list[Verdict]:
    """Stela's throughput against round robin's in the first run of each, by the topology in which it is lowest."""
    found = []
    for direction in DIRECTIONS:
        pairs = [[outcomes.get(case_name(topology, direction, policy)) for policy in POLICIES] for topology in topologies]
        ratios = [stela[0].course.after / other[0].course.after for stela, other in pairs if stela and other]
        if ratios:
            found.append(Verdict(f"one node {direction}: Stela's throughput / round robin's, the lowest", min(ratios), 1.0, "higher"))
    return found


def checks_of(outcomes: Mapping[str, Sequence[Outcome]]) -> list[str]:
    """That all rows are right. Raises BenchmarkError, naming sinks, if one is not."""
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
        worker=ef.WorkerConfig(placement="pack", start_timeout="2m"),
        network=FEW_ROWS,
        checkpoint=ef.CheckpointConfig(folder, interval="1s"),
    )


def _started(job: ef.Job, flow: TopologyFlow) -> float:
    """Wait until rows have come to every sink; the time then."""
    patience = time.monotonic() + 120.0
    while not all(flow.rows.values()):
        if job.status().state.final:
            job.wait(WAIT)
        if time.monotonic() > patience:
            raise BenchmarkError("no rows have come within two minutes")
        time.sleep(0.2)
    return time.time()
