"""The cost of small batches: processor time per batch of a running count per key, and that of a worker with little or nothing to do.

Processor time, because other programs hardly change it. On the local runtime the thread of the job is measured, between two batches that
its source gives; on Ray the processes of the job's workers. Each batch makes its way alone: the source has nothing more to give until
the sink has had it, as when rows come more slowly than they are processed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import mean, median
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

import evenflow as ef

from ..engine.batch import Batch
from ..engine.protocol.elements import MAX_TIME
from ..engine.source import Source, SourceReader
from . import machine
from .conditions import record
from .record import Case, Run, Verdict
from .sinks import DiscardSink

KEYS = 10_000
SIZES = 50, 500, 5_000
TARGETS_US = {50: 150.0, 500: 250.0, 5_000: 1_200.0}
HOP_TARGET_US = 100.0
SHARE_TARGETS = {0: 0.5, 1_000: 3.0}
"""Percent of a core for each worker, by rows a second."""

PARTS = "local", "ray"
WARM_UP_ROWS = 20 * KEYS
LOCAL_BATCHES = 2_000
PIECE = 64
RATE = 200
"""Batches of 50 rows a second on Ray."""

SETTLE, MEASURED, WAIT = 5.0, 10.0, 60.0
"""Seconds on Ray, before the measurement and of it."""

NOT_MEASURED = (
    "wall-clock time", "more than one machine", "keys of several columns, windows, checkpoints", "the coordinator's processor time"
)  # fmt: skip


def run(*, parts: Sequence[str], repeat: int, say: Callable[[str], None]) -> Run:
    """Each part, `repeat` times."""
    cases: list[Case] = []
    if "local" in parts:
        cases += [local_case(workers, rows, repeat) for workers in (1, 2) for rows in SIZES]
    if "ray" in parts:
        cases += ray_cases(repeat)
    for case in cases:
        say(f"{case.name}: {case.median:.1f} {case.unit}")
    arguments = {"parts": list(parts), "repeat": repeat, "keys": KEYS}
    return record("small", arguments, cases, verdicts(cases), not_measured=NOT_MEASURED)


def local_case(workers: int, rows: int, repeat: int) -> Case:
    """Microseconds of the job's thread for a batch of `rows` rows, with so many workers for each operator."""
    values, busy = [], machine.busy_share()
    for _ in range(repeat):
        source = BatchSource(rows, LOCAL_BATCHES if rows < SIZES[-1] else LOCAL_BATCHES // 4)
        counted(f"bench-small-{workers}-{rows}", source).run(runtime="local", parallelism=workers).wait(600)
        values.append(source.microseconds)
    return Case(f"local/{workers}/{rows}", "us", "lower", tuple(values), tuple({"busy_before": busy} for _ in values))


def ray_cases(repeat: int) -> list[Case]:
    """Microseconds for a batch of 50 rows and each of the two workers; the busier one's share of a core at a low rate and without rows."""
    busy = machine.busy_share()
    details = tuple({"busy_before": busy} for _ in range(repeat))
    hop = tuple(mean(shares(RATE * SIZES[0])) * 1e6 / RATE for _ in range(repeat))
    cases = [Case(f"ray/{SIZES[0]}", "us", "lower", hop, details)]
    for rate in SHARE_TARGETS:
        busiest = tuple(100 * max(shares(rate)) for _ in range(repeat))
        cases.append(Case(f"ray/{rate} rows a second", "%", "lower", busiest, details))
    return cases


def shares(rate: int) -> list[float]:
    """The shares of a core that the workers of the source and of the count use on Ray, at `rate` rows a second."""
    source: Source = BatchSource(SIZES[0], None, RATE) if rate > max(SHARE_TARGETS) else ef.generate(rate=rate or 1e-3, keys=KEYS)
    job = counted(f"bench-small-{rate}", source).run()
    try:
        time.sleep(SETTLE)
        workers = [pid for pid in machine.workers_below(os.getpid()) if "coordinator" not in " ".join(psutil.Process(pid).cmdline())]
        before, begun = [_cpu(pid) for pid in workers], time.monotonic()
        time.sleep(MEASURED)
        elapsed = time.monotonic() - begun
        used = [(_cpu(pid) - first) / elapsed for pid, first in zip(workers, before, strict=True)]
    finally:
        job.cancel()
        job.wait(WAIT)
    return used


def counted(name: str, source: Source) -> ef.Dataflow:
    """The flow that is measured."""
    flow = ef.Dataflow(name)
    flow.read(source).key_by("key").aggregate(n=ef.count()).write(DiscardSink())
    return flow


def verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """The targets of what was measured."""
    targets = {f"local/1/{rows}": target for rows, target in TARGETS_US.items()}
    targets |= {f"ray/{SIZES[0]}": HOP_TARGET_US, **{f"ray/{rate} rows a second": share for rate, share in SHARE_TARGETS.items()}}
    return [Verdict(f"{c.name} in {c.unit}", c.median, targets[c.name], "lower") for c in cases if c.name in targets]


def _cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


class BatchSource(Source):
    """`batches` batches (None: without end) of `rows` rows with random keys, `rate` a second; without a rate every other poll has one.

    Every batch is a millisecond of event time. Before these come batches that bring all keys. `spent`: seconds of the thread that polls,
    at every `PIECE` batches after those.
    """

    name = "batches"
    guarantee = "at least once (it only measures)"
    parallelism = 1

    def __init__(self, rows: int, batches: int | None, rate: float | None = None) -> None:
        self.rows, self.batches, self.rate = rows, batches, rate
        self.spent: list[float] = []

    @property
    def microseconds(self) -> float:
        """Of the thread that polls, for a batch: the median of the pieces, so that a moment at which others disturb it counts little."""
        return median(later - earlier for earlier, later in pairwise(self.spent)) * 1e6 / PIECE

    def reader(self, index: int, parallelism: int) -> SourceReader:
        return BatchReader(self)


class BatchReader(SourceReader):
    """See `BatchSource`."""

    def __init__(self, source: BatchSource) -> None:
        random = np.random.default_rng(0)
        self._source = source
        self._warm = -(-WARM_UP_ROWS // SIZES[-1])
        self._first = [_batch(random, SIZES[-1]) for _ in range(self._warm)]
        self._batches = [_batch(random, source.rows) for _ in range(200)]
        self._given, self._turn = 0, False
        self._begun = time.monotonic()
        self._time = 0

    def poll(self, max_rows: int) -> Batch | None:
        self._turn = not self._turn
        if self.finished or (self._turn if self._source.rate is None else self.ready_in() > 0.0):
            return None
        number, self._given = self._given, self._given + 1
        if number < self._warm:
            return Batch(self._first[number].rows, np.zeros(self._first[number].num_rows, np.int64))
        if (number - self._warm) % PIECE == 0:
            self._source.spent.append(time.thread_time())
        self._time += 1_000
        batch = self._batches[number % len(self._batches)]
        return Batch(batch.rows, np.full(batch.num_rows, self._time))

    def watermark(self) -> int:
        return MAX_TIME if self.finished else self._time

    @property
    def finished(self) -> bool:
        return self._source.batches is not None and self._given >= self._warm + self._source.batches

    def position(self) -> Any:
        return self._given

    def seek(self, position: Any) -> None:
        self._given = position

    def ready_in(self) -> float:
        if self._source.rate is None:
            return 0.0
        return max(0.0, self._begun + self._given / self._source.rate - time.monotonic())


def _batch(random: np.random.Generator, rows: int) -> Batch:
    return Batch(pa.record_batch({"key": random.integers(0, KEYS, rows)}))
