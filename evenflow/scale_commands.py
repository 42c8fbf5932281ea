"""The commands about the number of workers of running jobs' operators: scale, scalings."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from .actors.tables import node_scalings_text, scalings_table
from .engine.errors import FlowError
from .job import Job
from .scheduler.config import LIVE
from .scheduler.drawing import console


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
        console().print(scalings_table([report]))
    elif asked[1]:
        console().print(node_scalings_text([job.scale_out(arguments.out_nodes, timeout=arguments.timeout)]))
    else:
        console().print(node_scalings_text(job.scale_in(arguments.in_nodes, timeout=arguments.timeout)))


def show_scalings(job: Job, _arguments: argparse.Namespace) -> None:
    """All scalings of a job."""
    console().print(scalings_table(job.scalings()))
