"""Draws a job's state.

>>> from .console import as_text
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

from rich.table import Table

from ..engine.protocol.ids import WorkerId
from ..scheduler.policies.nodes.placement import short
from ..scheduler.protocol.status import JobStatus
from .console import DataTable


def status_table(status: JobStatus) -> Table:
    """Draw a job's state, a row per fact."""
    table = DataTable("", status.name)
    table.row("state", status.state.value)
    table.row("running", f"{status.running_seconds:.1f} s")
    table.row("checkpoints", str(status.completed_checkpoints))
    if status.again:
        table.row("restarts", status.again.removeprefix(", "))
    if status.upgrade is not None:
        table.row("upgrade", str(status.upgrade).removeprefix("upgrade "))
    table.row("workers", "\n".join(f"{worker}{_place(worker, status)}" for worker in status.workers))
    if status.spares:
        table.row("warm spares", str(status.spares))
    table.row("metrics", status.metrics_url or "-")
    if status.other_waits:
        table.row("waits for", "\n".join(map(str, status.other_waits)))
    if status.advice is not None:
        table.row("advice", status.advice)
    if status.problems:
        table.row("problems", "\n".join(status.problems))
    if status.error is not None:
        table.row("error", "\n".join([str(status.error), *getattr(status.error, "__notes__", ())]))
    return table


def _place(worker: WorkerId, status: JobStatus) -> str:
    """Name the worker's node, and its process if its name isn't `JOB/WORKER`."""
    place = status.places.get(worker)
    if place is None:
        return ""
    own = f"{status.name}/"
    return f" on {short(place.node)}" + (f" ({place.process.removeprefix(own)})" if place.process != own + worker else "")
