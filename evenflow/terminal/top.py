"""The picture of a job that `evenflow top` shows: figures, heat, loads and decisions as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..scheduler.load.metrics import WorkerFigures
from ..scheduler.protocol.status import JobStatus
from ..views.history import History
from ..views.upgrades import upgrade_watched
from .console import DataTable, data, lines
from .heat import busiest, heat_table
from .metrics import lag, latency, newest_time
from .reports import versions_table
from .units import bar, clock, short_bytes, short_number

MOST_DECISIONS = 5
BAR = 4
WINDOWS = 5
"""The number of newest windows over which loads are shown."""

_ANSWERS = {"yes": "", "no": "(no) ", "failed": "(failed) "}


def frame(history: History) -> RenderableType:
    """Draw the newest view of a job."""
    view, message = history.view, history.whole()
    parts: list[RenderableType] = [headline(view.status), workers_table(history.snapshots.figures())]
    if (upgrade := upgrade_watched(view)) is not None:
        parts += ["", versions_table(upgrade.compared), ""]
    if message["graph"]["text"]:
        parts.append(data(message["graph"]["text"]))
    for stage in view.stages:
        if stage.table is not None:
            text = message["loads"][stage.name]["text"]
            parts += ["", heat_table(stage, history.snapshots.operator_load(stage, WINDOWS), text)]
    if message["decisions"]:
        parts += ["", Text("decisions", "bold"), decision_lines(message["decisions"], MOST_DECISIONS)]
    return Group(*parts)


def headline(status: JobStatus) -> Text:
    """Draw the job's name, state, time, checkpoints and restarts, its upgrade, advice, waits, and a line for each of its problems."""
    facts = f" {status.state.value}, {status.running_seconds:.0f} s, {status.completed_checkpoints} checkpoints"
    upgrade = [] if status.upgrade is None else [(f"\n{status.upgrade}", "cyan")]
    advice = [] if status.advice is None else [(f"\n{status.advice}", "cyan")]
    waits = [(f"\n{wait}", "yellow") for wait in status.other_waits]
    problems = [*status.problems, *([] if status.error is None else [f"error: {status.error}".partition("\n")[0]])]
    lines = *upgrade, *advice, *waits, *((f"\n{line}", "red") for line in problems)
    return Text.assemble((status.name, "bold"), facts, status.again, *lines)


def workers_table(figures: list[WorkerFigures]) -> Table:
    """Draw a row per worker with a bar for its useful time. `waits` is its backpressure; its lag is the distance from its event time to the
    newest of any worker. Of many workers the busiest are shown.
    """
    newest = newest_time(figures)
    numbers = ("in/s", "out/s", "useful", "waits", "lag", "state", "p50/p99 ms")
    table = DataTable("worker", *numbers[:3], "", *numbers[3:], right=numbers)
    for f in (figures[at] for at in busiest([f.useful_share for f in figures], table)):
        rates = (short_number(f.rows_in_per_second), short_number(f.rows_out_per_second), f"{f.useful_share:.0%}", bar(f.useful_share, BAR))
        table.row(f.worker, *rates, f"{f.backpressure:.0%}", lag(f, newest), short_bytes(f.state_bytes), latency(f))
    return table


def decision_lines(entries: Sequence[Mapping[str, Any]], most: int) -> Text:
    """Draw the newest `most` entries of a timeline, the oldest first. Entries that changed something precede those that didn't."""
    changes = [entry for entry in entries if entry["answer"] != "no"][-most:]
    looks = [entry for entry in entries if entry["answer"] == "no"]
    shown = [*looks[-(most - len(changes)) :], *changes] if len(changes) < most else changes
    return lines(line for entry in sorted(shown, key=lambda entry: entry["begin"]) for line in _entry_lines(entry))


def _entry_lines(entry: Mapping[str, Any]) -> Iterator[str]:
    origin = f"{entry['who']}, {entry['stage']}" if entry["stage"] else entry["who"]
    yield f"{clock(entry['begin'])} {origin}: {_ANSWERS[entry['answer']]}{entry['what']}"
    yield f"         {entry['reason']}"
    effects = [f"expected {entry['expected']}"] if entry["expected"] else []
    effects += [f"effect {entry['effect']}"] if entry["effect"] else []
    if effects:
        yield f"         {'; '.join(effects)}"
