"""Counts the events of a job since its coordinator began: counters and distributions for Prometheus.

>>> durations = Distribution((0.1, 1.0))
>>> durations.add([0.05, 0.5, 0.5, 7.0])
>>> durations.buckets()
[('0.1', 1), ('1.0', 3), ('+Inf', 4)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from ...engine.protocol.ids import FIRST_ATTEMPT, stage_of
from ...scheduler.job.view_cursor import ViewNews
from ...scheduler.load.source_lag import Lag, SourceLags
from ...scheduler.load.wait import WaitKind
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.reports import CheckpointState
from ...scheduler.protocol.view import JobView
from .downtime import Downtime

LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
DURATIONS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

OUTCOMES = {"carried": "carried out", "refused": "refused", "advised": "advised", "nothing": "nothing to do"}
"""The outcome of a decision, by the first word of the one that its record states."""


class Distribution:
    """Counts of values up to each of the `bounds`, and the sum of all values, in seconds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self.sum = 0.0

    def add(self, values: Iterable[float]) -> None:
        given = np.fromiter(values, np.float64)
        self._counts += np.bincount(np.searchsorted(self._bounds, given), minlength=len(self._counts))
        self.sum += float(given.sum())

    def buckets(self) -> list[tuple[str, int]]:
        """Return each bound, as Prometheus names it, with the number of values up to it."""
        return list(zip([*map(str, self._bounds), "+Inf"], np.cumsum(self._counts).tolist(), strict=True))


class Tally:
    """Counters of one job. `latencies` and `migration_seconds` are by operator; `ended` counts reports by kind, operator and state,
    `decisions` those of scaling policies by policy and outcome.
    """

    def __init__(self) -> None:
        self.state: JobState | None = None
        self.restarts: Mapping[str, int] = {}
        """The number of times that the job was restored from its last checkpoint, by cause."""
        self.no_progress_seconds = 0.0
        self.waits: Mapping[WaitKind, float] = {}
        """The seconds for which each cause of a standstill has lasted; 0.0 for the others."""
        self.source_lags: Mapping[str, Lag] = {}
        """The lag of each source that knows it, by operator."""
        self.checkpoint_age = 0.0
        """Seconds since the newest complete checkpoint or, before the first, since the first view."""
        self.checkpoint_interval: float | None = None
        """Seconds between two checkpoints by the job's settings, if it takes any before its end."""
        self._completed_at: float | None = None
        self.latencies: dict[str, Distribution] = {}
        self.migration_seconds: dict[str, Distribution] = {}
        self.checkpoint_size, self.checkpoint_saved = 0, 0
        """The bytes of the newest complete checkpoint, and those written for all so far."""
        self.checkpoint_seconds, self.recovery_seconds = Distribution(DURATIONS), Distribution(DURATIONS)
        self.ended: Counter[tuple[str, str, str]] = Counter()
        self.decisions: Counter[tuple[str, str]] = Counter()
        self._downtime = Downtime()
        self._lags, self._attempt = SourceLags(), FIRST_ATTEMPT

    def add(self, view: JobView, news: ViewNews) -> None:
        """Count the news of a view."""
        self.state, self.restarts = view.status.state, view.status.restart_causes
        self.no_progress_seconds = view.status.no_progress_seconds
        waits = view.status.waits_for
        self.waits = {kind: max((wait.seconds for wait in waits if wait.kind is kind), default=0.0) for kind in WaitKind}
        self.checkpoint_interval = view.checkpoint_interval
        self._measure_lags(view, news)
        complete = [one for one in view.checkpoints if one.state is CheckpointState.COMPLETE]
        ends = [one.began_at + (one.seconds or 0.0) for one in complete if one.began_at is not None]
        self._completed_at = max([view.now if self._completed_at is None else self._completed_at, *ends])
        self.checkpoint_age = max(0.0, view.now - self._completed_at)
        for window in news.windows:
            if window.latencies:
                found = self.latencies.setdefault(stage_of(window.worker), Distribution(LATENCIES))
                found.add(latency / 1000 for latency in window.latencies)
        for checkpoint in news.checkpoints:
            self.ended["checkpoint", "", checkpoint.state.value] += 1
            self.checkpoint_seconds.add([checkpoint.seconds or 0.0])
            self.checkpoint_saved += checkpoint.saved_bytes
            if checkpoint.state is CheckpointState.COMPLETE:
                self.checkpoint_size = checkpoint.state_bytes
        for migration in news.migrations:
            self.ended["migration", migration.operator, migration.state.value] += 1
            self.migration_seconds.setdefault(migration.operator, Distribution(DURATIONS)).add([migration.seconds or 0.0])
        for scaling in news.scalings:
            self.ended["scaling", scaling.operator, scaling.state.value] += 1
        for upgrade in news.upgrades:
            self.ended["upgrade", "", upgrade.state.value] += 1
        for decision in news.decisions:
            self.decisions[decision.policy, OUTCOMES.get(decision.done.split(maxsplit=1)[0].rstrip(":"), "other")] += 1

    def _measure_lags(self, view: JobView, news: ViewNews) -> None:
        if view.status.attempt != self._attempt:
            self._lags.restart()
            self._attempt = view.status.attempt
        sources = {worker for stage in view.stages if stage.is_source for worker in stage.workers}
        self._lags.follow(sources)
        for window in news.windows:
            if window.worker in sources:
                self._lags.add(window)
        self.source_lags = self._lags.by_operator(view.now)

    def note_state(self, state: JobState, now: float) -> None:
        """Note that the job's state has changed at time `now`."""
        recovery = self._downtime.note_state(state, now)
        if recovery is not None:
            begin, end = recovery
            self.recovery_seconds.add([end - begin])
