"""The commands about the number of workers of running jobs' operators: scale, scalings."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table

from .actors.elastic import ScalingReport
from .job import Job
from .scheduler.config import LIVE

_COLUMNS = ("no.", "operator", "workers", "state", "keys moved", "bytes", "seconds")


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Both are about one job."""
    parser.add_argument("job", metavar="JOB", help="the job's name, which is its dataflow's")
    if name == "scale":
        parser.add_argument("operator", metavar="OPERATOR", help="an operator of the job, for example aggregate")
        parser.add_argument("workers", type=int, metavar="N", help="how many workers it is to have")
        parser.add_argument("--strategy", choices=LIVE, help="how keys move (default: the job's)")
        parser.add_argument("--timeout", default="2m", help="how long to wait until it is done (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command that was chosen. Raises JobError if no such job runs or it fails, FlowError for what the job hasn't or can't."""
    from . import connect

    actions: dict[str, Callable[[Job, argparse.Namespace], None]] = {"scale": scale, "scalings": show_scalings}
    actions[arguments.command](connect(arguments.job), arguments)
    return 0


def scale(job: Job, arguments: argparse.Namespace) -> None:
    """Scale, and show what was done."""
    report = job.scale(arguments.operator, arguments.workers, strategy=arguments.strategy, timeout=arguments.timeout)
    Console().print(scalings_table([report]), highlight=False)


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
