"""`evenflow top JOB`: a job on the terminal, as it is now: rates, load per worker, hottest keys, lag, backpressure, moves; q ends it."""

from __future__ import annotations

import argparse
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

from .actors.supervisor import JobStatus
from .engine.errors import JobError
from .job import Job
from .scheduler.metrics import OperatorLoad, WorkerFigures
from .scheduler.migration import MigrationReport
from .scheduler.tables import bar, keys_of, migrations_table

WINDOWS = 5
"""Newest windows that the loads are of."""

MOST_MIGRATIONS = 5


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """The job, how often to look, and whether once."""
    parser.add_argument("job", metavar="JOB", help="the job's name, which is its dataflow's")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="default: %(default)s")
    parser.add_argument("--once", action="store_true", help="print one picture and end")


def run(arguments: argparse.Namespace) -> int:
    """Show the job until q is pressed or it has ended. Raises JobError if no such job runs."""
    from . import connect

    job, console = connect(arguments.job), Console()
    if arguments.once:
        console.print(frame_of(job), highlight=False)
        return 0
    with keys_at_once(), Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while not job.status().state.final:
            with suppress(JobError):  # the job may end between two questions
                live.update(frame_of(job), refresh=True)
            if pressed_q(max(arguments.interval, 0.1)):
                return 0
    console.print(f"{job.name} has ended: it is {job.status().state.value}")
    return 0


def frame_of(job: Job) -> RenderableType:
    """One picture of a job."""
    figures = job.metrics()
    loads = {operator: job.load(operator, windows=WINDOWS) for operator in dict.fromkeys(f.operator for f in figures)}
    return frame(job.status(), figures, {name: load for name, load in loads.items() if load.groups}, job.migrations())


def frame(
    status: JobStatus, figures: list[WorkerFigures], loads: Mapping[str, OperatorLoad], migrations: list[MigrationReport]
) -> RenderableType:
    """The picture that these figures make; `loads` are those of the operators with keys."""
    heading = f"[bold]{status.name}[/] {status.state.value}, {status.running_seconds:.0f} s, {status.completed_checkpoints} checkpoints"
    parts: list[RenderableType] = [heading, workers_table(figures)]
    for name, load in loads.items():
        keys = keys_of(load)
        parts.append(f"[bold]{name}[/] imbalance {load.imbalance:.2f}, floor {load.floor:.2f}" + (f", hottest keys {keys}" if keys else ""))
    if migrations:
        parts.append(migrations_table(migrations[-MOST_MIGRATIONS:]))
    return Group(*parts)


def workers_table(figures: list[WorkerFigures]) -> Table:
    """A worker per line, with how busy it is as a bar; `waits` is its backpressure, lag how far its event
    time is behind the sources'.
    """
    newest = max((f.watermark for f in figures if f.watermark is not None), default=None)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("worker", no_wrap=True)
    for column in ("in/s", "out/s", "useful"):
        table.add_column(column, justify="right")
    table.add_column("", min_width=8)
    for column in ("waits", "queued", "lag", "state", "p50/p99 ms"):
        table.add_column(column, justify="right")
    for f in figures:
        lag = "-" if f.watermark is None or newest is None else f"{(newest - f.watermark) / 1e6:.1f} s"
        latency = "-" if f.latency_ms is None else f"{f.latency_ms[0]:.1f}/{f.latency_ms[1]:.1f}"
        rates = (short(f.rows_in_per_second), short(f.rows_out_per_second), f"{f.useful_share:.0%}", bar(f.useful_share, 8))
        table.add_row(
            f.worker, *rates, f"{f.backpressure:.0%}", str(f.queued_batches), lag, f"{f.state_bytes / 2**20:.0f}M", latency
        )  # fmt: skip
    return table


def short(rate: float) -> str:
    """A rate in five characters.

    >>> short(7.4), short(12_345.0), short(2_500_000.0)
    ('7', '12.3k', '2.5M')
    """
    for suffix, factor in (("M", 1e6), ("k", 1e3)):
        if rate >= factor:
            return f"{rate / factor:.3g}{suffix}"
    return f"{rate:.0f}"


@contextmanager
def keys_at_once() -> Iterator[None]:
    """Give us keys as they are pressed, without showing them; nothing changes where the input is no terminal."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def pressed_q(wait: float) -> bool:
    """Whether q was pressed within `wait` seconds."""
    if not sys.stdin.isatty():
        time.sleep(wait)
        return False
    ready, _, _ = select.select([sys.stdin], [], [], wait)
    return bool(ready) and sys.stdin.read(1) in ("q", "Q")
