"""The history of one job: views go in, JSON messages for pages come out.

The first message for a page has the whole history, later ones the changes since the last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import asdict
from math import floor
from typing import Any

import numpy as np

from ..scheduler.load.load_snapshot import hash_of
from ..scheduler.load.window import WorkerWindow
from ..scheduler.protocol.view import JobView, StageView
from .bottleneck import Figures, bottleneck
from .evenness import judged
from .policy_snapshots import PolicySnapshots
from .stage_history import KEPT, OPEN, StageHistory
from .time_bucket import WorkerUsage, parts
from .timeline import Timeline
from .upgrades import upgrades_of
from .workers import nodes_of, nodes_with_workers

Message = dict[str, Any]

Changes = tuple[list[int], list[dict[str, Any]], list[dict[str, Any]]]
"""The seconds, decisions and checkpoints that a view has changed."""

BEHIND = 2
"""Seconds that messages are behind the present: by then nearly all workers have reported."""

SIDE = 10
"""Seconds before and after a change whose means are compared."""

CHECKPOINTS = 100


class History:
    """The history of one job. `link`: the state of the connection to the job, and a sentence about it. `snapshots`: the present job as
    policies see it.
    """

    def __init__(self, name: str, hash_of: Callable[[Hashable], int] = hash_of) -> None:
        self.name = name
        self.link = ("waiting", f"waiting for the job `{name}`")
        self.snapshots = PolicySnapshots()
        self._hash_of = hash_of
        self._stages: dict[str, StageHistory] = {}
        self._latencies: dict[int, list[float]] = {}
        self._quantiles: dict[int, tuple[float, float]] = {}
        self._timeline = Timeline()
        self._checkpoints: dict[str, dict[str, Any]] = {}

    @property
    def since(self) -> float:
        """The time from which the next view has to report, in seconds since the epoch."""
        return self.snapshots.since

    @property
    def view(self) -> JobView:
        """The newest view. Raises SnapshotError before the first."""
        return self.snapshots.view

    def add(self, view: JobView) -> Message:
        """Add the job's next view; return the message for pages that have all the earlier ones."""
        return self._message(*self.update(view))

    def update(self, view: JobView) -> Changes:
        """Add the job's next view; return its changes to the history."""
        now, state = floor(view.now), view.status.state
        self.link = ("ended", f"the job `{self.name}` has ended: it is {state.value}") if state.final else ("live", "")
        windows = self.snapshots.add(view).windows
        names = [stage.name for stage in view.stages]
        self._stages = {name: history for name, history in self._stages.items() if name in names}
        changed = set[int]()
        for stage in view.stages:
            history = self._stages.setdefault(stage.name, StageHistory(stage, self._hash_of))
            changed |= history.add(stage, [w for w in windows if w.worker in stage.workers], now)
        changed |= self._add_latencies(windows, now)
        entries = self._timeline.add(view, self._effect)
        checkpoints = self._add_checkpoints(view)
        return sorted(changed), [asdict(entry) for entry in entries], checkpoints

    def whole(self) -> Message:
        """Return the message for a page that knows nothing yet."""
        seconds = sorted({at for stage in self._stages.values() for at in stage.columns})
        entries = [asdict(entry) for entry in self._timeline.entries.values()]
        return {**self._message(seconds, entries, list(self._checkpoints.values())), "whole": True}

    def unlinked(self, state: str, text: str) -> Message:
        """Note that the job can't be reached, or has ended; return the message that says so."""
        self.link = (state, text)
        return self._message([], [], [])

    @property
    def _until(self) -> int:
        return floor(self.view.now) - BEHIND

    def _add_latencies(self, windows: Iterable[WorkerWindow], now: int) -> set[int]:
        changed = set[int]()
        for window in windows:
            if window.latencies:
                at = max(parts(window), key=lambda part: part[1])[0]
                self._latencies.setdefault(at, []).extend(window.latencies)
                changed.add(at)
        for at in changed:
            p50, p99 = np.percentile(self._latencies[at], [50, 99])
            self._quantiles[at] = round(float(p50), 2), round(float(p99), 2)
        self._latencies = {at: found for at, found in self._latencies.items() if at > now - OPEN}
        self._quantiles = {at: found for at, found in self._quantiles.items() if at > now - KEPT}
        return changed

    def _add_checkpoints(self, view: JobView) -> list[dict[str, Any]]:
        changed = []
        for report in view.checkpoints:
            name = f"{report.number}@{report.began_at or 0:.0f}"
            entry = {
                "id": name,
                "number": report.number,
                "begin": report.began_at,
                "state": report.state.value,
                "seconds": report.seconds,
                "keys": report.keys,
                "saved": report.saved_bytes,
                "bytes": report.state_bytes,
                "why": report.why,
                "waits": list(report.waits_for),
            }
            if self._checkpoints.get(name) != entry:
                self._checkpoints[name] = entry
                changed.append(entry)
        self._checkpoints = dict(list(self._checkpoints.items())[-CHECKPOINTS:])
        return changed

    def _message(self, seconds: list[int], entries: list[dict[str, Any]], checkpoints: list[dict[str, Any]]) -> Message:
        message: Message = {"job": self.name, "link": {"state": self.link[0], "text": self.link[1]}, "at": time.time()}
        if not self.snapshots.has_view:
            return message
        view, until = self.view, self._until
        return {
            **message,
            "now": view.now,
            "until": until,
            "threshold": view.threshold,
            "status": self._status(view),
            "graph": self._graph(view, until),
            "loads": self._loads(view, until),
            "nodes": nodes_with_workers(view),
            "seconds": [self._second(at) for at in seconds if at <= floor(view.now)],
            "decisions": entries,
            "checkpoints": checkpoints,
            "upgrades": upgrades_of(view),
        }

    def _second(self, at: int) -> dict[str, Any]:
        stages = {name: stage.columns[at] for name, stage in self._stages.items() if at in stage.columns}
        p50, p99 = self._quantiles.get(at, (None, None))
        read = sum(column["rows"] for name, column in stages.items() if self._stages[name].view.is_source)
        return {"t": at, "rate": read, "p50": p50, "p99": p99, "stages": stages}

    def _status(self, view: JobView) -> dict[str, Any]:
        status = view.status
        return {
            "state": status.state.value,
            "seconds": round(status.running_seconds, 1),
            "workers": len(status.workers),
            "checkpoints": status.completed_checkpoints,
            "attempt": int(status.attempt),
            "again": status.again.removeprefix(", "),
            "error": None if status.error is None else str(status.error),
            "problems": list(status.problems),
            "advice": status.advice,
            "waits": [[wait.text, list(wait.stack)] for wait in status.other_waits],
            "failures": [asdict(failure) for failure in view.failures],
            "late": sum(w.late_records for stage in self._stages.values() for w in stage.newest.values()),
            "skipped": sum(w.skipped_records for stage in self._stages.values() for w in stage.newest.values()),
        }

    def _loads(self, view: JobView, until: int) -> dict[str, Any]:
        loads = {}
        for stage in view.stages:
            if stage.table is None:
                continue
            load = self._stages[stage.name].load(until)
            mean = sum(load.workers.values()) / max(len(load.workers), 1)
            evenness = judged(load, view.threshold, view.least_busy)
            state = {str(worker): window.state_bytes for worker, window in self._stages[stage.name].newest.items()}
            loads[stage.name] = {
                "workers": [[worker, round(busy, 4), state.get(worker, 0)] for worker, busy in load.workers.items()],
                "mean": round(mean, 4),
                "floor": round(mean * load.floor, 4),
                "hot": [[str(key), round(count / max(load.records, 1), 4)] for key, count in load.hot_keys[:5]],
                "kind": evenness.kind,
                "text": evenness.text,
                "balancer": stage.balancer,
                "groups": len(stage.table),
            }
        return loads

    def _graph(self, view: JobView, until: int) -> dict[str, Any]:
        marks = [w.watermark for stage in self._stages.values() for w in stage.newest.values() if w.watermark is not None]
        newest = max(marks, default=None)
        stages = [self._stage(view, stage, until, newest) for stage in view.stages]
        figures = [Figures(s["name"], tuple(s["outputs"]), s["busy"], s["credit"], s["hottest"]) for s in stages]
        name, text = bottleneck(figures)
        return {"stages": stages, "bottleneck": name, "text": text}

    def _stage(self, job: JobView, view: StageView, until: int, newest: int | None) -> dict[str, Any]:
        history = self._stages[view.name]
        workers = history.workers(until)
        busy = {worker: usage.busy for worker, usage in workers.items()}
        blocked = {worker: usage.blocked for worker, usage in workers.items()}
        measured = max((usage.measured for usage in workers.values()), default=0.0)
        marks = [w.watermark for w in history.newest.values() if w.watermark is not None]
        return {
            "name": view.name,
            "operators": list(view.operators),
            "outputs": list(view.outputs),
            "source": view.is_source,
            "keyed": view.table is not None,
            "workers": len(view.workers),
            "nodes": nodes_of(job, view.workers),
            "in": _per_second(workers.values(), "rows_in", measured),
            "out": _per_second(workers.values(), "rows_out", measured),
            "busy": round(max(busy.values(), default=0.0), 4),
            "credit": round(max(blocked.values(), default=0.0), 4),
            "shares": [round(float(np.mean(list(part.values()))), 4) if part else 0.0 for part in (busy, blocked)],
            "hottest": max(busy, key=lambda worker: busy[worker], default=""),
            "lag": None if newest is None or not marks else round((newest - min(marks)) / 1e6, 2),
            "bytes": sum(w.state_bytes for w in history.newest.values()),
            "late": sum(w.late_records for w in history.newest.values()),
            "skipped": sum(w.skipped_records for w in history.newest.values()),
        }

    def _effect(self, stage: str, begin: float, end: float) -> str:
        """Describe imbalance and latency before and after a change."""
        before, after = (begin - SIDE, begin), (end + 1, end + 1 + SIDE)
        effects = []
        if stage in self._stages:
            uneven = [self._stages[stage].imbalance(*span) for span in (before, after)]
            if None not in uneven:
                effects.append(f"max / mean {uneven[0]:.2f} → {uneven[1]:.2f}")
        quantiles = [[q[1] for at, q in self._quantiles.items() if a <= at < b] for a, b in (before, (begin - 1, end + 1), after)]
        if all(quantiles):
            p99 = [f"{max(found):.0f}" for found in quantiles]
            effects.append(f"p99 {p99[0]} ms before, {p99[1]} meanwhile, {p99[2]} after")
        return "; ".join(effects)


def _per_second(workers: Iterable[WorkerUsage], name: str, measured: float) -> float:
    rows: float = sum(getattr(usage, name) for usage in workers)
    return round(rows / max(measured, 1e-9), 1)
