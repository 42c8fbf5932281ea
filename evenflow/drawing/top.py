"""The view of a job that `evenflow top` shows."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..scheduler.job.status import JobStatus
from ..scheduler.load.metrics import OperatorLoad, WorkerFigures
from ..scheduler.migration.migration import MigrationReport
from .changes import migrations_table
from .metrics import keys_of, lag, latency, newest_time
from .terminal import DataTable
from .units import bar, short_bytes, short_number

MOST_MIGRATIONS = 5
BAR = 4


def frame(
    status: JobStatus, figures: list[WorkerFigures], loads: Mapping[str, OperatorLoad], migrations: list[MigrationReport]
) -> RenderableType:
    """The view of these figures; `loads` are those of the operators with keys."""
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
    newest = newest_time(figures)
    numbers = ("in/s", "out/s", "useful", "waits", "lag", "state", "p50/p99 ms")
    table = DataTable("worker", *numbers[:3], "", *numbers[3:], right=numbers)
    for f in figures:
        rates = (short_number(f.rows_in_per_second), short_number(f.rows_out_per_second), f"{f.useful_share:.0%}", bar(f.useful_share, BAR))
        table.row(f.worker, *rates, f"{f.backpressure:.0%}", lag(f, newest), short_bytes(f.state_bytes), latency(f))
    return table
