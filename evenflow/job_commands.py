"""The commands about running jobs: jobs, status, metrics, stop, cancel."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from .actors.tables import status_table
from .scheduler.drawing import DataTable, console
from .scheduler.tables import metrics_tables


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """All but `jobs` are about one job."""
    if name != "jobs":
        parser.add_argument("job", metavar="JOB", help="the job's name, which is its dataflow's")
    if name == "metrics":
        parser.add_argument("--totals", action="store_true", help="also what each worker has done so far, and its event time")


def run(arguments: argparse.Namespace) -> int:
    """Run the command that was chosen. Raises JobError if no such job runs."""
    actions: dict[str, Callable[[argparse.Namespace], None]] = {
        "jobs": show_jobs, "status": show_status, "metrics": show_metrics, "stop": stop, "cancel": cancel,
    }  # fmt: skip
    actions[arguments.command](arguments)
    return 0


def show_jobs(_arguments: argparse.Namespace) -> None:
    """The names of the jobs that run."""
    from .actors.cluster import running_jobs

    table = DataTable("job", title="running jobs")
    for name in running_jobs():
        table.row(name)
    console().print(table)


def show_status(arguments: argparse.Namespace) -> None:
    """A job's state."""
    from . import connect

    console().print(status_table(connect(arguments.job).status()))


def show_metrics(arguments: argparse.Namespace) -> None:
    """A job's workers."""
    from . import connect

    console().print(metrics_tables(connect(arguments.job).metrics(), totals=arguments.totals))


def stop(arguments: argparse.Namespace) -> None:
    """Let a job's sources end."""
    from . import connect

    connect(arguments.job).stop()
    console().print(f"{arguments.job} is stopping: what was read is processed and committed")


def cancel(arguments: argparse.Namespace) -> None:
    """End a job at once."""
    from . import connect

    connect(arguments.job).cancel()
    console().print(f"{arguments.job} is cancelled")
