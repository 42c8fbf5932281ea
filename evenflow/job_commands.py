"""The commands about running jobs: jobs, status, metrics, stop, cancel."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from .actors.supervisor import JobStatus
from .scheduler.metrics import WorkerFigures
from .scheduler.placement import short


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """All but `jobs` are about one job."""
    if name != "jobs":
        parser.add_argument("job", metavar="JOB", help="the job's name, which is its dataflow's")


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

    table = Table("job", title="running jobs")
    for name in running_jobs():
        table.add_row(name)
    Console().print(table)


def show_status(arguments: argparse.Namespace) -> None:
    """A job's state."""
    from . import connect

    Console().print(status_table(connect(arguments.job).status()))


def show_metrics(arguments: argparse.Namespace) -> None:
    """A job's workers."""
    from . import connect

    Console().print(metrics_table(arguments.job, connect(arguments.job).metrics()))


def stop(arguments: argparse.Namespace) -> None:
    """Let a job's sources end."""
    from . import connect

    connect(arguments.job).stop()
    Console().print(f"{arguments.job} is stopping: what was read is processed and committed")


def cancel(arguments: argparse.Namespace) -> None:
    """End a job at once."""
    from . import connect

    connect(arguments.job).cancel()
    Console().print(f"{arguments.job} is cancelled")


def status_table(status: JobStatus) -> Table:
    """A job's state, a fact per line."""
    table = Table("", status.name, title=None)
    table.add_row("state", status.state.value)
    table.add_row("running", f"{status.running_seconds:.1f} s")
    table.add_row("checkpoints", str(status.completed_checkpoints))
    table.add_row("workers", ", ".join(f"{worker}{_place(worker, status)}" for worker in status.workers))
    if status.spares:
        table.add_row("warm spares", str(status.spares))
    table.add_row("metrics", status.metrics_url or "-")
    if status.error is not None:
        table.add_row("error", "\n".join([str(status.error), *getattr(status.error, "__notes__", ())]))
    return table


def _place(worker: str, status: JobStatus) -> str:
    """Its node, and the name of its process where that is another than its own."""
    place = status.places.get(worker)
    if place is None:
        return ""
    return f" on {short(place.node)}" + (f" ({place.process})" if place.process != worker else "")


def metrics_table(job: str, figures: list[WorkerFigures]) -> Table:
    """A job's workers, one per line."""
    table = Table(title=job)
    table.add_column("worker")
    for column in ("rows in/s", "rows out/s", "useful", "waits for input", "backpressure", "queued", "state", "late", "latency p50/p99"):
        table.add_column(column, justify="right")
    table.add_column("watermark")
    for f in figures:
        latency = "-" if f.latency_ms is None else f"{f.latency_ms[0]:.1f}/{f.latency_ms[1]:.1f} ms"
        shares = [f"{share:.0%}" for share in (f.useful_share, f.input_wait_share, f.backpressure)]
        numbers = [str(f.queued_batches), f"{f.state_bytes / 2**20:.1f} MiB", str(f.late_records)]
        rates = [f"{f.rows_in_per_second:,.0f}", f"{f.rows_out_per_second:,.0f}"]
        table.add_row(f.worker, *rates, *shares, *numbers, latency, event_time(f.watermark))
    return table


def event_time(watermark: int | None) -> str:
    """Microseconds since the epoch as a time in UTC.

    >>> event_time(1_500_000), event_time(None)
    ('1970-01-01 00:00:01.500000+00:00', '-')
    """
    return "-" if watermark is None else str(datetime.fromtimestamp(watermark / 1e6, UTC))
