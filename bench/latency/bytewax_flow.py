"""The count per key of `latency` as a Bytewax dataflow. `bytewax.run` loads `flow` from here; the options come in the environment.

One partition gives the rows that are due each millisecond, as `ef.generate` does; both processes count. Each worker writes its histograms
to the folder when it ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bytewax.operators as op
import numpy as np
from bytewax.dataflow import Dataflow
from bytewax.inputs import StatefulSourcePartition
from bytewax.outputs import StatelessSinkPartition

from ..baselines.bytewax_io import EachWorker, Parts
from ..harness.sinks import Histogram, add_counts, counts_of

RATE, TOTAL, KEYS = (int(os.environ[f"EVENFLOW_BENCH_{name}"]) for name in ("RATE", "TOTAL", "KEYS"))
FOLDER = Path(os.environ["EVENFLOW_BENCH_FOLDER"])
EVERY = timedelta(milliseconds=1)

Keyed = tuple[str, int]


class Due(StatefulSourcePartition[Keyed, None]):
    """Keys drawn at random, each with the time (ns, wall clock) at which its row was due."""

    def __init__(self, _index: int, _position: None) -> None:
        self._random = np.random.default_rng(0)
        self._given, self._begun = 0, 0
        self._awake = datetime.now(UTC)

    def next_batch(self) -> Iterable[Keyed]:
        now = time.time_ns()
        self._begun = self._begun or now
        self._awake = datetime.now(UTC) + EVERY
        if self._given >= TOTAL:
            raise StopIteration
        numbers = np.arange(self._given, min(TOTAL, (now - self._begun) * RATE // 1_000_000_000))
        self._given += len(numbers)
        created = self._begun + numbers * (1_000_000_000 // RATE)
        return list(zip(map(str, self._random.integers(0, KEYS, len(numbers)).tolist()), created.tolist(), strict=True))

    def next_awake(self) -> datetime:
        return self._awake

    def snapshot(self) -> None:
        return None


class Latencies(StatelessSinkPartition[tuple[str, tuple[int, int]]]):
    """A worker's histograms by second of creation."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._counts: dict[int, Histogram] = {}

    def write_batch(self, items: list[tuple[str, tuple[int, int]]]) -> None:
        now = time.time_ns()
        for second, counts in counts_of(np.array([created for _, (_, created) in items]), now):
            add_counts(self._counts, second, counts)

    def close(self) -> None:
        if self._counts:
            np.savez(FOLDER / f"{self._index}.npz", seconds=list(self._counts), counts=list(self._counts.values()))


def count(state: int | None, created: int) -> tuple[int, tuple[int, int]]:
    """Count the rows of a key; returns the count with the newest row's creation."""
    n = (state or 0) + 1
    return n, (n, created)


flow = Dataflow("bench_latency")
op.output("write", op.stateful_map("count", op.input("rows", flow, Parts(1, Due)), count), EachWorker(Latencies))
