"""What is known of one job: views in, messages for pages out.

A message is a JSON object. The first one that a page gets is the whole history, later ones have what has changed since.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import asdict
from math import floor
from typing import Any

import numpy as np

from ..recording.seen import Seen
from ..scheduler.load.load_snapshot import hash_of
from ..scheduler.load.window import WorkerWindow
from ..scheduler.protocol.view import JobView, StageView
from .bottleneck import Figures, bottleneck
from .evenness import judged
from .placement import nodes_of, nodes_with_workers
from .second import WorkerSecond, parts
from .stage_history import KEPT, OPEN, StageHistory
from .timeline import Timeline

Message = dict[str, Any]

Changes = tuple[list[int], list[dict[str, Any]], list[dict[str, Any]]]

BEHIND = 2
"""Seconds that the page is behind: by then nearly all workers have told what they did."""

SIDE = 10
"""Seconds before and after a change whose means are compared."""

CHECKPOINTS = 100


class History:
    """One job's. `link`: whether it can be heard: state and a sentence."""

    def __init__(self, name: str, hash_of: Callable[[Hashable], int] = hash_of) -> None:
        self.name = name
        self.link = ("waiting", f"waiting for the job `{name}`")
        self._hash_of = hash_of
        self._stages: dict[str, StageHistory] = {}
        self._latencies: dict[int, list[float]] = {}
        self._quantiles: dict[int, tuple[float, float]] = {}
        self._timeline = Timeline()
        self._checkpoints: dict[str, dict[str, Any]] = {}
        self._seen: dict[tuple[str, float], float] = {}
        self._view: JobView | None = None
        self.seen = Seen()
        """What policies see of the job now."""

    def add(self, view: JobView) -> Message:
        """What the job tells; the message for pages that have all that went before."""
        return self._message(*self.take(view))

    def take(self, view: JobView) -> Changes:
        """What the job tells; what of the history it changes: seconds, decisions, checkpoints."""
        self._view, now = view, floor(view.now)
        self.seen.add(view)
        state = view.status.state
        self.link = ("ended", f"the job `{self.name}` has ended: it is {state.value}") if state.final else ("live", "")
        windows = [window for window in view.windows if self._is_new(window)]
        self._seen = {seen: end for seen, end in self._seen.items() if end > now - 2 * KEPT}
        names = [stage.name for stage in view.stages]
        self._stages = {name: history for name, history in self._stages.items() if name in names}
        changed = set[int]()
        for stage in view.stages:
            history = self._stages.setdefault(stage.name, StageHistory(stage, self._hash_of))
            changed |= history.add(stage, [w for w in windows if w.worker in stage.workers], now)
        changed |= self._add_latencies(windows, now)
        entries = self._timeline.add(view, self._came)
        checkpoints = self._add_checkpoints(view)
        return sorted(changed), [asdict(entry) for entry in entries], checkpoints

    def whole(self) -> Message:
        """For a page that knows nothing yet."""
        seconds = sorted({at for stage in self._stages.values() for at in stage.columns})
        entries = [asdict(entry) for entry in self._timeline.entries.values()]
        return {**self._message(seconds, entries, list(self._checkpoints.values())), "whole": True}

    def unlinked(self, state: str, text: str) -> Message:
        """The job can't be heard now, or has ended."""
        self.link = (state, text)
        return self._message([], [], [])

    def _is_new(self, window: WorkerWindow) -> bool:
        key = window.worker, window.start
        if key in self._seen:
            return False
        self._seen[key] = window.start + window.length
        return True

    def _add_latencies(self, windows: list[WorkerWindow], now: int) -> set[int]:
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
        told = []
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
                told.append(entry)
        self._checkpoints = dict(list(self._checkpoints.items())[-CHECKPOINTS:])
        return told

    def _message(self, seconds: list[int], entries: list[dict[str, Any]], checkpoints: list[dict[str, Any]]) -> Message:
        view = self._view
        message: Message = {"job": self.name, "link": {"state": self.link[0], "text": self.link[1]}, "at": time.time()}
        if view is None:
            return message
        until = floor(view.now) - BEHIND
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
                "workers": [[worker, round(useful, 4), state.get(worker, 0)] for worker, useful in load.workers.items()],
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
        useful, credit = {}, {}
        for worker, did in workers.items():
            useful[worker], credit[worker] = did.useful / max(did.measured, 1e-9), did.credit / max(did.measured, 1e-9)
        measured = max((did.measured for did in workers.values()), default=0.0)
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
            "busy": round(max(useful.values(), default=0.0), 4),
            "credit": round(max(credit.values(), default=0.0), 4),
            "shares": [round(float(np.mean(list(part.values()))), 4) if part else 0.0 for part in (useful, credit)],
            "hottest": max(useful, key=lambda worker: useful[worker], default=""),
            "lag": None if newest is None or not marks else round((newest - min(marks)) / 1e6, 2),
            "bytes": sum(w.state_bytes for w in history.newest.values()),
            "late": sum(w.late_records for w in history.newest.values()),
            "skipped": sum(w.skipped_records for w in history.newest.values()),
        }

    def _came(self, stage: str, begin: float, end: float) -> str:
        """Imbalance, rate and latency before a change, and after it."""
        before, after = (begin - SIDE, begin), (end + 1, end + 1 + SIDE)
        said = []
        if stage in self._stages:
            uneven = [self._stages[stage].imbalance(*span) for span in (before, after)]
            if None not in uneven:
                said.append(f"max / mean {uneven[0]:.2f} → {uneven[1]:.2f}")
        quantiles = [[q[1] for at, q in self._quantiles.items() if a <= at < b] for a, b in (before, (begin - 1, end + 1), after)]
        if all(quantiles):
            p99 = [f"{max(found):.0f}" for found in quantiles]
            said.append(f"p99 {p99[0]} ms before, {p99[1]} meanwhile, {p99[2]} after")
        return "; ".join(said)


def _per_second(workers: Iterable[WorkerSecond], name: str, measured: float) -> float:
    rows: float = sum(getattr(did, name) for did in workers)
    return round(rows / max(measured, 1e-9), 1)
