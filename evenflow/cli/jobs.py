"""The commands for running jobs: jobs, status, metrics, stop, cancel.

Each command imports its modules when it runs, so that an error in the command line shows at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from .arguments import add_job


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Add one job for all commands but `jobs`, and the command's own arguments."""
    if name != "jobs":
        add_job(parser)
    if name == "stop":
        parser.add_argument(
            "--drain", action="store_true", help="also fire open windows and timers: the job is then over, and no run continues it"
        )
        parser.add_argument(
            "--savepoint", metavar="URL", help="copy the last checkpoint to this folder, and wait until the job has stopped"
        )
        parser.add_argument("--timeout", default="10m", help="the longest wait for --savepoint; default: 10m")
    if name == "metrics":
        parser.add_argument("--totals", action="store_true", help="also each worker's totals, and the lag of its event time")


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen command. Raises JobNotRunningError if no such job runs."""
    actions: dict[str, Callable[[argparse.Namespace], None]] = {
        "jobs": show_jobs, "status": show_status, "metrics": show_metrics, "stop": stop, "cancel": cancel,
    }  # fmt: skip
    actions[arguments.command](arguments)
    return 0


def show_jobs(_arguments: argparse.Namespace) -> None:
    """Show the names of the running jobs."""
    from ..actors.cluster import running_jobs
    from ..terminal.console import DataTable, console

    table = DataTable("job", title="running jobs")
    for name in running_jobs():
        table.row(name)
    console().print(table)


def show_status(arguments: argparse.Namespace) -> None:
    """Show a job's state."""
    from .. import connect
    from ..terminal.console import console
    from ..terminal.status import status_table

    console().print(status_table(connect(arguments.job).status()))


def show_metrics(arguments: argparse.Namespace) -> None:
    """Show a job's workers."""
    from .. import connect
    from ..terminal.console import console
    from ..terminal.metrics import metrics_tables

    console().print(metrics_tables(connect(arguments.job).metrics(), totals=arguments.totals))


def stop(arguments: argparse.Namespace) -> None:
    """Stop a job at a barrier, or drain it."""
    from .. import connect
    from ..terminal.console import console

    if arguments.savepoint is not None:
        connect(arguments.job).stop(savepoint=arguments.savepoint, drain=arguments.drain, timeout=arguments.timeout)
        console().print(f"{arguments.job} has stopped; its state is in {arguments.savepoint}", soft_wrap=True)
        return
    connect(arguments.job).stop(drain=arguments.drain)
    rest = "open windows and timers fire" if arguments.drain else "open windows and timers stay in its last checkpoint, if it has a folder"
    console().print(f"{arguments.job} is stopping: records that were read are processed and committed; {rest}", soft_wrap=True)


def cancel(arguments: argparse.Namespace) -> None:
    """End a job at once."""
    from .. import connect
    from ..terminal.console import console

    connect(arguments.job).cancel()
    console().print(f"{arguments.job} is cancelled")
