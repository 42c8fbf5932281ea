"""Describes operations of a job as spans of traces: one for each checkpoint, move of keys, scaling, upgrade and recovery that has ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...scheduler.job.view_cursor import ViewNews
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.failures import Failure
from ...scheduler.protocol.reports import (
    CheckpointReport,
    MigrationReport,
    NodeScalingReport,
    OperationReport,
    ScalingReport,
    UpgradeReport,
    UpgradeState,
)
from ...scheduler.protocol.view import JobView
from .downtime import Downtime

Attributes = Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event at `time`, in seconds since the epoch."""

    time: float
    name: str
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class JobSpan:
    """A span from `begin` to `end`, in seconds since the epoch. `problem`: why the operation failed, None if it succeeded."""

    name: str
    begin: float
    end: float
    attributes: Attributes = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    problem: str | None = None


class Spans:
    """The spans of one job, made of the news of its views and of its states."""

    def __init__(self) -> None:
        self._downtime = Downtime()
        self._recoveries: deque[tuple[float, float]] = deque()

    def note_state(self, state: JobState, now: float) -> None:
        """Note that the job's state has changed at time `now`. Any thread may call this while another calls `add`."""
        recovery = self._downtime.note_state(state, now)
        if recovery is not None:
            self._recoveries.append(recovery)

    def add(self, view: JobView, news: ViewNews) -> list[JobSpan]:
        """Return the spans of the operations that have ended since the last view."""
        kinds: dict[str, tuple[OperationReport, ...]] = {
            "checkpoint": news.checkpoints, "move": news.migrations, "scaling": news.scalings, "node scaling": news.node_scalings,
            "upgrade": news.upgrades,
        }  # fmt: skip
        recoveries = [self._recoveries.popleft() for _ in range(len(self._recoveries))]
        return [
            *(_span(kind, report) for kind, reports in kinds.items() for report in reports),
            *(_recovery(*times, view) for times in recoveries),
        ]


def _span(kind: str, report: OperationReport) -> JobSpan:
    begin = report.began_at or 0.0
    end = begin + (report.seconds or 0.0)
    facts: dict[str, str | int | float] = {"number": report.number, "state": report.state.value, "reason": report.reason, **_facts(report)}
    events = [] if report.problem is None else [SpanEvent(end, "problem", {"message": report.problem})]
    if isinstance(report, MigrationReport) and report.plan is not None:
        plan = report.plan
        expected = {"imbalance.before": plan.imbalance_before, "imbalance.after": plan.imbalance_after, "imbalance.floor": plan.floor}
        events.insert(0, SpanEvent(begin, "planned", expected))
    problem = None if report.state is UpgradeState.DONE else report.problem  # completed in spite of a failure of the job
    return JobSpan(f"evenflow {kind}", begin, end, facts, tuple(events), problem)


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
        case UpgradeReport():
            moved = {"keys": report.keys_moved, "bytes": report.state_bytes}
            return {"version": report.version, "operators": ", ".join(report.operators), "canary": report.canary, **moved}
        case NodeScalingReport():
            return {"changes": "; ".join(report.changes), "nodes": ", ".join(report.added) if report.removed is None else report.removed}
    return {}


def _recovery(begin: float, end: float, view: JobView) -> JobSpan:
    """Describe a recovery, with the failures that led to it."""
    failures = [failure for failure in view.failures if begin - 1.0 <= failure.time <= end]
    return JobSpan("evenflow recovery", begin, end, {"attempt": int(view.status.attempt)}, tuple(map(_failure, failures)))


def _failure(failure: Failure) -> SpanEvent:
    """Describe a failure by OpenTelemetry's names for an exception, without the record and its key."""
    return SpanEvent(
        failure.time, "exception", {"exception.type": failure.kind, "exception.message": failure.text, "operator": failure.operator}
    )
