"""Every record's key, due time and latency: the data for a latency curve around a migration.

>>> trace = np.array([(1_000_000_000, 2.0, 7), (3_000_000_000, 9.0, 7)], TRACE)
>>> between(trace, 0.5, 2.0)["latency"].tolist(), firsts(trace)["latency"].tolist()
([2.0], [2.0])
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.batch import Batch
from ..engine.sink import Sink, SinkWriter

TRACE = np.dtype([("created", np.int64), ("latency", np.float32), ("key", np.int32)])
"""When a record was due (ns, wall clock), milliseconds until its result reached the sink, its key."""

Trace = npt.NDArray[Any]


class TraceSink(Sink):
    """Takes rows of `key` and `created`; those that were due at 0 are not measured."""

    guarantee = "at least once (it only measures)"

    def __init__(self) -> None:
        self.name = "trace"
        self._parts: list[Trace] = []

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return TraceWriter()

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        return list(committables)

    def deliver(self, payload: Any) -> None:
        self._parts.append(np.frombuffer(payload, TRACE))

    def trace(self) -> Trace:
        """All that was measured, in the order in which it was due."""
        together = np.concatenate(self._parts) if self._parts else np.zeros(0, TRACE)
        return together[np.argsort(together["created"], kind="stable")]


class TraceWriter(SinkWriter):
    """Gathers between two checkpoints."""

    def __init__(self) -> None:
        self._parts: list[Trace] = []

    def write(self, batch: Batch) -> None:
        now, created = time.time_ns(), batch.rows.column("created").to_numpy()
        measured = np.flatnonzero(created)
        part = np.empty(len(measured), TRACE)
        part["created"] = created[measured]
        part["latency"] = (now - created[measured]) / 1e6
        part["key"] = batch.rows.column("key").to_numpy()[measured]
        self._parts.append(part)

    def prepare(self, checkpoint: int) -> list[Any]:
        parts, self._parts = self._parts, []
        return [np.concatenate(parts).tobytes()] if parts else []


def between(trace: Trace, begun: float, ended: float) -> Trace:
    """The records that were due from `begun` to `ended`, seconds since the epoch."""
    first, last = np.searchsorted(trace["created"], [int(begun * 1e9), int(ended * 1e9)])
    return trace[first:last]


def firsts(trace: Trace) -> Trace:
    """The first record of each key."""
    return trace[np.unique(trace["key"], return_index=True)[1]]


def percentile_of(trace: Trace, share: float) -> float:
    """The latency (ms) that `share` of the records do not exceed; 0 for no records."""
    return float(np.quantile(trace["latency"], share)) if len(trace) else 0.0


def curve(trace: Trace, begun: float, seconds: float) -> list[tuple[float, float, float]]:
    """(seconds since `begun`, p99, largest) of pieces of `seconds`, those without records left out."""
    piece = np.floor((trace["created"] / 1e9 - begun) / seconds).astype(np.int64)
    edges = np.flatnonzero(np.diff(piece)) + 1
    parts = np.split(trace, edges) if len(trace) else []
    return [
        (round(float(piece[start]) * seconds, 3), percentile_of(part, 0.99), percentile_of(part, 1.0))
        for start, part in zip([0, *edges.tolist()], parts, strict=bool(parts))
    ]
