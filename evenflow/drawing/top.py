"""The view of a job that `evenflow top` shows: the page's views as text."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..scheduler.load.metrics import OperatorLoad, WorkerFigures
from ..scheduler.protocol.status import JobStatus
from ..ui.watch import Seen
from .heat import heat_table
from .metrics import lag, latency, newest_time
from .terminal import DataTable, data
from .timeline import decision_lines
from .units import bar, short_bytes, short_number

MOST_DECISIONS = 5
BAR = 4


def frame(seen: Seen, figures: list[WorkerFigures], loads: Mapping[str, OperatorLoad]) -> RenderableType:
    """The view of a job that was just looked at; `loads` are those of the operators with keys."""
    view, told = seen.view, seen.told
    problems = [Text(problem, "red") for problem in view.status.problems]
    parts: list[RenderableType] = [headline(view.status), *problems, workers_table(figures)]
    if told["graph"]["text"]:
        parts.append(data(told["graph"]["text"]))
    for stage in view.stages:
        if stage.name in loads:
            parts += ["", heat_table(stage, view.windows, loads[stage.name], told["loads"].get(stage.name, {}).get("text", ""))]
    if told["decisions"]:
        parts += ["", Text("decisions", "bold"), decision_lines(told["decisions"], MOST_DECISIONS)]
    return Group(*parts)


def headline(status: JobStatus) -> Text:
    """The job's name, state, time, checkpoints and restarts, and a line for each of its problems."""
    facts = f" {status.state.value}, {status.running_seconds:.0f} s, {status.completed_checkpoints} checkpoints"
    told = [*status.problems, *([] if status.error is None else [f"error: {status.error}".partition("\n")[0]])]
    return Text.assemble((status.name, "bold"), facts, status.again, *((f"\n{line}", "red") for line in told))


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
