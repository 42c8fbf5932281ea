"""Tables of the changes in a running job and their reasons: migrations, scalings, nodes, decisions of scaling policies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..scheduler.migration import MigrationReport, MigrationState
from ..scheduler.node_scaling import NodeScalingReport
from ..scheduler.operator_scaling import ScalingReport
from ..scheduler.scaling.controller import DecisionRecord
from .terminal import DataTable, lines

_SHORT = ("no.", "operator", "strategy", "state", "steps", "keys moved", "bytes", "seconds", "p50/p99 ms")


def migrations_table(reports: Sequence[MigrationReport]) -> RenderableType:
    """A migration per line, the oldest first, with its reason."""
    table = DataTable(*_SHORT, right=[column for column in _SHORT if column not in ("operator", "strategy", "state")], title="migrations")
    for report in reports:
        facts = dict(migration_facts(report))
        table.row(*(facts[column] for column in _SHORT))
    return Group(table, lines(f"{report.number}: {report.reason}" for report in reports))


def migration_table(report: MigrationReport) -> Table:
    """One migration, a fact per line."""
    table = DataTable("migration", str(report.number))
    for name, value in migration_facts(report)[1:]:
        table.row(name, value)
    if report.plan is not None:
        plan = report.plan
        table.row("plan", f"imbalance {plan.imbalance_before:.2f} to {plan.imbalance_after:.2f}, floor {plan.floor:.2f}")
    return table


def migration_facts(report: MigrationReport) -> list[tuple[str, str]]:
    """Names and values of the facts in a migration's report."""
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


def scalings_table(reports: Sequence[ScalingReport]) -> RenderableType:
    """A scaling per line, the oldest first, with its reason, or why it failed."""
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

    >>> from ..scheduler.node_scaling import NodeScalingState
    >>> report = NodeScalingReport(0, (), "ab12cd34ef", {"count": (3, 2)}, ("read-0",), "sums", NodeScalingState.DONE, 1.5)
    >>> print(node_scalings_text([report]))
    node ab12cd34 given back in 1.500 s: count 3 to 2 workers; read-0 went on elsewhere
    0: sums
    """
    return lines([str(report) for report in reports] or ["no node has come or gone"])


def decisions_table(decisions: Sequence[DecisionRecord]) -> RenderableType:
    """A decision per line, the oldest first, with its input and reason."""
    table = DataTable("no.", "at", "policy", "decided", "done", right=("no.",), title="decisions")
    for number, record in enumerate(decisions):
        at = f"{datetime.fromtimestamp(record.time, UTC).astimezone():%H:%M:%S}"
        table.row(str(number), at, record.policy, record.changes, record.done)
    why = (f"{number}: saw {record.saw}\n   {record.decided.reason}" for number, record in enumerate(decisions))
    return Group(table, lines(why))
