"""The key, due time and latency of every record: the data for a latency curve around a migration.

>>> trace = np.array([(1_000_000_000, 2.0, 7), (3_000_000_000, 9.0, 7)], TRACE)
>>> between(trace, 0.5, 2.0)["latency"].tolist(), firsts(trace)["latency"].tolist()
([2.0], [2.0])
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from ...engine.batch import Batch
from ...engine.sink import SinkWriter
from .sinks import MeasuringSink

TRACE = np.dtype([("created", np.int64), ("latency", np.float32), ("key", np.int32)])
"""The time at which a record was due (ns, wall clock), milliseconds until its result reached the sink, and its key."""

Trace = npt.NDArray[Any]


class TraceSink(MeasuringSink):
    """Records the latency of rows with `key` and `created`. Ignores rows created at 0."""

    def __init__(self) -> None:
        self.name = "trace"
        self._parts: list[Trace] = []

    def given_settings(self) -> dict[str, Any]:
        return self.settings_without("_parts")

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return TraceWriter()

    def deliver(self, payload: Any) -> None:
        self._parts.append(np.frombuffer(payload, TRACE))

    def trace(self) -> Trace:
        """Return all records, by due time."""
        together = np.concatenate(self._parts) if self._parts else np.zeros(0, TRACE)
        return together[np.argsort(together["created"], kind="stable")]


class TraceWriter(SinkWriter):
    """The writer of `TraceSink`."""

    def __init__(self) -> None:
        self._parts: list[Trace] = []

    def write(self, batch: Batch) -> None:
        self.note(batch.rows.column("key").to_numpy(), batch.rows.column("created").to_numpy())

    def note(self, keys: npt.NDArray[Any], created: npt.NDArray[np.int64]) -> None:
        """Record the latencies of results that are written now."""
        now, measured = time.time_ns(), np.flatnonzero(created)
        part = np.empty(len(measured), TRACE)
        part["created"] = created[measured]
        part["latency"] = (now - created[measured]) / 1e6
        part["key"] = keys[measured]
        self._parts.append(part)

    def prepare(self, checkpoint: int) -> list[Any]:
        parts, self._parts = self._parts, []
        return [np.concatenate(parts).tobytes()] if parts else []


def between(trace: Trace, begun: float, ended: float) -> Trace:
    """Return the records that were due from `begun` to `ended`, seconds since the epoch."""
    first, last = np.searchsorted(trace["created"], [int(begun * 1e9), int(ended * 1e9)])
    return trace[first:last]


def firsts(trace: Trace) -> Trace:
    """Return the first record of each key."""
    return trace[np.unique(trace["key"], return_index=True)[1]]


def percentile_of(trace: Trace, share: float) -> float:
    """Return the latency (ms) that `share` of the records do not exceed; 0 for no records."""
    return float(np.quantile(trace["latency"], share)) if len(trace) else 0.0


def curve(trace: Trace, begun: float, seconds: float) -> list[tuple[float, float, float]]:
    """Return (seconds since `begun`, p99, largest latency) of each piece of `seconds` that has records."""
    piece = np.floor((trace["created"] / 1e9 - begun) / seconds).astype(np.int64)
    edges = np.flatnonzero(np.diff(piece)) + 1
    parts = np.split(trace, edges) if len(trace) else []
    return [
        (round(float(piece[start]) * seconds, 3), percentile_of(part, 0.99), percentile_of(part, 1.0))
        for start, part in zip([0, *edges.tolist()], parts, strict=bool(parts))
    ]
