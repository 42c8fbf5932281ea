"""What has happened to a job since its coordinator began: counters and distributions, for Prometheus.

Invariant: what views repeat counts once. So the tally is right if views overlap, and no gap between them is longer than what the job
remembers.

>>> durations = Distribution((0.1, 1.0))
>>> durations.add([0.05, 0.5, 0.5, 7.0])
>>> durations.buckets()
[('0.1', 1), ('1.0', 3), ('+Inf', 4)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ...engine.protocol.ids import WorkerId
from ...scheduler.policies.controller import UNDER_WAY
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.reports import CheckpointState
from ...scheduler.protocol.view import JobView
from .downtime import Downtime
from .once import Once

LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
DURATIONS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

OUTCOMES = {"carried": "carried out", "refused": "refused", "advised": "advised", "nothing": "nothing to do"}
"""What becomes of a decision, by the first word in which its record tells that."""

LATE = 3.0
"""Seconds for which views overlap: windows and reports come to the coordinator some time after their end."""


class Distribution:
    """How many values were at most each of the `bounds`, and the sum of all; in seconds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self.sum = 0.0

    def add(self, values: Iterable[float]) -> None:
        """Add them."""
        given = np.fromiter(values, np.float64)
        self._counts += np.bincount(np.searchsorted(self._bounds, given), minlength=len(self._counts))
        self.sum += float(given.sum())

    def buckets(self) -> list[tuple[str, int]]:
        """Each bound, as Prometheus names it, with the number of values up to it."""
        return list(zip([*map(str, self._bounds), "+Inf"], np.cumsum(self._counts).tolist(), strict=True))


class Tally:
    """Of one job. `latencies` and `migration_seconds` are by operator; `ended` counts reports by kind, operator and state, `decisions`
    those of scaling policies by policy and outcome.
    """

    def __init__(self) -> None:
        self.since = 0.0
        """The time from which on the next view is needed."""
        self.state: JobState | None = None
        self.restarts = 0
        """The number of times that the job was restored from its last checkpoint."""
        self.checkpoint_age = 0.0
        """Seconds since the newest complete checkpoint or, before the first, since the first view."""
        self._completed_at: float | None = None
        self.latencies: dict[str, Distribution] = {}
        self.migration_seconds: dict[str, Distribution] = {}
        self.checkpoint_seconds, self.recovery_seconds = Distribution(DURATIONS), Distribution(DURATIONS)
        self.ended: Counter[tuple[str, str, str]] = Counter()
        self.decisions: Counter[tuple[str, str]] = Counter()
        self._windows: dict[WorkerId, float] = {}
        """When the newest counted window of each worker began."""
        self._once, self._downtime = Once(), Downtime()

    def add(self, view: JobView) -> None:
        """What a view tells, as far as it is new."""
        self.since, self.state, self.restarts = view.now - LATE, view.status.state, view.status.restarts
        complete = [one for one in view.checkpoints if one.state is CheckpointState.COMPLETE]
        ends = [one.began_at + (one.seconds or 0.0) for one in complete if one.began_at is not None]
        self._completed_at = max([view.now if self._completed_at is None else self._completed_at, *ends])
        self.checkpoint_age = max(0.0, view.now - self._completed_at)
        self._add_windows(view)
        self._once.begin()
        for report in view.checkpoints:
            if self._once.is_newly_over("checkpoint", report):
                self.ended["checkpoint", "", report.state.value] += 1
                self.checkpoint_seconds.add([report.seconds or 0.0])
        for migration in view.migrations:
            if self._once.is_newly_over("migration", migration):
                self.ended["migration", migration.operator, migration.state.value] += 1
                self.migration_seconds.setdefault(migration.operator, Distribution(DURATIONS)).add([migration.seconds or 0.0])
        for scaling in view.scalings:
            if self._once.is_newly_over("scaling", scaling):
                self.ended["scaling", scaling.operator, scaling.state.value] += 1
        for decision in view.decisions:
            if decision.done != UNDER_WAY and self._once.is_new("decision", decision.time):
                self.decisions[decision.policy, OUTCOMES.get(decision.done.split(maxsplit=1)[0].rstrip(":"), "other")] += 1

    def passes(self, state: JobState, now: float) -> None:
        """The job is in this state at time `now`; asked often enough to see every restart."""
        recovery = self._downtime.passes(state, now)
        if recovery is not None:
            begin, end = recovery
            self.recovery_seconds.add([end - begin])

    def _add_windows(self, view: JobView) -> None:
        stages = {worker: stage.name for stage in view.stages for worker in stage.workers}
        for window in view.windows:
            if window.worker in stages and window.start > self._windows.get(window.worker, float("-inf")):
                self._windows[window.worker] = window.start
                if window.latencies:
                    found = self.latencies.setdefault(stages[window.worker], Distribution(LATENCIES))
                    found.add(latency / 1000 for latency in window.latencies)
        self._windows = {worker: start for worker, start in self._windows.items() if worker in stages}
