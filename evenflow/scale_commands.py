"""The commands about the number of workers of running jobs' operators: scale, scalings."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table

from .actors.elastic import ScalingReport
from .actors.node_scaling import NodeScalingReport
from .engine.errors import FlowError
from .job import Job
from .scheduler.config import LIVE
from .scheduler.placement import short

_COLUMNS = ("no.", "operator", "workers", "state", "keys moved", "bytes", "seconds")


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Both are about one job."""
    parser.add_argument("job", metavar="JOB", help="the job's name, which is its dataflow's")
    if name == "scale":
        parser.add_argument("operator", nargs="?", metavar="OPERATOR", help="an operator of the job, for example aggregate")
        parser.add_argument("workers", nargs="?", type=int, metavar="N", help="how many workers it is to have")
        parser.add_argument("--out-nodes", type=int, metavar="NODES", help="instead of an operator: use so many nodes more")
        parser.add_argument("--in-nodes", type=int, metavar="NODES", help="instead of an operator: give so many nodes back")
        parser.add_argument("--strategy", choices=LIVE, help="how keys move (default: the job's)")
        parser.add_argument("--timeout", default="2m", help="how long to wait until it is done (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command that was chosen. Raises JobError if no such job runs or it fails, FlowError for what the job hasn't or can't."""
    from . import connect

    actions: dict[str, Callable[[Job, argparse.Namespace], None]] = {"scale": scale, "scalings": show_scalings}
    actions[arguments.command](connect(arguments.job), arguments)
    return 0


def scale(job: Job, arguments: argparse.Namespace) -> None:
    """Scale an operator or the job's nodes, and show what was done. Raises FlowError unless it is told which of them."""
    asked = (
        arguments.operator is not None and arguments.workers is not None,
        arguments.out_nodes is not None,
        arguments.in_nodes is not None,
    )
    if sum(asked) != 1 or (arguments.operator is not None and not asked[0]):
        raise FlowError("scale one thing at a time: OPERATOR N, --out-nodes NODES, or --in-nodes NODES")
    if asked[0]:
        report = job.scale(arguments.operator, arguments.workers, strategy=arguments.strategy, timeout=arguments.timeout)
        Console().print(scalings_table([report]), highlight=False)
    elif asked[1]:
        Console().print(node_scalings_text([job.scale_out(arguments.out_nodes, timeout=arguments.timeout)]), highlight=False)
    else:
        Console().print(node_scalings_text(job.scale_in(arguments.in_nodes, timeout=arguments.timeout)), highlight=False)


def node_scalings_text(reports: Sequence[NodeScalingReport]) -> str:
    """A sentence or two for each.

    >>> from evenflow.actors.node_scaling import NodeScalingState
    >>> report = NodeScalingReport(0, (), "ab12cd34ef", {"count": (3, 2)}, ("read-0",), "sums", NodeScalingState.DONE, 1.5)
    >>> print(node_scalings_text([report]))
    node ab12cd34 given back in 1.500 s: count 3 to 2 workers; read-0 went on elsewhere
    0: sums
    """
    lines = []
    for report in reports:
        changes = [f"{operator} {before} to {after} workers" for operator, (before, after) in report.parallelism.items()]
        changes += [f"{', '.join(report.replaced)} went on elsewhere"] * bool(report.replaced)
        nodes = ", ".join(map(short, report.added)) if report.removed is None else short(report.removed)
        took = "" if report.seconds is None else f" in {report.seconds:.3f} s"
        lines += [
            f"node {nodes} {'added' if report.removed is None else 'given back'}{took}: {'; '.join(changes)}",
            f"{report.number}: {report.reason}" + (f"; {report.problem}" if report.problem is not None else ""),
        ]
    return "\n".join(lines)


def show_scalings(job: Job, _arguments: argparse.Namespace) -> None:
    """All scalings of a job."""
    Console().print(scalings_table(job.scalings()), highlight=False)


def scalings_table(reports: Sequence[ScalingReport]) -> RenderableType:
    """A scaling per line, the oldest first, and why each was made or could not be."""
    table = Table(title="scalings", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in ("operator", "state") else "right")
    for report in reports:
        seconds = "-" if report.seconds is None else f"{report.seconds:.3f}"
        workers = f"{report.before} to {report.after}"
        moved = f"{report.keys_moved:,}", f"{report.state_bytes:,}"
        table.add_row(str(report.number), report.operator, workers, report.state.value, *moved, seconds)
    why = (f"{report.number}: {report.reason}" + (f"; {report.problem}" if report.problem is not None else "") for report in reports)
    return Group(table, *why)
