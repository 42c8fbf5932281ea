"""The commands for the number of workers of running jobs' operators: scale, scalings."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from .arguments import add_job, add_waiting

if TYPE_CHECKING:
    from ..job import Job


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Add one job, and the command's own arguments."""
    add_job(parser)
    if name == "scale":
        parser.add_argument("operator", nargs="?", metavar="OPERATOR", help="an operator of the job, for example aggregate")
        parser.add_argument("workers", nargs="?", type=int, metavar="N", help="its new number of workers")
        parser.add_argument("--out-nodes", type=int, metavar="NODES", help="instead of an operator: add NODES nodes")
        parser.add_argument("--in-nodes", type=int, metavar="NODES", help="instead of an operator: give NODES nodes back")
        add_waiting(parser, "2m")


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen command. Raises RequestError if no such job runs, if the scaling fails, and for an impossible request."""
    if arguments.command == "scale":
        check_one(arguments)
    from .. import connect

    actions: dict[str, Callable[[Job, argparse.Namespace], None]] = {"scale": scale, "scalings": show_scalings}
    actions[arguments.command](connect(arguments.job), arguments)
    return 0


def check_one(arguments: argparse.Namespace) -> None:
    """End with a usage error unless exactly one thing is to be scaled: an operator, or nodes."""
    asked = [arguments.operator is not None, arguments.out_nodes is not None, arguments.in_nodes is not None]
    if sum(asked) != 1 or (arguments.operator is not None and arguments.workers is None):
        arguments.usage_error("scale one thing at a time: OPERATOR N, --out-nodes NODES, or --in-nodes NODES")


def scale(job: Job, arguments: argparse.Namespace) -> None:
    """Scale an operator or the job's nodes, and show the report."""
    from ..terminal.console import console
    from ..terminal.reports import node_scalings_table, scalings_table

    if arguments.operator is not None:
        report = job.scale(arguments.operator, arguments.workers, strategy=arguments.strategy, timeout=arguments.timeout)
        console().print(scalings_table([report]))
    elif arguments.out_nodes is not None:
        console().print(node_scalings_table([job.scale_out(arguments.out_nodes, timeout=arguments.timeout)]))
    else:
        console().print(node_scalings_table(job.scale_in(arguments.in_nodes, timeout=arguments.timeout)))


def show_scalings(job: Job, _arguments: argparse.Namespace) -> None:
    """Show all scalings of a job."""
    from ..terminal.console import console
    from ..terminal.reports import scalings_table

    console().print(scalings_table(job.scalings()))
