"""What a job's figures look like for people: load with bars, migrations, as tables that rich prints or as plain text.

>>> bar(0.5, 8), bar(2.0, 4), bar(0.0, 4)
('████', '████', '')
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table

from .checkpoints import CheckpointReport
from .metrics import OperatorLoad
from .migration import MigrationReport, MigrationState

WIDTH = 110
MOST_KEYS = 8
MOST_GROUPS = 8

_SHORT = ("no.", "operator", "strategy", "state", "steps", "keys moved", "bytes", "seconds", "p50/p99 ms")
_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int = 24) -> str:
    """A bar of `share` of `width` characters, to an eighth of a character; what is above 1 is cut off."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def as_text(renderable: RenderableType) -> str:
    """As plain text without colours."""
    console = Console(file=StringIO(), width=WIDTH, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(renderable, highlight=False)
    return captured.get().rstrip("\n")


def load_table(load: OperatorLoad) -> RenderableType:
    """How an operator's load is shared out: workers, hottest key groups and keys, imbalance beside its floor."""
    return Group(worker_table(load), _groups_and_keys(load))


def worker_table(load: OperatorLoad) -> Table:
    """A worker per line; the bar is its part of the hottest worker's load."""
    even = f"imbalance {load.imbalance:.2f}, floor {load.floor:.2f}"
    table = Table(title=f"load of {len(load.workers)} workers: {even}", title_justify="left")
    table.add_column("worker")
    for column in ("useful", "share", "of the mean"):
        table.add_column(column, justify="right")
    table.add_column("", min_width=24)
    total, hottest = sum(load.workers.values()), max(load.workers.values(), default=0.0)
    for worker, useful in load.workers.items():
        share = useful / total if total else 0.0
        figures = (f"{useful:.1%}", f"{share:.1%}", f"{share * len(load.workers):.2f}")
        table.add_row(worker, *figures, bar(useful / hottest if hottest else 0.0))
    return table


def keys_of(load: OperatorLoad) -> str:
    """The hottest keys with their part of the records, in one line.

    >>> keys_of(OperatorLoad({}, {}, (("JFK", 30), ("LAX", 5)), 100))
    'JFK 30.0%, LAX 5.0%'
    """
    records = max(load.records, 1)
    return ", ".join(f"{key} {count / records:.1%}" for key, count in load.hot_keys[:MOST_KEYS])


def migrations_table(reports: Sequence[MigrationReport]) -> RenderableType:
    """A migration per line, the oldest first, and why each was made."""
    table = Table(title="migrations", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in _SHORT:
        table.add_column(column, justify="left" if column in ("operator", "strategy", "state") else "right")
    for report in reports:
        facts = dict(migration_facts(report))
        table.add_row(*(facts[column] for column in _SHORT))
    return Group(table, *(f"{report.number}: {report.reason}" for report in reports))


def checkpoints_table(reports: Sequence[CheckpointReport]) -> RenderableType:
    """A checkpoint per line, the oldest first, and why one failed, or what it waits for."""
    table = Table(title="checkpoints", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("no.", "state", "seconds", "keys", "bytes saved", "bytes of state"):
        table.add_column(column, justify="left" if column == "state" else "right")
    for report in reports:
        taken = "-" if report.seconds is None else f"{report.seconds:.3f}"
        figures = f"{report.keys:,}", f"{report.saved_bytes:,}", f"{report.state_bytes:,}"
        table.add_row(str(report.number), report.state.value, taken, *figures)
    return Group(table, *(str(report) for report in reports if report.problem is not None or report.waits_for))


def migration_table(report: MigrationReport) -> Table:
    """One migration, a fact per line."""
    table = Table("migration", str(report.number))
    for name, value in migration_facts(report)[1:]:
        table.add_row(name, value)
    if report.plan is not None:
        plan = report.plan
        table.add_row("plan", f"imbalance {plan.imbalance_before:.2f} to {plan.imbalance_after:.2f}, floor {plan.floor:.2f}")
    return table


def migration_facts(report: MigrationReport) -> list[tuple[str, str]]:
    """Names and values of what a migration's report says."""
    latency = "-" if report.latency_ms is None else f"{report.latency_ms[0]:.1f}/{report.latency_ms[1]:.1f}"
    steps = f"{report.steps}" if report.state is MigrationState.DONE else f"{report.steps_done} of {report.steps}"
    return [
        ("no.", str(report.number)),
        ("operator", report.operator),
        ("strategy", report.strategy),
        ("state", report.state.value),
        ("steps", steps),
        ("groups", str(report.groups)),
        ("routes", str(report.routed_keys)),
        ("keys moved", f"{report.keys_moved:,}"),
        ("bytes", f"{report.state_bytes:,}"),
        ("seconds", "-" if report.seconds is None else f"{report.seconds:.3f}"),
        ("p50/p99 ms", latency),
        ("why", report.reason),
    ]


def _groups_and_keys(load: OperatorLoad) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    hottest = sorted(load.groups.items(), key=lambda item: -item[1])[:MOST_GROUPS]
    table.add_row("hottest groups", ", ".join(f"{group} {useful:.1%}" for group, useful in hottest) or "-")
    table.add_row("hottest keys", keys_of(load) or "-")
    return table
