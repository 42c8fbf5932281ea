"""Draws tables of a job's operations and their reasons: checkpoints, migrations, scalings, nodes, decisions of scaling policies."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from ..scheduler.policies.canary import StageComparison
from ..scheduler.policies.controller import DecisionRecord
from ..scheduler.policies.nodes.placement import short
from ..scheduler.protocol.changed_settings import SettingChange
from ..scheduler.protocol.reports import (
    CheckpointReport,
    MigrationReport,
    MigrationState,
    NodeScalingReport,
    OperationReport,
    ScalingReport,
    UpgradeReport,
)
from .console import DataTable, lines
from .units import clock

_SHORT = ("no.", "operator", "strategy", "state", "steps", "keys moved", "bytes", "seconds", "p50/p99 ms")


def checkpoints_table(reports: Sequence[CheckpointReport]) -> RenderableType:
    """Draw a row per checkpoint, the oldest first, and a sentence about each that failed or waits for workers."""
    numbers = ("seconds", "keys", "bytes saved", "bytes of state")
    table = DataTable("no.", "began", "state", *numbers, right=("no.", *numbers), title="checkpoints")
    for report in reports:
        figures = f"{report.keys:,}", f"{report.saved_bytes:,}", f"{report.state_bytes:,}"
        table.row(str(report.number), clock(report.began_at), report.state.value, _duration(report), *figures)
    return Group(table, lines(str(report) for report in reports if report.problem is not None or report.waits_for))


def migrations_table(reports: Sequence[MigrationReport]) -> RenderableType:
    """Draw a row per migration, the oldest first, with its reason."""
    table = DataTable(*_SHORT, right=[column for column in _SHORT if column not in ("operator", "strategy", "state")], title="migrations")
    for report in reports:
        facts = dict(migration_facts(report))
        table.row(*(facts[column] for column in _SHORT))
    return Group(table, lines(map(_story, reports)))


def migration_table(report: MigrationReport) -> Table:
    """Draw one migration, a row per fact."""
    table = DataTable("migration", str(report.number))
    for name, value in migration_facts(report)[1:]:
        table.row(name, value)
    if report.plan is not None:
        plan = report.plan
        table.row("plan", f"imbalance {plan.imbalance_before:.2f} to {plan.imbalance_after:.2f}, floor {plan.floor:.2f}")
        for split in plan.splits:
            workers = ", ".join(map(str, sorted((split.home, *split.others))))
            table.row("split", f"{split.key!r} over workers {workers}, {split.dealt} is dealt")
        for key in plan.gathers:
            table.row("split no longer", repr(key))
    return table


def upgrades_table(reports: Sequence[UpgradeReport]) -> RenderableType:
    """Draw a row per upgrade, the oldest first, with its reason, and what both versions did side by side in the newest."""
    numbers = ("version", "keys moved", "bytes", "seconds")
    table = DataTable("no.", "operators", "state", *numbers, right=("no.", *numbers), title="upgrades")
    for report in reports:
        figures = str(report.version), f"{report.keys_moved:,}", f"{report.state_bytes:,}", _duration(report)
        table.row(str(report.number), ", ".join(report.operators), report.state.value, *figures)
    stories = lines(str(report) for report in reports if report.problem is not None)
    compared = [versions_table(reports[-1].compared)] if reports and reports[-1].compared else []
    return Group(table, stories, *compared)


def versions_table(compared: Sequence[StageComparison]) -> RenderableType:
    """Draw what the old and the new code of each operator did with their records, side by side."""
    numbers = ("rows", "errors", "rows out per row", "microseconds per row", "bytes of state")
    table = DataTable("operator", "code", *numbers, right=numbers, title="old and new code side by side")
    for one in compared:
        for name, figures in (("old", one.old), ("new", one.new)):
            selectivity = "-" if figures.selectivity is None else f"{figures.selectivity:.3f}"
            microseconds = "-" if figures.microseconds is None else f"{figures.microseconds:.1f}"
            table.row(one.operator, name, f"{figures.rows:,}", f"{figures.errors:,}", selectivity, microseconds, f"{figures.state_bytes:,}")
    return table


def migration_facts(report: MigrationReport) -> list[tuple[str, str]]:
    """List the names and values of the facts in a migration's report."""
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
        ("seconds", _duration(report)),
        ("p50/p99 ms", latency),
        ("began", clock(report.began_at)),
        ("why", report.why),
    ]


def scalings_table(reports: Sequence[ScalingReport]) -> RenderableType:
    """Draw a row per scaling, the oldest first, with its reason and its problem."""
    numbers = ("keys moved", "bytes", "seconds")
    table = DataTable("no.", "operator", "workers", "state", *numbers, right=("no.", "workers", *numbers), title="scalings")
    for report in reports:
        seconds = _duration(report)
        workers = f"{report.before} to {report.after}"
        moved = f"{report.keys_moved:,}", f"{report.state_bytes:,}"
        table.row(str(report.number), report.operator, workers, report.state.value, *moved, seconds)
    return Group(table, lines(map(_story, reports)))


def node_scalings_table(reports: Sequence[NodeScalingReport]) -> RenderableType:
    """Draw a row per change of nodes, the oldest first, with its changes and its reason."""
    table = DataTable("no.", "nodes", "state", "workers", "seconds", right=("no.", "seconds"), title="node scalings")
    for report in reports:
        nodes = (
            (", ".join(map(short, report.added)) or "none") + " added" if report.removed is None else f"{short(report.removed)} given back"
        )
        table.row(str(report.number), nodes, report.state.value, "\n".join(report.changes) or "-", _duration(report))
    return Group(table, lines(map(_story, reports)))


def decisions_table(decisions: Sequence[DecisionRecord]) -> RenderableType:
    """Draw a row per decision, the oldest first, with its input and reason."""
    table = DataTable("no.", "at", "policy", "decided", "done", right=("no.",), title="decisions")
    for number, record in enumerate(decisions):
        at = clock(record.time)
        table.row(str(number), at, record.policy, record.changes, record.done)
    why = (f"{number}: saw {record.saw}\n   {record.decided.reason}" for number, record in enumerate(decisions))
    return Group(table, lines(why))


def settings_table(changes: Sequence[SettingChange]) -> RenderableType:
    """Draw a row per changed setting, with its values before and after."""
    if not changes:
        return "no setting has another value than before"
    table = DataTable("setting", "before", "after", title="settings")
    for change in changes:
        table.row(change.setting, str(change.before), str(change.after))
    return table


def _duration(report: OperationReport) -> str:
    return "-" if report.seconds is None else f"{report.seconds:.3f}"


def _story(report: OperationReport) -> str:
    return f"{report.number}: {clock(report.began_at)} {report.why}"
