"""The price search machine on Ray: its five queries as one job, with the thesis' auto-scaler and without.

The auto-scaler is the policy `latency` with the thesis' settings: after three latencies in a row above the accepted one, the slowest
operators get more workers. On two cores more workers can't do more, so this shows that it acts and that no row is lost by it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import evenflow as ef

from ...harness import machine
from ...harness.benchmark import Argument, Benchmark, Say, repeat, some_of
from ...harness.conditions import scratch
from ...harness.errors import BenchmarkError
from ...harness.record import Case, Findings
from .check import connect, differences
from .queries import QUERIES
from .visits import Visits

TURN_RATE = 1_000.0
"""Turns a second of event time."""

PRODUCTS = 100
"""So few that each gets 10,000 clicks, which q2 needs."""

SCALERS = ("none", "latency")
INTERVAL, MOST_WORKERS = "1s", 4
SAMPLE, TIMEOUT = 0.5, 1800.0


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Run the job with each scaler. Raises BenchmarkError for a job that doesn't end, and for wrong rows."""
    cases, checks, wrong = [], [], []
    with connect(given.turns, turn_rate=TURN_RATE, products=PRODUCTS) as database:
        for scaler in given.scalers:
            say(f"psm: scaler {scaler}")
            rates, details = [], []
            for _ in range(given.repeat):
                busy = machine.busy_share()
                with scratch("psm") as folder:
                    seconds, latencies, decisions = _once(given, given.accepted if scaler == "latency" else None, folder)
                    for query in QUERIES:
                        rows, missing, too_many = differences(database, query, folder / query)
                        checks.append(f"{scaler}: {query} emits {rows:,} rows, all DuckDB's")
                        if missing or too_many:
                            wrong.append(f"{scaler}: {query} lacks {missing:,} rows and has {too_many:,} wrong ones")
                for decision in decisions:
                    say(decision)
                rates.append(2 * given.turns / seconds)
                details.append({"seconds": seconds, "busy_before": busy, "p99_ms": latencies, "decisions": decisions})
            cases.append(Case(f"scaler {scaler}", "rows/s", "higher", tuple(rates), tuple(details)))
    if wrong:
        raise BenchmarkError(f"benchmark psm: not all rows are DuckDB's: {'; '.join(wrong)}")
    return Findings(cases, checks=list(dict.fromkeys(checks)))


def _once(given: argparse.Namespace, accepted: str | None, folder: Path) -> tuple[float, list[float], list[str]]:
    """Return the seconds of a job, its p99 latencies (ms) twice a second, and its scaling decisions; `accepted`: None for no policy."""
    autoscale = ef.AutoscaleConfig()
    if accepted is not None:
        autoscale = ef.AutoscaleConfig("latency", mode="act", interval=INTERVAL, max_parallelism=MOST_WORKERS, latency_target=accepted)
    config = ef.JobConfig(
        parallelism=1,
        autoscale=autoscale,
        metrics=ef.MetricsConfig(window="500ms"),
        checkpoint=ef.CheckpointConfig(interval=None),
    )
    flow = ef.Dataflow("psm")
    visits = Visits.generated(flow, turns=given.turns, rate=given.rate, turn_rate=TURN_RATE, products=PRODUCTS)
    for name, query in QUERIES.items():
        query(visits).write(ef.write_parquet(folder / name, name=f"{name}-out"))
    job, latencies, deadline = flow.run(config=config), [], time.monotonic() + TIMEOUT
    while not job.status().state.final:
        latencies.append(max((worker.latency_ms[1] for worker in job.metrics() if worker.latency_ms is not None), default=0.0))
        if time.monotonic() > deadline:
            job.cancel()
            raise BenchmarkError(f"benchmark psm: the job has not ended within {TIMEOUT:g} s")
        time.sleep(SAMPLE)
    decisions = [f"{dict(one.decided.parallelism)}: {one.decided.reason}; {one.done}" for one in job.decisions() if one.decided.parallelism]
    return job.wait().status().running_seconds, latencies, decisions


BENCHMARK = Benchmark(
    "psm",
    "the price search machine's queries as one job, scaled by latency and not",
    (
        Argument("--turns", int, 2_000_000, "turns of visitors; each has two rows"),
        Argument("--rate", float, None, "turns a second (default: as fast as the job takes them)"),
        Argument("--accepted", str, "1s", "the latency that the auto-scaler accepts"),
        Argument("--scalers", some_of(SCALERS), list(SCALERS), "auto-scalers"),
        repeat(1),
    ),
    run,
    ("more than two cores",),
)
