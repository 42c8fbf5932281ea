"""Finds what is new in the views of a job, which overlap.

Invariant: each window, and the end of each operation, is new exactly once, if no gap between two views is longer than the job's memory.

>>> from evenflow.scheduler.protocol.effects import JobState
>>> from evenflow.scheduler.protocol.status import JobStatus
>>> from evenflow.scheduler.protocol.view import StageView
>>> cursor = ViewCursor()
>>> status = JobStatus("shop", JobState.RUNNING, None, (WorkerId("read-0"),), 0, 0.0)
>>> stages = (StageView("read", ("read",), (WorkerId("read-0"),), (), is_source=True),)
>>> first, second, third = (WorkerWindow(WorkerId("read-0"), float(start), 1.0) for start in range(3))
>>> for now, windows in ((10.0, (first, second)), (11.0, (second, third))):
...     news = cursor.advance(JobView(now, status, stages, windows))
...     print([window.start for window in news.windows], cursor.since)
[0.0, 1.0] 7.0
[2.0] 8.0
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from ...engine.protocol.ids import WorkerId
from ..load.metrics import HISTORY
from ..load.window import WorkerWindow
from ..policies.controller import UNDER_WAY, DecisionRecord
from ..protocol.reports import CheckpointReport, MigrationReport, NodeScalingReport, OperationReport, ScalingReport, UpgradeReport
from ..protocol.view import JobView

OVERLAP = 3.0
"""Seconds by which views overlap: windows and reports reach the coordinator some time after their end."""

R = TypeVar("R", bound=OperationReport)


@dataclass(frozen=True, slots=True)
class ViewNews:
    """The news of one view: its new windows, the operations that have ended, and the decisions whose outcome is known."""

    windows: tuple[WorkerWindow, ...]
    checkpoints: tuple[CheckpointReport, ...]
    migrations: tuple[MigrationReport, ...]
    scalings: tuple[ScalingReport, ...]
    node_scalings: tuple[NodeScalingReport, ...]
    upgrades: tuple[UpgradeReport, ...]
    decisions: tuple[DecisionRecord, ...]


class ViewCursor:
    """A position in the views of one job. `since`: the time from which the next view has to report, in seconds since the epoch."""

    def __init__(self) -> None:
        self.since = 0.0
        self._starts: dict[WorkerId, dict[float, None]] = {}
        """The start times of each worker's newest windows, as many as the job remembers."""
        self._ended: set[Hashable] = set()
        """The operations and decisions that the last view reported as ended."""

    def advance(self, view: JobView) -> ViewNews:
        """Move to the next view; return what the earlier ones did not have."""
        self.since = view.now - OVERLAP
        before, self._ended = self._ended, set()
        return ViewNews(
            self._new_windows(view),
            self._newly_ended("checkpoint", view.checkpoints, before),
            self._newly_ended("migration", view.migrations, before),
            self._newly_ended("scaling", view.scalings, before),
            self._newly_ended("node scaling", view.node_scalings, before),
            self._newly_ended("upgrade", view.upgrades, before),
            tuple(one for one in view.decisions if one.done != UNDER_WAY and self._is_new(("decision", one.time), before)),
        )

    def _new_windows(self, view: JobView) -> tuple[WorkerWindow, ...]:
        self._starts = {worker: self._starts.get(worker, {}) for stage in view.stages for worker in stage.workers}
        new = []
        for window in view.windows:
            starts = self._starts.get(window.worker)
            if starts is not None and window.start not in starts:
                new.append(window)
                starts[window.start] = None
                if len(starts) > HISTORY:
                    del starts[next(iter(starts))]
        return tuple(new)

    def _newly_ended(self, kind: str, reports: Iterable[R], before: set[Hashable]) -> tuple[R, ...]:
        return tuple(one for one in reports if one.over and self._is_new((kind, one.number, one.began_at), before))

    def _is_new(self, name: Hashable, before: set[Hashable]) -> bool:
        self._ended.add(name)
        return name not in before
