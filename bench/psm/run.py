"""The price search machine on Ray: its five queries as one job, at full speed, with the thesis' auto-scaler and without.

The auto-scaler is the policy `latency` with the thesis' settings: after three looks in a row with a latency above the accepted one the
slowest operators get more workers. On two cores more workers can't do more, so what is shown is that it acts and that no row is lost by it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import evenflow as ef

from .. import machine
from ..conditions import record, scratch
from ..errors import BenchmarkError
from ..kafka.broker import kafka_broker
from ..record import Case, Run
from ..throughput import check_names
from .check import connect, differences
from .queries import QUERIES
from .topics import visit_topics
from .visits import Visits

TURNS = 2_000_000
TURN_RATE = 1_000.0
"""Turns a second of event time."""

PRODUCTS = 100
"""So few that each gets 10,000 clicks, which q2 asks for."""

SCALERS = ("none", "latency")
INPUTS = ("generate", "kafka")
ACCEPTED, INTERVAL, MOST_WORKERS = "1s", "1s", 4
SAMPLE, TIMEOUT = 0.5, 1800.0


Given: TypeAlias = Callable[[ef.Dataflow], Visits]
"""Begins the streams in a flow."""


def run(
    *,
    turns: int,
    rate: float | None,
    accepted: str,
    scalers: Sequence[str],
    repeat: int,
    say: Callable[[str], None],
    origin: str = "generate",
    bootstrap: str | None = None,
) -> Run:
    """`rate`: turns a second, None for full speed. `accepted`: the latency that `latency` accepts. `origin`: one of `INPUTS`.

    "kafka" reads three topics, which are filled before on the broker at `bootstrap`, None for a broker of its own. Raises BenchmarkError
    for an unknown scaler or origin, a rate for topics, a job that does not end, and wrong rows.
    """
    check_names("scaler", scalers, SCALERS)
    check_names("input", [origin], INPUTS)
    if origin == "kafka" and rate is not None:
        raise BenchmarkError("benchmark psm: topics are filled before the job begins, so they have no rate: leave out --rate")
    cases, checks, wrong = [], [], []
    with connect(turns, turn_rate=TURN_RATE, products=PRODUCTS) as database, _given(origin, bootstrap, turns, rate, say) as given:
        for scaler in scalers:
            say(f"psm: scaler {scaler}")
            rates, details = [], []
            for _ in range(repeat):
                folder = Path(scratch("psm"))
                try:
                    busy = machine.busy_share()
                    seconds, latencies, decisions = _once(given, accepted if scaler == "latency" else None, folder)
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
    arguments = {"turns": turns, "from": origin, "rate": rate, "accepted": accepted, "scalers": list(scalers), "repeat": repeat}
    return record("psm", arguments, cases, checks=list(dict.fromkeys(checks)), not_measured=("more than two cores",))


@contextmanager
def _given(origin: str, bootstrap: str | None, turns: int, rate: float | None, say: Callable[[str], None]) -> Iterator[Given]:
    settings: dict[str, Any] = {"turns": turns, "turn_rate": TURN_RATE, "products": PRODUCTS}
    if origin == "generate":
        yield partial(Visits.generated, rate=rate, **settings)
        return
    with kafka_broker(bootstrap) as address, visit_topics(address, say, **settings) as topics:
        yield partial(Visits.from_topics, topics=topics)


def _once(given: Given, accepted: str | None, folder: Path) -> tuple[float, list[float], list[str]]:
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
    visits = given(flow)
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
