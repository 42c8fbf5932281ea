"""Sinks for measurements: a histogram of latencies, and a sink that discards rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...engine.batch import Batch
from ...engine.sink import Sink, SinkWriter

EDGES_MS: npt.NDArray[np.float64] = np.geomspace(0.01, 100_000.0, 1621)
"""Bins of one percent, from 10 us to 100 s. The first and the last bin also take what is beyond them."""

Histogram = npt.NDArray[np.int64]
"""Rows by bin of latency."""


class MeasuringSink(Sink):
    """A sink that gets in the driver's process, by `deliver`, what its writers have gathered since the last checkpoint."""

    guarantee = "at least once (it only measures)"

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        return list(committables)


class LatencySink(MeasuringSink):
    """Counts rows by second of creation and by latency: from `created` (ns, wall clock) to the write. Ignores rows created at 0."""

    def __init__(self) -> None:
        self.name = "latencies"
        self.counts: dict[int, Histogram] = {}

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return LatencyWriter()

    def deliver(self, payload: Any) -> None:
        second, counts = payload
        add_counts(self.counts, second, np.frombuffer(counts, np.int64))


class LatencyWriter(SinkWriter):
    """The writer of `LatencySink`."""

    def __init__(self) -> None:
        self._counts: dict[int, Histogram] = {}

    def write(self, batch: Batch) -> None:
        now = time.time_ns()
        created = batch.rows.column("created").to_numpy()
        for second, counts in counts_of(created[created > 0], now):
            add_counts(self._counts, second, counts)

    def prepare(self, checkpoint: int) -> list[Any]:
        gathered, self._counts = self._counts, {}
        return [(second, counts.tobytes()) for second, counts in gathered.items()]


class DiscardSink(Sink):
    """Discards rows."""

    guarantee = "at least once (it discards rows)"

    def __init__(self) -> None:
        self.name = "discard"

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return DiscardWriter()


class DiscardWriter(SinkWriter):
    """The writer of `DiscardSink`."""

    def write(self, batch: Batch) -> None:
        return

    def prepare(self, checkpoint: int) -> list[Any]:
        return []


def bin_of(latencies_ms: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return the bin of each latency."""
    return np.minimum(np.searchsorted(EDGES_MS, latencies_ms), len(EDGES_MS) - 1)


def counts_of(created: npt.NDArray[np.int64], now: int) -> Iterator[tuple[int, Histogram]]:
    """Yield each second of creation with the histogram of its rows' latencies at `now` (both ns).

    >>> [(second, counts.sum()) for second, counts in counts_of(np.array([999_999_999, 1_000_000_000]), 1_000_500_000)]
    [(0, np.int64(1)), (1, np.int64(1))]
    """
    if not len(created):
        return
    bins = bin_of((now - created) / 1e6)
    seconds = created // 1_000_000_000
    for second in range(int(seconds.min()), int(seconds.max()) + 1):
        yield second, np.bincount(bins[seconds == second], minlength=len(EDGES_MS))


def add_counts(counts: dict[int, Histogram], second: int, more: Histogram) -> None:
    """Add to a second's histogram."""
    counts[second] = counts[second] + more if second in counts else more


def percentile(counts: Histogram, share: float) -> float:
    """Return the latency (ms) that `share` of the rows do not exceed: the upper edge of its bin, at most one percent too high.

    >>> round(percentile(np.bincount(bin_of(np.array([1.0, 2.0, 100.0])), minlength=len(EDGES_MS)), 0.5), 1)
    2.0
    """
    reached = np.searchsorted(np.cumsum(counts), share * counts.sum())
    return float(EDGES_MS[min(int(reached), len(EDGES_MS) - 1)])
