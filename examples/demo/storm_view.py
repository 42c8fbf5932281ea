"""Shows the second act: the key groups of each worker, loads against the floor, decisions; at the end load and latency over time."""

from __future__ import annotations

import time
from contextlib import suppress

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table

import evenflow as ef
from evenflow.job import monitor_of
from evenflow.terminal.heat import heat_table
from evenflow.terminal.top import decision_lines, headline
from evenflow.views.history import History

from .report import CONSOLE
from .storm import Phase

OPERATOR = "totals"
EVERY = 1.0
SPAN = 4
"""The seconds of a line of the table at the end."""

WINDOWS = 6


def follow(job: ef.Job) -> History | None:
    """Show the job until it has ended; return its history, None if it was never seen."""
    monitor, history = monitor_of(job), None
    with Live(console=CONSOLE, auto_refresh=False) as live:
        while not monitor.ended:
            with suppress(ef.JobError):  # the job is just ending: keep the last view
                history = monitor.poll()
                live.update(_frame(history), refresh=True)
            time.sleep(EVERY)
    return history


def _frame(history: History) -> RenderableType:
    (stage,) = (stage for stage in history.view.stages if stage.name == OPERATOR)
    message = history.whole()
    text = message["loads"].get(OPERATOR, {}).get("text", "")
    heat = heat_table(stage, history.snapshots.operator_load(stage, WINDOWS), text)
    return Group(headline(history.view.status), heat, "", decision_lines(message["decisions"], 3), "")


def show_seconds(history: History, story: tuple[Phase, ...]) -> None:
    """Show a row for some seconds each: rows, load of the workers, latency; then the decisions that changed something."""
    message = history.whole()
    seconds = [second for second in message["seconds"] if OPERATOR in second["stages"] and second["t"] <= message["until"]]
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
    CONSOLE.print("Decisions, their reasons and their effects:")
    changes = [entry for entry in message["decisions"] if entry["answer"] != "no"]
    CONSOLE.print(decision_lines(changes, len(changes)))


def _phase(second: float, story: tuple[Phase, ...]) -> str:
    """Return the name of the phase; the last has no end."""
    for phase in story[:-1]:
        if second < phase.seconds:
            return phase.name
        second -= phase.seconds
    return story[-1].name


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
