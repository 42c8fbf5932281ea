"""Resident memory of a job's workers over time, at full speed or with a sink that is much too slow: an unbounded queue or a leak shows as a
slope.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import evenflow as ef

from . import machine
from .conditions import record
from .record import Case, Run, Verdict
from .sinks import DiscardSink, SlowSink
from .statistics import slope

KEYS = 100_000
INTERVAL = 2.0
WARM_UP_SHARE = 0.2
OFFERED, TIMES = 100_000, 100
"""Rows a second offered to the slow sink, and the ratio to its capacity."""

SLOW_KEYS = 1_000
"""Its keys: all of them come within seconds even at its pace, so that state doesn't grow."""

SLOW_ROWS = 1_000
"""Rows of its batches: a batch takes two seconds, so that the worker notices the end soon."""

LIMIT_MIB_PER_MINUTE = 1.0
NOT_MEASURED = ("the object store of Ray, which no record goes through", "state that grows with the keys: their number is fixed here")


def run(*, minutes: float, slow_sink: bool, say: Callable[[str], None]) -> Run:
    """The first fifth, in which state and buffers fill, is drawn but not judged."""
    flow = ef.Dataflow("bench-memory")
    if slow_sink:
        flow.read(ef.generate(keys=SLOW_KEYS, rate=OFFERED)).key_by("key").stateful_map(numbered).write(SlowSink(OFFERED / TIMES))
    else:
        flow.read(ef.generate(keys=KEYS, zipf=1.2)).key_by("key").aggregate(n=ef.count(), total=ef.sum("value")).write(DiscardSink())
    busy = machine.busy_share()
    job = flow.run(
        config=ef.JobConfig(parallelism=2, network=ef.NetworkConfig(batch_rows=SLOW_ROWS)) if slow_sink else ef.JobConfig(parallelism=2)
    )
    workers = machine.workers_below(os.getpid())
    begun = time.monotonic()
    samples: list[tuple[float, float]] = []
    rates: list[float] = []
    while (elapsed := time.monotonic() - begun) < minutes * 60:
        samples.append((elapsed / 60, sum(machine.rss_bytes(pid) for pid in workers) / 2**20))
        rates.append(sum(f.rows_in_per_second for f in job.metrics() if f.operator.startswith("generate")))
        time.sleep(INTERVAL)
        if len(samples) % 30 == 0:
            say(f"{samples[-1][0]:.1f} min: {samples[-1][1]:.0f} MiB in {len(workers)} workers")
    if slow_sink:
        job.cancel()  # rows in flight would take the sink long
    else:
        job.stop(drain=True)
    job.wait(60)
    judged = [sample for sample in samples if sample[0] >= minutes * WARM_UP_SHARE]
    growth = slope([x for x, _ in judged], [y for _, y in judged])
    cases = [
        Case("rss", "MiB", "lower", tuple(y for _, y in judged), ({"busy_before": busy, "workers": len(workers)},)),
        Case("rate", "rows/s", "higher", tuple(rate for rate in rates[len(rates) - len(judged) :])),
    ]
    verdict = Verdict("growth of the workers' memory, MiB per minute", growth, LIMIT_MIB_PER_MINUTE, "lower")
    arguments = {"minutes": minutes, "keys": SLOW_KEYS if slow_sink else KEYS, "slow_sink": slow_sink}
    return record("memory", arguments, cases, [verdict], not_measured=NOT_MEASURED, series={"rss": samples})


def numbered(state: int | None, row: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Number each row within its key.

    >>> numbered(2, {"key": 7})
    (3, {'key': 7, 'n': 3})
    """
    n = (state or 0) + 1
    return n, {"key": row["key"], "n": n}
