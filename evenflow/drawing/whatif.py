"""Tables of what policies would have done over the time of a recording."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType

from ..recording.whatif import WouldMove, WouldScale
from ..scheduler.policies.dataflow.demand import offered
from ..scheduler.policies.dataflow.snapshot import DataflowSnapshot
from .reports import clock
from .terminal import DataTable, lines


def would_scale_table(rows: Iterable[WouldScale], policy: str, began: float) -> RenderableType:
    """A line for each stretch of time in which the policy would have said the same; times are seconds since the recording began."""
    table = DataTable("from", "to", "looks", "demand/s", "workers", policy, right=("from", "to", "looks", "demand/s"), title=_title(policy))
    why = []
    for row in rows:
        seen, decided = row.last.seen, row.last.changes or "no change"
        workers = ", ".join(f"{name} {count}" for name, count in seen.parallelism.items())
        table.row(f"{row.begin - began:.0f} s", f"{row.end - began:.0f} s", str(row.looks), f"{_demand(seen):.4g}", workers, decided)
        if row.last.decided.reason:
            why.append(f"{row.begin - began:.0f} s: {row.last.decided.reason}")
    if not table.row_count:
        return lines([f"{policy} would not have been asked: an autoscaler waits until nothing has moved for its warm-up and its interval"])
    return Group(table, lines(why))


def would_move_table(rows: Iterable[WouldMove], policy: str, began: float) -> RenderableType:
    """A line for each moment: the load then, the floor, and what the balancer would have come to by which moves."""
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
    return f"what {policy} would have done; what it would have changed did not come about: it saw what was"


def _demand(seen: DataflowSnapshot) -> float:
    return sum(offered(seen.operator(name)) or 0.0 for name in seen.sources)
