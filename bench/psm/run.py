"""The price search machine on Ray: its five queries as one job, at full speed, with the thesis' auto-scaler and without.

The auto-scaler is the policy `latency` with the thesis' settings: after three looks in a row with a latency above the accepted one the
slowest operators get more workers. On two cores more workers can't do more, so what is shown is that it acts and that no row is lost by it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import evenflow as ef

from .. import machine
from ..conditions import record, scratch
from ..errors import BenchmarkError
from ..record import Case, Run
from ..throughput import check_names
from .check import connect, differences
from .queries import QUERIES
from .visits import Visits

TURNS = 2_000_000
TURN_RATE = 1_000.0
"""Turns a second of event time."""

PRODUCTS = 100
"""So few that each gets 10,000 clicks, which q2 asks for."""

SCALERS = ("none", "latency")
ACCEPTED, INTERVAL, MOST_WORKERS = "1s", "1s", 4
SAMPLE, TIMEOUT = 0.5, 1800.0


def run(*, turns: int, rate: float | None, accepted: str, scalers: Sequence[str], repeat: int, say: Callable[[str], None]) -> Run:
    """`rate`: turns a second, None for full speed. `accepted`: the latency that `latency` accepts.

    Raises BenchmarkError for an unknown scaler, a job that does not end, and wrong rows.
    """
    check_names("scaler", scalers, SCALERS)
    cases, checks, wrong = [], [], []
    with connect(turns, turn_rate=TURN_RATE, products=PRODUCTS) as database:
        for scaler in scalers:
            say(f"psm: scaler {scaler}")
            rates, details = [], []
            for _ in range(repeat):
                folder = Path(scratch("psm"))
                try:
                    busy = machine.busy_share()
                    seconds, latencies, decisions = _once(turns, rate, accepted if scaler == "latency" else None, folder)
                    for query in QUERIES:
                        rows, missing, too_many = differences(database, query, folder / query)
                        checks.append(f"{scaler}: {query} gave {rows:,} rows, all those of DuckDB")
                        if missing or too_many:
                            wrong.append(f"{scaler}: {query} lacks {missing:,} rows and has {too_many:,} wrong ones")
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
                for decision in decisions:
                    say(decision)
                rates.append(2 * turns / seconds)
                details.append({"seconds": seconds, "busy_before": busy, "p99_ms": latencies, "decisions": decisions})
            cases.append(Case(f"scaler {scaler}", "rows/s", "higher", tuple(rates), tuple(details)))
    if wrong:
        raise BenchmarkError(f"benchmark psm: not all rows are DuckDB's: {'; '.join(wrong)}")
    arguments = {"turns": turns, "rate": rate, "accepted": accepted, "scalers": list(scalers), "repeat": repeat}
    return record("psm", arguments, cases, checks=list(dict.fromkeys(checks)), not_measured=("more than two cores", "Kafka"))


def _once(turns: int, rate: float | None, accepted: str | None, folder: Path) -> tuple[float, list[float], list[str]]:
    """Seconds that the job ran, p99 latencies (ms) twice a second, and the decisions of the policy; `accepted`: None for no policy."""
    autoscale = ef.AutoscaleConfig()
    if accepted is not None:
        autoscale = ef.AutoscaleConfig("latency", interval=INTERVAL, max_parallelism=MOST_WORKERS, latency_target=accepted)
    config = ef.JobConfig(
        parallelism=1,
        autoscale=autoscale,
        metrics=ef.MetricsConfig(window="500ms"),
        checkpoint=ef.CheckpointConfig(interval=None),
    )
    flow = ef.Dataflow("psm")
    visits = Visits.generated(flow, turns=turns, rate=rate, turn_rate=TURN_RATE, products=PRODUCTS)
    for name, query in QUERIES.items():
        query(visits).write(ef.write_parquet(folder / name, name=f"{name}-out"))
    job, latencies, patience = flow.run(config=config), [], time.monotonic() + TIMEOUT
    while not job.status().state.final:
        latencies.append(max((worker.latency_ms[1] for worker in job.metrics() if worker.latency_ms is not None), default=0.0))
        if time.monotonic() > patience:
            job.cancel()
            raise BenchmarkError(f"benchmark psm: the job has not ended within {TIMEOUT:g} s")
        time.sleep(SAMPLE)
    decisions = [f"{dict(one.decided.parallelism)}: {one.decided.reason}; {one.done}" for one in job.decisions() if one.decided.parallelism]
    return job.wait().status().running_seconds, latencies, decisions
