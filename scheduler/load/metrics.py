"""The job's figures: the windows that the workers reported, added up and by operator.

>>> metrics = JobMetrics({"count-0": "count"})
>>> metrics.add(WorkerWindow("count-0", start=0.0, length=1.0, rows_in=10, useful=0.5))
>>> metrics.workers()[0].rows_in_per_second
10.0
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ...engine.functions.measures import Measured
from ...engine.protocol.ids import WorkerId, code_of, index_of
from ...engine.shown import Shown
from ...engine.source import SplitFigures
from ...engine.time.datetimes import as_datetime
from .window import WorkerWindow

HISTORY = 120

MOST = 5
"""Key groups and keys that a load names when it is printed."""


@dataclass(frozen=True, slots=True)
class SplitProgress:
    """The progress of a source with a split.

    `lag`: available records that were not yet read, None if unknown. `newest`: the newest event time that was read, in UTC. `idle`:
    True if the split is quiet, so that it doesn't hold event time back. `position`: the number of the next record, such as an offset.
    """

    split: str
    lag: int | None = None
    newest: datetime | None = None
    idle: bool = False
    position: int | None = None

    @staticmethod
    def of(figures: SplitFigures) -> SplitProgress:
        """Return what a source has reported, with its time as a datetime."""
        newest = None if figures.newest is None else as_datetime(figures.newest)
        return SplitProgress(figures.split, figures.lag, newest, figures.idle, figures.position)


@dataclass(frozen=True, slots=True)
class WorkerFigures:
    """A worker's totals, and its activity in the newest window (rates per second, shares of the window's time)."""

    worker: WorkerId
    operator: str
    rows_in: int
    rows_out: int
    rows_in_per_second: float
    rows_out_per_second: float
    useful_share: float
    input_wait_share: float
    backpressure: float
    queued_batches: int
    watermark: datetime | None
    """Its event time in UTC; None without event time, before the first watermark, and after the last."""
    state_bytes: int
    late_records: int
    skipped_records: int
    """Records dropped by `on_error`, dead letters included, since the last recovery: functions failed on them, or a source could
    not decode them.
    """
    refused_messages: int
    latency_ms: tuple[float, float] | None
    """p50 and p99 of the last latency marks, source to here."""
    splits: tuple[SplitProgress, ...] = ()
    """The progress of a source with each of the worker's splits, such as the partitions of a Kafka topic; empty for most
    sources.
    """
    measured: tuple[Measured, ...] = ()
    """The counters, gauges and histograms of users' functions in this worker, since the last recovery."""


@dataclass(frozen=True, slots=True)
class OperatorLoad(Shown):
    """Load of an operator over some windows, in useful seconds per second; `print` shows it in a few lines.

    `hot_keys`: (key, records at least), hottest first; `records`: those of all keys. `can_split`: True if a hot key can be split
    (`job.split`); `split`: the hot keys that are. `hot_left`: of the records of each hot key, those from the left side of the
    join. A record of a split key's copied side counts at each worker that has it.
    """

    workers: dict[str, float]
    groups: dict[int, float]
    hot_keys: tuple[tuple[Any, int], ...]
    records: int = 0
    can_split: bool = False
    hot_left: tuple[int, ...] = ()
    split: tuple[Any, ...] = ()

    @property
    def imbalance(self) -> float:
        """Load of the hottest worker over the mean load; 1.0 is even."""
        loads = list(self.workers.values())
        mean = sum(loads) / len(loads) if loads else 0.0
        return max(loads) / mean if mean > 0 else 1.0

    @property
    def floor(self) -> float:
        """The least imbalance of any placement: `max(1, workers * p1)`, p1 the part of the records of the hottest key that isn't
        split.
        """
        return self._floor(0)

    @property
    def floor_with_split(self) -> float:
        """The floor once the hottest key is split; equals `floor` for an operator whose keys can't be split."""
        return self._floor(1) if self.can_split else self.floor

    @property
    def floors(self) -> str:
        """The floor in words, and the one with a split where that is lower."""
        split = f", {self.floor_with_split:.2f} with the hottest key split" if self.floor_with_split < self.floor else ""
        return f"floor {self.floor:.2f}{split}"

    def _floor(self, hottest: int) -> float:
        """Return the floor set by the key at this rank among the hottest unsplit keys, whose records go to one worker."""
        whole = [count for key, count in self.hot_keys if key not in self.split]
        if len(whole) <= hottest or not self.records:
            return 1.0
        return max(1.0, len(self.workers) * whole[hottest] / self.records)

    def __str__(self) -> str:
        total = sum(self.workers.values()) or 1.0
        groups = sorted(self.groups.items(), key=lambda item: -item[1])[:MOST]
        return "\n".join(
            (
                f"load of {len(self.workers)} workers: imbalance {self.imbalance:.2f}, {self.floors}",
                *(
                    f"{worker}: useful {useful:.1%} of its time, {useful / total:.1%} of the load"
                    for worker, useful in self.workers.items()
                ),
                f"hottest groups: {', '.join(f'{group} {useful:.1%}' for group, useful in groups) or '-'}",
                f"hottest keys: {', '.join(map(self._shown, range(min(MOST, len(self.hot_keys))))) or '-'}",
            )
        )

    def _shown(self, at: int) -> str:
        """Format the hot key at this rank: its share of the records, and the share from the left side of a join."""
        key, count = self.hot_keys[at]
        left = f" ({self.hot_left[at] / max(self.records, 1):.1%} from the left)" if self.can_split and self.hot_left else ""
        return f"{key!r} {count / max(self.records, 1):.1%}{left}{', split' if key in self.split else ''}"


class JobMetrics:
    """Keeps the newest `kept` windows of each worker; `operators` names each worker's operator (its stage)."""

    def __init__(self, operators: Mapping[WorkerId, str], kept: int = HISTORY) -> None:
        self._operators, self._kept = dict(operators), kept
        self._history: dict[WorkerId, deque[WorkerWindow]] = {w: deque(maxlen=kept) for w in operators}
        self._rows: dict[WorkerId, list[int]] = {w: [0, 0] for w in operators}
        self._latencies: dict[WorkerId, deque[float]] = {w: deque(maxlen=1000) for w in operators}
        self._left: dict[str, float] = {}
        self._order = {operator: place for place, operator in enumerate(dict.fromkeys(operators.values()))}
        """The places of the operators in the plan."""

    def join(self, worker: WorkerId, operator: str) -> None:
        """Add a worker."""
        self._operators[worker] = operator
        self._order.setdefault(operator, len(self._order))
        self._history[worker] = deque(maxlen=self._kept)
        self._rows[worker] = [0, 0]
        self._latencies[worker] = deque(maxlen=1000)

    def leave(self, worker: WorkerId) -> None:
        """Remove a worker and its history."""
        last = self.newest(worker) if worker in self._operators else None
        if last is not None:
            self._left[self._operators[worker]] = last.start + last.length
        for figures in (self._operators, self._history, self._rows, self._latencies):
            figures.pop(worker, None)

    def follow(self, operators: Mapping[WorkerId, str]) -> None:
        """Make these the workers, with the operator of each; the history of workers that stay is kept."""
        for worker in [name for name in self._operators if name not in operators]:
            self.leave(worker)
        for worker in [name for name in operators if name not in self._operators]:
            self.join(worker, operators[worker])

    def add(self, window: WorkerWindow) -> None:
        """Add a worker's window; the window of a worker that has left is ignored."""
        if window.worker not in self._operators:
            return
        self._history[window.worker].append(window)
        rows = self._rows[window.worker]
        rows[0] += window.rows_in
        rows[1] += window.rows_out
        self._latencies[window.worker].extend(window.latencies)

    def workers(self) -> list[WorkerFigures]:
        """Return the figures of every worker, in the plan's order; of two with the same index, the one with the older code first."""
        return [self._figures(worker) for worker in self._ordered()]

    def history(self, worker: WorkerId) -> list[WorkerWindow]:
        """Return the last windows of a worker, oldest first."""
        return list(self._history[worker])

    def complete(self, worker: WorkerId, windows: int) -> list[WorkerWindow]:
        """Return those of the newest `windows` of a worker, oldest first, that began after the last worker of its operator left.

        Earlier windows are incomplete: part of the load of its keys was measured by the worker that left.
        """
        left = self._left.get(self._operators[worker], float("-inf"))
        return [window for window in self.history(worker)[-windows:] if window.start >= left]

    def load(self, operator: str, windows: int = HISTORY) -> OperatorLoad:
        """Return the mean load of an operator's workers and key groups, and its hottest keys, over the newest `windows` of each
        worker.
        """
        workers: dict[str, float] = {}
        groups: dict[int, float] = {}
        hot: dict[Any, int] = {}
        left: dict[Any, int] = {}
        records = 0
        for worker in self._ordered():
            if self._operators[worker] != operator:
                continue
            newest = self.history(worker)[-windows:]
            length = max(sum(window.length for window in newest), 1e-9)
            workers[worker] = sum(window.useful for window in newest) / length
            records += sum(window.keyed_records for window in newest)
            for window in newest:
                for group, load in zip(window.groups.tolist(), window.load.tolist(), strict=True):
                    groups[group] = groups.get(group, 0.0) + load / length
                for key, count in window.hot_keys:
                    hot[key] = hot.get(key, 0) + count
                for (key, _), count in zip(window.hot_keys, window.hot_left, strict=False):
                    left[key] = left.get(key, 0) + count
        hottest = tuple(sorted(hot.items(), key=lambda item: -item[1])[:16])
        return OperatorLoad(workers, groups, hottest, records, hot_left=tuple(left.get(key, 0) for key, _ in hottest))

    def latency_between(self, begun: float, until: float) -> tuple[float, float] | None:
        """Return p50 and p99 (milliseconds) of the latency marks in windows that overlap [begun, until], seconds since the
        epoch.
        """
        windows = [w for history in self._history.values() for w in history if w.start < until and w.start + w.length > begun]
        return _percentiles(np.array([latency for window in windows for latency in window.latencies]))

    def newest(self, worker: WorkerId) -> WorkerWindow | None:
        """Return a worker's newest window, None before the first."""
        history = self._history[worker]
        return history[-1] if history else None

    def _ordered(self) -> list[WorkerId]:
        """Return the workers in the plan's order, however they have joined and left."""
        places = {worker: (self._order[operator], index_of(worker), code_of(worker)) for worker, operator in self._operators.items()}
        return sorted(places, key=lambda worker: places[worker])

    def _figures(self, worker: WorkerId) -> WorkerFigures:
        window = self.newest(worker) or WorkerWindow(worker, 0.0, 1.0)
        length = max(window.length, 1e-9)
        rows = self._rows[worker]
        return WorkerFigures(
            worker=worker,
            operator=self._operators[worker],
            rows_in=rows[0],
            rows_out=rows[1],
            rows_in_per_second=window.rows_in / length,
            rows_out_per_second=window.rows_out / length,
            useful_share=window.useful / length,
            input_wait_share=window.wait_input / length,
            backpressure=window.wait_credit / length,
            queued_batches=window.queued,
            watermark=None if window.watermark is None else as_datetime(window.watermark),
            state_bytes=window.state_bytes,
            late_records=window.late_records,
            skipped_records=window.skipped_records,
            refused_messages=window.refused_messages,
            latency_ms=_percentiles(np.array(self._latencies[worker])),
            splits=tuple(map(SplitProgress.of, window.splits)),
            measured=window.measured,
        )


def _percentiles(values: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    if not len(values):
        return None
    p50, p99 = np.percentile(values, [50, 99])
    return float(p50), float(p99)
