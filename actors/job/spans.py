"""Events of a job as spans of traces: one for each checkpoint, move of keys, scaling and recovery that has ended.

Invariant: each is reported once, though views repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.failures import Failure
from ...scheduler.protocol.reports import CheckpointReport, MigrationReport, NodeScalingReport, OperationReport, ScalingReport
from ...scheduler.protocol.view import JobView
from .downtime import Downtime
from .once import Once

Attributes = Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event at `time`, in seconds since the epoch."""

    time: float
    name: str
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class JobSpan:
    """A span. `begin`, `end`: seconds since the epoch. `problem`: why its subject has failed, None if it has not."""

    name: str
    begin: float
    end: float
    attributes: Attributes = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    problem: str | None = None


class Spans:
    """The spans of one job: `add` its views in order, and let its state pass."""

    def __init__(self) -> None:
        self._once, self._downtime = Once(), Downtime()
        self._recoveries: list[tuple[float, float]] = []

    def passes(self, state: JobState, now: float) -> None:
        """Record the job's state at time `now`; must be called often enough to see every restart."""
        recovery = self._downtime.passes(state, now)
        if recovery is not None:
            self._recoveries.append(recovery)

    def add(self, view: JobView) -> list[JobSpan]:
        """Return spans of everything that has ended since the previous view."""
        self._once.begin()
        kinds = {"checkpoint": view.checkpoints, "move": view.migrations, "scaling": view.scalings, "node scaling": view.node_scalings}
        over = [(kind, report) for kind, reports in kinds.items() for report in reports if self._once.is_newly_over(kind, report)]
        recoveries, self._recoveries = self._recoveries, []
        return [*(_span(kind, report) for kind, report in over), *(_recovery(*times, view) for times in recoveries)]


def _span(kind: str, report: OperationReport) -> JobSpan:
    begin = report.began_at or 0.0
    end = begin + (report.seconds or 0.0)
    facts: dict[str, str | int | float] = {"number": report.number, "state": report.state.value, "reason": report.reason, **_facts(report)}
    events = [] if report.problem is None else [SpanEvent(end, "problem", {"message": report.problem})]
    if isinstance(report, MigrationReport) and report.plan is not None:
        plan = report.plan
        expected = {"imbalance.before": plan.imbalance_before, "imbalance.after": plan.imbalance_after, "imbalance.floor": plan.floor}
        events.insert(0, SpanEvent(begin, "planned", expected))
    return JobSpan(f"evenflow {kind}", begin, end, facts, tuple(events), report.problem)


def _facts(report: OperationReport) -> Attributes:
    match report:
        case CheckpointReport():
            return {"keys": report.keys, "bytes": report.saved_bytes, "state_bytes": report.state_bytes}
        case MigrationReport():
            moved = {"keys": report.keys_moved, "bytes": report.state_bytes, "key_groups": report.groups, "steps": report.steps_done}
            return {"operator": report.operator, "strategy": report.strategy, **moved}
        case ScalingReport():
            workers = {"workers.before": report.before, "workers.after": report.after}
            return {"operator": report.operator, "keys": report.keys_moved, "bytes": report.state_bytes, **workers}
        case NodeScalingReport():
            return {"changes": "; ".join(report.changes), "nodes": ", ".join(report.added) if report.removed is None else report.removed}
    return {}


def _recovery(begin: float, end: float, view: JobView) -> JobSpan:
    """Return a recovery's span with the failures since the previous one had ended."""
    failures = [failure for failure in view.failures if begin - 1.0 <= failure.time <= end]
    return JobSpan("evenflow recovery", begin, end, {"attempt": int(view.status.attempt)}, tuple(map(_failure, failures)))


def _failure(failure: Failure) -> SpanEvent:
    """Return a failure by OpenTelemetry's names for an exception, without the record and its key."""
    return SpanEvent(
        failure.time, "exception", {"exception.type": failure.kind, "exception.message": failure.text, "operator": failure.operator}
    )
