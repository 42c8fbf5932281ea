"""Resident memory of a job's workers over time at full speed: a queue without a bound or a leak shows as a slope."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import evenflow as ef

from . import machine
from .conditions import record
from .record import Case, Run, Verdict
from .sinks import DiscardSink
from .statistics import slope

KEYS = 100_000
INTERVAL = 2.0
WARM_UP_SHARE = 0.2
LIMIT_MIB_PER_MINUTE = 1.0
NOT_MEASURED = ("the object store of Ray, which no record goes through", "state that grows with the keys: their number is fixed here")


def run(*, minutes: float, say: Callable[[str], None]) -> Run:
    """The first fifth, in which state and buffers fill, is drawn but not judged."""
    flow = ef.Dataflow("bench-memory")
    flow.read(ef.generate(keys=KEYS, zipf=1.2)).key_by("key").aggregate(n=ef.count(), total=ef.sum("value")).write(DiscardSink())
    busy = machine.busy_share()
    job = flow.run(parallelism=2)
    workers = [pid for pid, name in machine.descendants(os.getpid()).items() if name.startswith("ray::Worker")]
    begun = time.monotonic()
    samples: list[tuple[float, float]] = []
    rates: list[float] = []
    while (elapsed := time.monotonic() - begun) < minutes * 60:
        samples.append((elapsed / 60, sum(machine.rss_bytes(pid) for pid in workers) / 2**20))
        rates.append(sum(f.rows_in_per_second for f in job.metrics() if f.operator.startswith("generate")))
        time.sleep(INTERVAL)
        if len(samples) % 30 == 0:
            say(f"{samples[-1][0]:.1f} min: {samples[-1][1]:.0f} MiB in {len(workers)} workers")
    job.stop()
    job.wait(60)
    judged = [sample for sample in samples if sample[0] >= minutes * WARM_UP_SHARE]
    growth = slope([x for x, _ in judged], [y for _, y in judged])
    cases = [
        Case("rss", "MiB", "lower", tuple(y for _, y in judged), ({"busy_before": busy, "workers": len(workers)},)),
        Case("rate", "rows/s", "higher", tuple(rate for rate in rates[len(rates) - len(judged) :])),
    ]
    verdict = Verdict("growth of the workers' memory, MiB per minute", growth, LIMIT_MIB_PER_MINUTE, "lower")
    return record("memory", {"minutes": minutes, "keys": KEYS}, cases, [verdict], not_measured=NOT_MEASURED, series={"rss": samples})
