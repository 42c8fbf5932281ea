"""Rebuilds what policies see of a job from its views: the same snapshots that its coordinator would make.

>>> snapshots = PolicySnapshots()
>>> snapshots.dataflow()
Traceback (most recent call last):
    ...
evenflow.engine.errors.SnapshotError: nothing is known of the job yet
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from ..balancer.base import Balancer, Limits
from ..balancer.plan import BalancePlan
from ..balancer.snapshot import LoadSnapshot
from ..engine.errors import RequestError, SnapshotError
from ..engine.protocol.ids import WorkerId
from ..scheduler.job.view_cursor import ViewCursor, ViewNews
from ..scheduler.load.load_snapshot import hash_of, load_snapshot
from ..scheduler.load.metrics import HISTORY, JobMetrics, OperatorLoad, WorkerFigures
from ..scheduler.load.window import WorkerWindow
from ..scheduler.policies.base import ScalingPolicy
from ..scheduler.policies.dataflow.observed import observed
from ..scheduler.policies.dataflow.snapshot import DataflowSnapshot
from ..scheduler.policies.nodes.node_plans import PlacedJob
from ..scheduler.policies.registry import named
from ..scheduler.protocol.effects import JobState
from ..scheduler.protocol.reports import OperationReport
from ..scheduler.protocol.view import JobView, StageView

SPARE = 5
"""Windows that are kept in addition to those that policies read."""


class PolicySnapshots:
    """The snapshots of one job; `add` its views in order. `quiet_since`: the time at which its workers and keys changed last."""

    def __init__(self) -> None:
        self._cursor = ViewCursor()
        self._view: JobView | None = None
        self._metrics = JobMetrics({})
        self.quiet_since = float("-inf")

    def add(self, view: JobView) -> ViewNews:
        """Add the job's next view; return its news."""
        news = self._cursor.advance(view)
        if self._view is None:
            self._metrics = JobMetrics({}, _needed(view))
        self._metrics.follow({worker: stage.name for stage in view.stages for worker in stage.workers})
        for window in news.windows:
            self._metrics.add(window)
        before, self._view = self._view, view
        if before is None:
            self.quiet_since = view.now - view.status.running_seconds
        if view.status.state is not JobState.RUNNING or (before is not None and before.status.attempt != view.status.attempt):
            self.quiet_since = view.now
        self._note((*view.migrations, *view.scalings, *view.node_scalings, *view.upgrades), view.now)
        return news

    @property
    def since(self) -> float:
        """The time from which the next view has to report, in seconds since the epoch."""
        return self._cursor.since

    @property
    def has_view(self) -> bool:
        """True after the first view."""
        return self._view is not None

    @property
    def view(self) -> JobView:
        """The newest view. Raises SnapshotError before the first."""
        if self._view is None:
            raise SnapshotError("nothing is known of the job yet")
        return self._view

    @property
    def keyed(self) -> tuple[StageView, ...]:
        """The operators whose keys can move."""
        return tuple(stage for stage in self.view.stages if stage.table is not None)

    def keyed_stage(self, operator: str | None) -> StageView:
        """Return the stage with keyed state that runs an operator; without a name, the only one. Raises RequestError, naming them."""
        named = [stage for stage in self.keyed if operator is None or operator in (stage.name, *stage.operators)]
        if len(named) == 1:
            return named[0]
        there = ", ".join(stage.name for stage in self.keyed) or "none"
        problem = "name the operator" if operator is None else f"the job has no operator `{operator}` with keyed state"
        raise RequestError(f"{problem}: operators with keyed state are {there}")

    def operator_load(self, stage: StageView, windows: int) -> OperatorLoad:
        """Return a stage's load over its newest `windows`, as `job.load` does."""
        load = self._metrics.load(stage.name, windows)
        splits = {} if stage.table is None else stage.table.splits
        split = tuple(key for key, _ in load.hot_keys if hash_of(key) in splits) if splits else ()
        return replace(load, can_split=bool(stage.dealable), split=split)

    def load(self, operator: str | None) -> LoadSnapshot:
        """Return an operator's load, as `job.snapshot` does."""
        stage = self.keyed_stage(operator)
        assert stage.table is not None
        windows = [self._metrics.complete(worker, self.view.plan_windows) for worker in stage.workers]
        return load_snapshot(windows, stage.table, stage.dealable)

    def plan(self, operator: str | None, balancer: Balancer) -> BalancePlan:
        """Plan the moves of `job.rebalance`, without moving anything."""
        return balancer.plan(self.load(operator), Limits(split_keys=self.view.split_hot_keys))

    def figures(self) -> list[WorkerFigures]:
        """Return every worker's figures, as `job.metrics` does, with totals since the first view."""
        return self._metrics.workers()

    def dataflow(self) -> DataflowSnapshot:
        """Return the whole dataflow over the newest interval of the scaling policy, without windows from before the last change.

        Raises SnapshotError if a worker has reported nothing since.
        """
        view, settings = self.view, self.view.policy_settings
        windows = {worker: self._fresh(worker, settings.interval_s) for stage in view.stages for worker in stage.workers}
        silent = [worker for worker, found in windows.items() if not found]
        if silent:
            raise SnapshotError(f"{silent[0]} has reported nothing since the last change of workers or keys: take a later time")
        return observed([stage.scaled for stage in view.stages if stage.scaled is not None], windows, settings)

    def policy(self, name: str, changed: Mapping[str, Any] | None = None) -> ScalingPolicy[Any]:
        """Return the scaling policy of that name, with the job's settings for it, except for those in `changed`.

        Raises RequestError for an unknown policy or setting, FlowError for an impossible value.
        """
        return named(name, **{**self.view.own_settings.get(name, {}), **(changed or {})})

    def placed(self) -> PlacedJob:
        """Return the job and its nodes, as the coordinator plans with them. Raises RequestError for a job without nodes."""
        view = self.view
        if view.cluster is None:
            raise RequestError(f"job `{view.status.name}` runs in one process and has no nodes: run it on Ray")
        windows = {worker: self._metrics.history(worker)[-view.plan_windows :] for stage in view.stages for worker in stage.workers}
        stages = [stage.scaled for stage in view.stages if stage.scaled is not None]
        return PlacedJob(view.status.name, stages, windows, view.policy_settings, view.cluster, view.worker_cpus, view.saves_state)

    def _fresh(self, worker: WorkerId, interval: float) -> list[WorkerWindow]:
        since = [window for window in self._metrics.history(worker) if window.start >= self.quiet_since]
        length = 0.0
        for first in range(len(since) - 1, -1, -1):
            length += since[first].length
            if length >= interval:
                return since[first:]
        return since

    def _note(self, reports: Iterable[OperationReport], now: float) -> None:
        for report in reports:
            if report.began_at is not None:
                ended = now if report.seconds is None else report.began_at + report.seconds
                self.quiet_since = max(self.quiet_since, ended)


def _needed(view: JobView) -> int:
    """Return the number of windows of a worker that policies read; a coordinator keeps more, but a page follows many jobs."""
    shortest = min((window.length for window in view.windows if window.length > 0), default=1.0)
    return min(HISTORY, max(view.plan_windows, ceil(view.policy_settings.interval_s / shortest)) + SPARE)
