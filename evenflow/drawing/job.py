"""A job's state and its checkpoints as tables.

>>> from .terminal import as_text
>>> from ..scheduler.protocol.effects import JobState
>>> from ..scheduler.protocol.status import JobStatus
>>> print(as_text(status_table(JobStatus("words", JobState.RUNNING, None, ("read-0", "count-0"), 3, 1.25))))
             words
────────────────────
state        running
running      1.2 s
checkpoints  3
workers      read-0
             count-0
metrics      -
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from ..engine.protocol.ids import WorkerId
from ..scheduler.policies.nodes.placement import short
from ..scheduler.protocol.reports import CheckpointReport
from ..scheduler.protocol.status import JobStatus
from .reports import clock, taken
from .terminal import DataTable, lines


def status_table(status: JobStatus) -> Table:
    """A job's state, a fact per line."""
    table = DataTable("", status.name)
    table.row("state", status.state.value)
    table.row("running", f"{status.running_seconds:.1f} s")
    table.row("checkpoints", str(status.completed_checkpoints))
    if status.again:
        table.row("restarts", status.again.removeprefix(", "))
    table.row("workers", "\n".join(f"{worker}{_place(worker, status)}" for worker in status.workers))
    if status.spares:
        table.row("warm spares", str(status.spares))
    table.row("metrics", status.metrics_url or "-")
    if status.problems:
        table.row("problems", "\n".join(status.problems))
    if status.error is not None:
        table.row("error", "\n".join([str(status.error), *getattr(status.error, "__notes__", ())]))
    return table


def checkpoints_table(reports: Sequence[CheckpointReport]) -> RenderableType:
    """A checkpoint per line, the oldest first, and a sentence about each that failed or waits for workers."""
    numbers = ("seconds", "keys", "bytes saved", "bytes of state")
    table = DataTable("no.", "began", "state", *numbers, right=("no.", *numbers), title="checkpoints")
    for report in reports:
        figures = f"{report.keys:,}", f"{report.saved_bytes:,}", f"{report.state_bytes:,}"
        table.row(str(report.number), clock(report.began_at), report.state.value, taken(report), *figures)
    return Group(table, lines(str(report) for report in reports if report.problem is not None or report.waits_for))


def _place(worker: WorkerId, status: JobStatus) -> str:
    """The worker's node, and its process's name if that isn't `JOB/WORKER`."""
    place = status.places.get(worker)
    if place is None:
        return ""
    own = f"{status.name}/"
    return f" on {short(place.node)}" + (f" ({place.process.removeprefix(own)})" if place.process != own + worker else "")
