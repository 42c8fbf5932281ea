"""An operator with 1 GB of state goes from 4 to 6 workers while hot keys get most rows: latency before and meanwhile, and the duration.

The case is DRRS's (100,000 keys, Zipf exponent 1.5; Gu et al., 2025), with states of 10 kB. A row's clock starts when it was due. The
baseline, `restart`, stops the job with a savepoint and starts it with more workers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import evenflow as ef

from ...scheduler.configs.balance import OFF
from ...scheduler.configs.job import LIVE
from ..harness import machine
from ..harness.benchmark import Argument, Benchmark, Say, repeat, some_of
from ..harness.conditions import scratch
from ..harness.jobs import drain, rows_read, until
from ..harness.preload import PreloadedSource
from ..harness.record import Case, Findings, Verdict
from ..harness.trace import TraceSink, between, percentile_of
from .run import AFTER, OPERATOR, PIECE, RESTART, STEADY, WAIT, longest_wait

KEYS, STATE_BYTES, ZIPF = 100_000, 10_000, 1.5
FROM, TO = 4, 6
RATE = 10_000
STRATEGIES = ("batched", "lazy")
MOST_P99 = 2.0
"""The target: p99 meanwhile over the steady p99."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A scaling: latencies in ms, `seconds` from the call until all state has moved. `busy`: of the machine, before."""

    steady: float
    p99: float
    largest: float
    seconds: float
    busy: float


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Scale by each strategy and by `restart`, in turn."""
    strategies = tuple(dict.fromkeys((*given.strategies, RESTART)))
    found: dict[str, list[Growth]] = {strategy: [] for strategy in strategies}
    for number in range(given.repeat):
        for strategy in strategies:
            found[strategy].append(one := measure(strategy, given.rate, number))
            say(f"{strategy}: {one.seconds:.1f} s; p99 {one.steady:.1f} ms, {one.p99:.1f} meanwhile, largest {one.largest:.1f}")
    cases = [case for strategy in strategies for case in cases_of(strategy, found[strategy])]
    facts = {"keys": KEYS, "state_bytes": STATE_BYTES, "zipf": ZIPF, "workers": [FROM, TO]}
    return Findings(cases, verdicts(found), facts=facts)


def touch(state: bytes | None, row: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """Count in a state of 10 kB, and pass the row on."""
    count = int.from_bytes(state[:8], "little") if state is not None else 0
    return (count + 1).to_bytes(STATE_BYTES, "little"), row


def measure(strategy: str, rate: float, number: int) -> Growth:
    """Scale the operator once, in a job of its own."""
    busy = machine.busy_share()
    with scratch("growth") as folder:
        sink, flow = TraceSink(), ef.Dataflow(f"bench-growth-{strategy}-{number}")
        counts = flow.read(PreloadedSource(KEYS, rate, zipf=ZIPF)).key_by("key").stateful_map(touch).named(OPERATOR).parallelism(FROM)
        counts.write(sink)
        checkpoint = ef.CheckpointConfig(str(folder) if strategy == RESTART else None, interval=None)
        job = flow.run(config=ef.JobConfig(parallelism=1, balance=ef.BalanceConfig(OFF), checkpoint=checkpoint))
        until(lambda: rows_read(job, OPERATOR) >= KEYS, f"the job has {KEYS:,} keys", WAIT, every=0.2)
        time.sleep(STEADY)
        begun = time.time()
        job.scale(OPERATOR, TO, strategy=strategy, timeout=WAIT)
        ended = time.time()
        time.sleep(AFTER)
        drain(job, WAIT)
    trace = sink.trace()
    steady, moving = between(trace, begun - STEADY / 2, begun - PIECE), between(trace, begun, ended)
    largest = longest_wait(between(trace, begun - PIECE, ended + 1.0))
    return Growth(percentile_of(steady, 0.99), percentile_of(moving, 0.99), largest, ended - begun, busy)


def cases_of(strategy: str, found: Sequence[Growth]) -> list[Case]:
    """Return the measurements of a strategy. A restart has its stall only."""
    details = tuple({"busy_before": one.busy} for one in found)
    figures = {"largest": ("ms", [one.largest for one in found]), "duration": ("s", [one.seconds for one in found])}
    if strategy != RESTART:
        figures |= {"steady p99": ("ms", [one.steady for one in found]), "p99 while it moves": ("ms", [one.p99 for one in found])}
    return [Case(f"{strategy}/{name}", unit, "lower", tuple(values), details) for name, (unit, values) in figures.items()]


def verdicts(found: Mapping[str, Sequence[Growth]]) -> list[Verdict]:
    """Judge the live strategies by the median of their repeats."""
    ratios = {strategy: median(one.p99 / one.steady for one in each) for strategy, each in found.items() if strategy != RESTART}
    return [Verdict(f"{strategy}: p99 meanwhile / steady p99", ratio, MOST_P99, "lower") for strategy, ratio in ratios.items()]


BENCHMARK = Benchmark(
    "growth",
    "latency while an operator with 1 GB of state goes from 4 to 6 workers",
    (
        Argument("--strategies", some_of(LIVE), list(STRATEGIES), f"compared with {RESTART}"),
        repeat(1, "scalings by each"),
        Argument("--rate", int, RATE, "rows per second"),
    ),
    run,
    ("more than one machine", "more processors for the workers that join", "rows that restart delays after its stall"),
)
