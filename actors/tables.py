"""What a job's state and the changes of its workers look like for people.

>>> from ..scheduler.drawing import as_text
>>> from ..scheduler.job_effects import JobState
>>> from .supervisor import JobStatus
>>> print(as_text(status_table(JobStatus("words", JobState.RUNNING, None, ("read-0", "count-0"), 3, 1.25))))
         words
 ────────────────────────
 state        running
 running      1.2 s
 checkpoints  3
 workers      read-0
              count-0
 metrics      -
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..scheduler.drawing import DataTable, lines
from ..scheduler.placement import short

if TYPE_CHECKING:
    from .elastic import ScalingReport
    from .node_scaling import NodeScalingReport
    from .supervisor import JobStatus


def status_table(status: JobStatus) -> Table:
    """A job's state, a fact per line."""
    table = DataTable("", status.name)
    table.row("state", status.state.value)
    table.row("running", f"{status.running_seconds:.1f} s")
    table.row("checkpoints", str(status.completed_checkpoints))
    table.row("workers", "\n".join(f"{worker}{_place(worker, status)}" for worker in status.workers))
    if status.spares:
        table.row("warm spares", str(status.spares))
    table.row("metrics", status.metrics_url or "-")
    if status.error is not None:
        table.row("error", "\n".join([str(status.error), *getattr(status.error, "__notes__", ())]))
    return table


def scalings_table(reports: Sequence[ScalingReport]) -> RenderableType:
    """A scaling per line, the oldest first, and why each was made or could not be."""
    numbers = ("keys moved", "bytes", "seconds")
    table = DataTable("no.", "operator", "workers", "state", *numbers, right=("no.", "workers", *numbers), title="scalings")
    for report in reports:
        seconds = "-" if report.seconds is None else f"{report.seconds:.3f}"
        workers = f"{report.before} to {report.after}"
        moved = f"{report.keys_moved:,}", f"{report.state_bytes:,}"
        table.row(str(report.number), report.operator, workers, report.state.value, *moved, seconds)
    why = (f"{report.number}: {report.reason}" + (f"; {report.problem}" if report.problem is not None else "") for report in reports)
    return Group(table, lines(why))


def node_scalings_text(reports: Sequence[NodeScalingReport]) -> Text:
    """A sentence or two for each.

    >>> from .node_scaling import NodeScalingReport, NodeScalingState
    >>> report = NodeScalingReport(0, (), "ab12cd34ef", {"count": (3, 2)}, ("read-0",), "sums", NodeScalingState.DONE, 1.5)
    >>> print(node_scalings_text([report]))
    node ab12cd34 given back in 1.500 s: count 3 to 2 workers; read-0 went on elsewhere
    0: sums
    """
    found = []
    for report in reports:
        changes = [f"{operator} {before} to {after} workers" for operator, (before, after) in report.parallelism.items()]
        changes += [f"{', '.join(report.replaced)} went on elsewhere"] * bool(report.replaced)
        nodes = ", ".join(map(short, report.added)) if report.removed is None else short(report.removed)
        took = "" if report.seconds is None else f" in {report.seconds:.3f} s"
        found += [
            f"node {nodes} {'added' if report.removed is None else 'given back'}{took}: {'; '.join(changes)}",
            f"{report.number}: {report.reason}" + (f"; {report.problem}" if report.problem is not None else ""),
        ]
    return lines(found)


def _place(worker: str, status: JobStatus) -> str:
    """Its node, and the name of its process where that is another than its own."""
    place = status.places.get(worker)
    if place is None:
        return ""
    return f" on {short(place.node)}" + (f" ({place.process})" if place.process != worker else "")
