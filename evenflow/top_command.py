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

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .actors.supervisor import JobStatus
from .engine.errors import JobError
from .job import Job
from .scheduler.drawing import DataTable, console
from .scheduler.metrics import OperatorLoad, WorkerFigures
from .scheduler.migration import MigrationReport
from .scheduler.tables import bar, keys_of, migrations_table, short_bytes, short_number

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

    job, terminal = connect(arguments.job), console()
    if arguments.once:
        terminal.print(frame_of(job))
        return 0
    with keys_at_once(), Live(console=terminal, screen=terminal.is_terminal, auto_refresh=False) as live:
        while not job.status().state.final:
            with suppress(JobError):  # the job may end between two questions
                live.update(frame_of(job), refresh=True)
            if pressed_q(max(arguments.interval, 0.1)):
                return 0
    terminal.print(f"{job.name} has ended: it is {job.status().state.value}")
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
    facts = f" {status.state.value}, {status.running_seconds:.0f} s, {status.completed_checkpoints} checkpoints"
    parts: list[RenderableType] = [Text.assemble((status.name, "bold"), facts), workers_table(figures)]
    for name, load in loads.items():
        keys = keys_of(load)
        even = f" imbalance {load.imbalance:.2f}, floor {load.floor:.2f}" + (f", hottest keys {keys}" if keys else "")
        parts.append(Text.assemble((name, "bold"), even))
    if migrations:
        parts.append(migrations_table(migrations[-MOST_MIGRATIONS:]))
    return Group(*parts)


def workers_table(figures: list[WorkerFigures]) -> Table:
    """A worker per line, with how busy it is as a bar; `waits` is its backpressure, lag how far its event
    time is behind the sources'.
    """
    newest = max((f.watermark for f in figures if f.watermark is not None), default=None)
    numbers = ("in/s", "out/s", "useful", "waits", "queued", "lag", "state", "p50/p99 ms")
    table = DataTable("worker", *numbers[:3], "", *numbers[3:], right=numbers)
    for f in figures:
        lag = "-" if f.watermark is None or newest is None else f"{(newest - f.watermark) / 1e6:.1f} s"
        latency = "-" if f.latency_ms is None else f"{f.latency_ms[0]:.1f}/{f.latency_ms[1]:.1f}"
        rates = (short_number(f.rows_in_per_second), short_number(f.rows_out_per_second), f"{f.useful_share:.0%}", bar(f.useful_share, 8))
        table.row(f.worker, *rates, f"{f.backpressure:.0%}", str(f.queued_batches), lag, short_bytes(f.state_bytes), latency)
    return table


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
