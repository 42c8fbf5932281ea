"""Draws the decisions that policies would have made over the time of a recording."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType

from ..recording.whatif import WouldMove, WouldScale
from ..scheduler.policies.dataflow.demand import offered
from ..scheduler.policies.dataflow.snapshot import DataflowSnapshot
from .console import DataTable, lines
from .units import clock


def would_scale_table(rows: Iterable[WouldScale], policy: str, began: float) -> RenderableType:
    """Draw a row for each span of time with the same decision; times are seconds since the recording began."""
    table = DataTable("from", "to", "looks", "demand/s", "workers", policy, right=("from", "to", "looks", "demand/s"), title=_title(policy))
    why = []
    for row in rows:
        snapshot, decided = row.last.seen, row.last.changes or "no change"
        workers = ", ".join(f"{name} {count}" for name, count in snapshot.parallelism.items())
        table.row(f"{row.begin - began:.0f} s", f"{row.end - began:.0f} s", str(row.looks), f"{_demand(snapshot):.4g}", workers, decided)
        if row.last.decided.reason:
            why.append(f"{row.begin - began:.0f} s: {row.last.decided.reason}")
    if not table.row_count:
        return lines([f"{policy} would not have been asked: an autoscaler waits until nothing has changed for its warm-up and interval"])
    return Group(table, lines(why))


def would_move_table(rows: Iterable[WouldMove], policy: str, began: float) -> RenderableType:
    """Draw a row for each moment: its load, the floor, and the load and moves of the balancer's plan."""
    numbers = ("at", "max / mean", "floor", "after", "groups", "keys", "bytes")
    table = DataTable(*numbers[:1], "clock", *numbers[1:], "why", right=numbers, title=_title(policy))
    for row in rows:
        at = f"{row.time - began:.0f} s", clock(row.time)
        if row.plan is None:
            table.row(*at, "-", "-", "-", "-", "-", "-", row.problem)
            continue
        plan = row.plan
        groups = sum(move.group is not None for move in plan.moves)
        keys = len(plan.moves) - groups + len(plan.splits) + len(plan.gathers)
        loads = f"{plan.imbalance_before:.2f}", f"{plan.floor:.2f}", f"{plan.imbalance_after:.2f}"
        table.row(*at, *loads, str(groups), str(keys), f"{plan.state_bytes:,}", plan.reason)
    return table


def _title(policy: str) -> str:
    return f"{policy}, replayed on recorded data; its changes were not applied"


def _demand(snapshot: DataflowSnapshot) -> float:
    return sum(offered(snapshot.operator(name)) or 0.0 for name in snapshot.sources)
