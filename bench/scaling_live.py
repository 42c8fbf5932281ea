"""The word count on Ray: demand doubles and halves, the job's own autoscaler acts, and every result is counted."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import evenflow as ef

from . import machine
from .errors import BenchmarkError
from .record import Verdict
from .scaling_course import Course, Phase
from .scaling_job import COUNT, FLAT_MAP, SPLIT, STATEFUL_MAP, WORDS, StepsSource, lost, word_count, workers_of
from .scaling_policies import MOST_INTERVALS
from .trace import curve, percentile_of

START = 6.0
"""Seconds that the processes get before the first sentence is due."""

LENGTH, DEMANDS = 22.0, (60.0, 120.0, 60.0)
INTERVAL, SAMPLE = 2.0, 0.25
LATENCY_TARGET = "1s"
MOST_STEPS = 1
"""Of DS2: waits don't get longer when there are more workers."""

WAIT = 120.0


@dataclass(frozen=True, slots=True)
class Lived:
    """`curve`: (seconds since the first sentence was due, p99, largest latency) by half a second, `reasons`: what was decided, and why."""

    course: Course
    curve: list[tuple[float, float, float]]
    reasons: tuple[str, ...]
    busy: float


def optimum(demand: float) -> dict[str, int]:
    """The fewest workers for this rate of sentences, computed from the sleeps alone.

    >>> optimum(60.0), optimum(120.0)
    ({'flat_map': 2, 'stateful_map': 2}, {'flat_map': 3, 'stateful_map': 3})
    """
    return {FLAT_MAP: ceil(demand * SPLIT), STATEFUL_MAP: ceil(demand * WORDS * COUNT)}


def measure(policy: str) -> Lived:
    """A job of its own, from one worker each. Raises BenchmarkError if it hasn't read and counted everything in time."""
    busy = machine.busy_share()
    begun = time.time() + START
    source = StepsSource([(LENGTH, demand) for demand in DEMANDS], begun)
    config = ef.JobConfig(
        autoscale=ef.AutoscaleConfig(policy, interval=INTERVAL, max_parallelism=8, latency_target=LATENCY_TARGET),
        metrics=ef.MetricsConfig(window="500ms"),
    )
    job, sink = word_count(f"bench-scaling-{policy}", source, config)
    samples = watched(job, (FLAT_MAP, STATEFUL_MAP), begun, LENGTH * len(DEMANDS) + WAIT)
    decisions = job.decisions()
    job.wait(WAIT)
    phases = tuple(Phase(n * LENGTH, (n + 1) * LENGTH, demand, optimum(demand)) for n, demand in enumerate(DEMANDS))
    trace, scaled = sink.trace(), tuple(d.time - begun for d in decisions if d.decided.parallelism)
    course = Course(phases, tuple(samples), scaled, percentile_of(trace, 0.99), lost(sink, source))
    told = tuple(f"{d.time - begun:.1f} s: {dict(d.decided.parallelism)}, {d.decided.reason}; {d.done}" for d in decisions)
    return Lived(course, curve(trace, begun, 0.5), told, busy)


def watched(job: ef.Job, operators: Sequence[str], begun: float, longest: float) -> list[tuple[float, dict[str, int]]]:
    """The workers of `operators`, four times a second until the job has ended; times are seconds since `begun`.

    Raises BenchmarkError if the job has not ended `longest` seconds after `begun`, and cancels it.
    """
    samples = []
    while not job.status().state.final:
        samples.append((time.time() - begun, workers_of(job, operators)))
        if time.time() > begun + longest:
            job.cancel()
            raise BenchmarkError(f"the job `{job.name}` has not ended {longest:g} s after it began to read")
        time.sleep(SAMPLE)
    return samples


def verdicts(lived: Mapping[str, Lived]) -> list[Verdict]:
    """DS2's targets, and that no policy loses a result."""
    found = []
    if "ds2" in lived:
        course = lived["ds2"].course
        slowest = max(course.reactions, default=float("inf")) / INTERVAL
        found += [
            Verdict("Ray: DS2's most steps after a change of demand", max(course.steps), MOST_STEPS, "lower"),
            Verdict("Ray: DS2's slowest reaction, policy intervals", slowest, MOST_INTERVALS, "lower"),
            Verdict("Ray: DS2's most workers off the optimum at the end of a phase", max(course.off), 0, "lower"),
        ]
    if lived:
        found.append(
            Verdict("Ray: results lost or repeated, all policies", sum(one.course.lost or 0 for one in lived.values()), 0, "lower")
        )
    return found
