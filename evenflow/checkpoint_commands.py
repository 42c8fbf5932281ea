"""The command about the checkpoints of running jobs: checkpoints."""

from __future__ import annotations

import argparse

from .scheduler.drawing import console
from .scheduler.tables import checkpoints_table


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """It is about one job."""
    parser.add_argument("job", metavar="JOB", help="the job's name, which is its dataflow's")


def run(arguments: argparse.Namespace) -> int:
    """Show the job's newest checkpoints. Raises JobError if no such job runs."""
    from . import connect

    console().print(checkpoints_table(connect(arguments.job).checkpoints()))
    return 0
