"""Skewed words on Ray: a job with the workers that DS2 asks for. DS2 first only advises, and then may rebalance keys."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import evenflow as ef

from . import machine
from .errors import BenchmarkError
from .record import Case, Verdict
from .scaling_job import COUNT, STATEFUL_MAP, WORDS, StepsSource, skewed_count

NEEDS: Mapping[float, float] = {0.2: 2.4, 0.5: 1.6, 0.7: 1.22}
"""By the hot key's share, the workers that the words need; all within the floor, so that one worker can count the hot key's words."""

START, INTERVAL = 6.0, 2.0
LOOK = 5.0
"""Seconds over which a rate is measured."""

LOOKS = 4
"""Of that length, at most, until the target is reached: DS2 may ask for more than one rebalance."""

WAIT = 30.0
REACHED = 0.97


@dataclass(frozen=True, slots=True)
class Hot:
    """Parts of the demand that are counted, at most 1; `workers` at the beginning and at the end; `asked`: what DS2 alone would change."""

    alone: float
    balanced: float
    workers: tuple[int, int]
    keys_moved: int
    asked: tuple[str, ...]
    busy: float


def measure(share: float) -> Hot:
    """A job of its own. Raises BenchmarkError if DS2 has not asked for a rebalance in time, or it failed."""
    busy = machine.busy_share()
    need = NEEDS[share]
    workers, demand = ceil(need), need / COUNT
    source = StepsSource([(START + WAIT + (LOOKS + 2) * LOOK, demand / WORDS)], time.time() + START)
    config = ef.JobConfig(
        parallelism=workers,
        autoscale=ef.AutoscaleConfig("ds2", mode="advise", interval=INTERVAL, max_parallelism=8),
        metrics=ef.MetricsConfig(window="500ms"),
    )
    job = skewed_count(f"bench-scaling-hot-{share:.0%}".rstrip("%"), source, config, share)
    try:
        time.sleep(START + LOOK)
        alone = counted(job) / demand
        asked = tuple(f"{name} {number}" for record in job.decisions() for name, number in record.decided.parallelism.items())
        job.autoscaler("ds2")
        await_rebalance(job)
        balanced = settled(job, demand)
        now = sum(name.startswith(f"{STATEFUL_MAP}-") for name in job.status().workers)
        moved = sum(report.keys_moved for report in job.migrations())
    finally:
        job.cancel()
        job.wait(WAIT)
    return Hot(min(alone, 1.0), min(balanced, 1.0), (workers, now), moved, asked, busy)


def counted(job: ef.Job) -> float:
    """Words a second, over the next `LOOK` seconds."""
    begun, before = time.monotonic(), words(job)
    time.sleep(LOOK)
    return (words(job) - before) / (time.monotonic() - begun)


def settled(job: ef.Job, demand: float) -> float:
    """The part of the demand that is counted once the target is reached, or in the last look."""
    part = 0.0
    for _ in range(LOOKS):
        part = counted(job) / demand
        if part >= REACHED:
            break
    return part


def words(job: ef.Job) -> int:
    """Words counted so far."""
    return sum(figures.rows_in for figures in job.metrics() if figures.operator == STATEFUL_MAP)


def await_rebalance(job: ef.Job) -> None:
    """Wait until a decision to rebalance has been carried out."""
    deadline = time.monotonic() + WAIT
    while not any(record.decided.rebalance and record.done.startswith("carried out") for record in job.decisions()):
        if time.monotonic() > deadline:
            told = [f"{record.decided.reason}; {record.done}" for record in job.decisions()]
            raise BenchmarkError(
                f"benchmark scaling: DS2 has not rebalanced any keys in job `{job.name}` within {WAIT:g} s; it decided {told}"
            )
        time.sleep(0.1)


def cases_of(share: float, hot: Hot) -> list[Case]:
    """What is reported of a share."""
    name, details = f"Ray, hot key {share:.0%}, words for {NEEDS[share]:g} workers", ({"busy_before": hot.busy},)
    return [
        Case(f"{name}, ds2/of the demand", "", "higher", (hot.alone,), details),
        Case(f"{name}, ds2 and balancer/of the demand", "", "higher", (hot.balanced,), details),
        Case(f"{name}, ds2 and balancer/workers", "", "lower", tuple(map(float, hot.workers)), details),
        Case(f"{name}, ds2 and balancer/keys moved", "", "lower", (float(hot.keys_moved),), details),
    ]


def line_of(share: float, hot: Hot) -> str:
    """One line on a share."""
    asked = ", ".join(hot.asked) or "no other number of workers"
    return (
        f"Ray, hot key {share:.0%}: {hot.alone:.1%} of the demand with ds2 alone, which asks for {asked}; {hot.balanced:.1%} with the "
        f"balancer, {hot.keys_moved} keys moved, {hot.workers[1]} workers"
    )


def verdicts(found: Mapping[float, Hot]) -> list[Verdict]:
    """DS2 alone misses the target, with the balancer it reaches it."""
    if not found:
        return []
    return [
        Verdict(
            "Ray: the most of the demand that DS2 alone gets through, of any hot key",
            max(h.alone for h in found.values()),
            REACHED,
            "lower",
        ),
        Verdict("Ray: the least of it with the balancer", min(h.balanced for h in found.values()), REACHED, "higher"),
    ]
