"""The Yahoo streaming benchmark on Ray: events a second at full speed, and the latency of windows at fixed rates.

The benchmark's latency is that of a window: the time of its last write, less its end. Here a window's count of a campaign is
written once, when the watermark has passed the window's end; events are due when the wall clock shows their event time. What is
not measured: Kafka, decoding JSON, and Redis, into which the original writes. The counts go into Parquet files, and must be those
of DuckDB.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import evenflow as ef

from ...connectors.generated.numbered import NumberedSource
from .. import machine
from ..conditions import record
from ..errors import BenchmarkError
from ..record import Case, Run
from .check import connect, differences
from .events import ad_events
from .query import stamped, views_by_campaign

EVENTS = 20_000_000
RATES = (50_000, 200_000)
SECONDS = 60
WINDOW = 10
"""Seconds."""

AHEAD = 15.0
"""Seconds from the job's start to its first event, in which the workers start."""

WORKERS = 2
TIMEOUT = "30m"


def run(*, events: int, rates: Sequence[int], seconds: int, repeat: int, say: Callable[[str], None]) -> Run:
    """`events` at full speed, `repeat` times (0: not at all), and each of `rates` for `seconds` of event time.

    Raises BenchmarkError for wrong counts, and for `seconds` of fewer than two windows: the first one is not counted.
    """
    if seconds < 2 * WINDOW:
        raise BenchmarkError(f"benchmark yahoo: {seconds} s are fewer than two windows of {WINDOW} s")
    cases = [full_speed(events, repeat, say)] if repeat else []
    for rate in rates:
        cases += at_rate(rate, seconds, say)
    arguments = {"events": events, "rates": list(rates), "seconds": seconds, "repeat": repeat}
    checks = [f"{case.name.split('/')[0]}: {one['rows']:,} counts, all those of DuckDB" for case in cases for one in case.details]
    lacking = ("Kafka", "decoding JSON", "writing to Redis")
    return record("yahoo", arguments, cases, checks=list(dict.fromkeys(checks)), not_measured=lacking)


def full_speed(events: int, repeat: int, say: Callable[[str], None]) -> Case:
    """Events a second, made by the job's sources."""
    rates, details = [], []
    with connect(events) as database:
        for _ in range(repeat):
            busy = machine.busy_share()
            with TemporaryDirectory(prefix="evenflow-bench-yahoo-") as folder:
                seconds = _run(ad_events(events=events), Path(folder))
                rows = _checked(database, Path(folder)).num_rows
            rates.append(events / seconds)
            details.append({"seconds": seconds, "rows": rows, "busy_before": busy})
            say(f"yahoo: {events:,} events in {seconds:.1f} s, {events / seconds:,.0f} a second")
    return Case("full speed", "events/s", "higher", tuple(rates), tuple(details))


def at_rate(rate: int, seconds: int, say: Callable[[str], None]) -> list[Case]:
    """The latency of each campaign's windows but the first: half, 99 of 100, and all of them are not above it."""
    busy = machine.busy_share()
    begin = math.ceil((time.time() + AHEAD) / WINDOW) * WINDOW
    events, base_time = rate * seconds, begin * 1000
    with TemporaryDirectory(prefix="evenflow-bench-yahoo-") as folder:
        _run(ad_events(rate=float(rate), events=events, base_time=base_time, punctual=True), Path(folder))
        with connect(events, event_rate=float(rate), base_time=base_time) as database:
            results = _checked(database, Path(folder))
    latencies = latencies_of(results, begin + WINDOW)
    details = ({"rows": results.num_rows, "busy_before": busy},)
    shown = {"p50": np.quantile(latencies, 0.5), "p99": np.quantile(latencies, 0.99), "largest": latencies.max()}
    say(f"yahoo: {rate:,} events/s: window latency {', '.join(f'{name} {value:.1f} ms' for name, value in shown.items())}")
    return [Case(f"at {rate:,}/{name}", "ms", "lower", (float(value),), details) for name, value in shown.items()]


def latencies_of(results: pa.Table, begin: int) -> npt.NDArray[np.float64]:
    """Milliseconds from the end of each window to the write of its count, for windows from `begin` (seconds since the epoch) on.

    >>> starts = pa.array([0, 10_000_000], pa.timestamp("us", "UTC"))
    >>> latencies_of(pa.table({"window_start": starts, "written": [10_500_000_000, 20_001_000_000]}), 10).tolist()
    [1.0]
    """
    starts = results["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    counted = starts >= begin * 1_000_000
    ends_ns = (starts[counted] + WINDOW * 1_000_000) * 1000
    return np.asarray((results["written"].to_numpy()[counted] - ends_ns) / 1e6, np.float64)


def _run(source: NumberedSource, folder: Path) -> float:
    """Seconds that the job ran."""
    flow = ef.Dataflow("yahoo")
    views_by_campaign(flow.read(source)).map_batches(stamped).write(ef.write_parquet(folder))
    config = ef.JobConfig(parallelism=WORKERS, checkpoint=ef.CheckpointConfig(interval=None))
    return flow.run(config=config).wait(TIMEOUT).status().running_seconds


def _checked(database: duckdb.DuckDBPyConnection, folder: Path) -> pa.Table:
    """The counts that the job wrote, which must be those of the database."""
    rows, missing, wrong = differences(database, folder)
    if missing or wrong:
        raise BenchmarkError(f"benchmark yahoo: of {rows:,} counts {wrong:,} are wrong, and {missing:,} are missing")
    return pq.read_table(folder)
