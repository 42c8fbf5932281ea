"""The display of the second act: each worker's key groups, loads compared with the floor, decisions; at the end a table by
seconds.
"""

from __future__ import annotations

import time
from contextlib import suppress

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table

import evenflow as ef
from evenflow.drawing.heat import heat_table
from evenflow.drawing.timeline import decision_lines
from evenflow.drawing.top import headline
from evenflow.ui.watch import Seen, Watch

from .report import CONSOLE
from .storm import Phase

OPERATOR = "totals"
EVERY = 1.0
SPAN = 4
"""The seconds of a line of the table at the end."""

WINDOWS = 6


def follow(job: ef.Job) -> Seen | None:
    """Show the job until it has ended; return the last view, None if there is none."""
    watch, seen = Watch(job), None
    with Live(console=CONSOLE, auto_refresh=False) as live:
        while not job.status().state.final:
            with suppress(ef.JobError):  # the job is just ending: keep the last view
                seen = watch.look()
                live.update(_frame(job, seen), refresh=True)
            time.sleep(EVERY)
    return seen


def _frame(job: ef.Job, seen: Seen) -> RenderableType:
    (stage,) = (stage for stage in seen.view.stages if stage.name == OPERATOR)
    text = seen.told["loads"].get(OPERATOR, {}).get("text", "")
    heat = heat_table(stage, seen.view.windows, job.load(OPERATOR, windows=WINDOWS), text)
    return Group(headline(seen.view.status), heat, "", decision_lines(seen.told["decisions"], 3), "")


def show_seconds(seen: Seen, story: tuple[Phase, ...]) -> None:
    """Print a line for every few seconds: input, load of the workers, latency; then the decisions that changed something."""
    seconds = [second for second in seen.told["seconds"] if OPERATOR in second["stages"] and second["t"] <= seen.told["until"]]
    table = Table(title="Load and latency over time", title_justify="left")
    names = ("seconds", "phase", "rows/s", "workers", "max / mean", "p50 ms", "p99 ms")
    for name in names:
        table.add_column(name, justify="left" if name == "phase" else "right")
    for first in range(0, len(seconds), SPAN):
        part = seconds[first : first + SPAN]
        loads: dict[str, float] = {}
        for second in part:
            for worker, useful in second["stages"][OPERATOR]["workers"].items():
                loads[worker] = loads.get(worker, 0.0) + useful
        uneven = max(loads.values()) * len(loads) / sum(loads.values()) if sum(loads.values()) else 1.0
        rate = sum(second["stages"][OPERATOR]["rows"] for second in part) / len(part)
        p50, p99 = (max((s[name] for s in part if s[name] is not None), default=None) for name in ("p50", "p99"))
        table.add_row(
            f"{first}-{first + len(part)}",
            _phase(first, story),
            f"{rate:.0f}",
            str(len(loads)),
            f"{uneven:.2f}",
            *map(_milliseconds, (p50, p99)),
        )
    CONSOLE.print(table)
    CONSOLE.print("Decisions, reasons and outcomes:")
    CONSOLE.print(decision_lines([entry for entry in seen.told["decisions"] if entry["answer"] != "no"], 12))


def _phase(second: float, story: tuple[Phase, ...]) -> str:
    for phase in story:
        if second < phase.seconds:
            return phase.name
        second -= phase.seconds
    return "the rest"


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
