"""DS2's word count on a simulated cluster: demand doubles and halves, every policy in closed loop, over half an hour of model time each.

The optimum is known: the fewest workers whose rates together meet the demand. Latency is that of records which leave in the order in which
they came: it includes the backlogs, and none of the chance of single records.

>>> course = simulate("ds2", 0.0)
>>> course.steps, course.off
([1, 1, 1], [0, 0, 0])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from ...scheduler.policies.dataflow.settings import PolicySettings
from ...scheduler.policies.registry import named
from ...testing.load_model.closed_loop import ClusterModel, Controller, LoopSample, ModelOperator, closed_loop
from ..harness.record import Verdict
from .course import Course, Phase

LENGTH = 600.0
"""Seconds of a phase."""

DEMANDS = (240.0, 480.0, 240.0)
"""Sentences/s."""

WORDS = 20
OPERATORS = (ModelOperator("source", 5000.0), ModelOperator("flat_map", 100.0, selectivity=WORDS), ModelOperator("count", 1000.0))
"""An instance splits 100 sentences/s or counts 1,000 words/s, as in DS2's Heron job, by the second instead of the minute."""

OVERHEADS = (0.0, 0.02)
"""The cost of every further instance for each of an operator's: none, so that scaling is linear, or 2 % of the first one's rate."""

SETTINGS = PolicySettings(latency_target_ms=100, max_parallelism=64)
OWN: Mapping[str, Mapping[str, Any]] = {"latency": {"slowest": 2}}
"""Two operators of the chain can be slow at a time. With 1, `latency` keeps adding workers to the one that waits for the other."""

MOST_STEPS, MOST_INTERVALS = 3, 2


def simulate(policy: str, overhead: float) -> Course:
    """Simulate a job that starts with one worker per operator."""
    source, *others = OPERATORS
    operators = [replace(source, demand=demand_at), *(replace(operator, overhead=overhead) for operator in others)]
    edges = [("source", "flat_map"), ("flat_map", "count")]
    phases = tuple(Phase(n * LENGTH, (n + 1) * LENGTH, demand, optimum(demand, overhead)) for n, demand in enumerate(DEMANDS))
    model = ClusterModel(operators, edges, SETTINGS)
    driven = closed_loop(model, Controller(named(policy, **OWN.get(policy, {}))), phases[-1].ended)
    decided = tuple(record.time for record in driven.decisions)
    samples = tuple((sample.time, sample.parallelism) for sample in driven.samples)
    return Course(phases, samples, decided, latency_p99(driven.samples))


def demand_at(time: float) -> float:
    """Return the demand at that time, sentences/s."""
    return DEMANDS[min(int(time / LENGTH), len(DEMANDS) - 1)]


def optimum(demand: float, overhead: float) -> dict[str, int]:
    """Return the fewest workers of each operator after the source that together meet the demand."""
    found, arriving = {}, demand
    for operator in OPERATORS[1:]:
        model = replace(operator, overhead=overhead)
        workers = ceil(arriving / operator.rate)
        while workers * model.rate_of(workers) < arriving * (1 - 1e-9):
            workers += 1
        found[operator.name] = workers
        arriving *= operator.selectivity
    return found


def latency_p99(samples: tuple[LoopSample, ...]) -> float:
    """Return the latency (ms) that 99 % of the sentences do not exceed. Sentences not counted by the end wait until the end."""
    times = np.array([sample.time for sample in samples])
    came = np.array([sample.processed["source"] + sample.backlog for sample in samples])
    done = np.array([sample.processed["count"] / WORDS for sample in samples])
    reached = np.interp(came, done, times, right=times[-1])
    order = np.argsort(latency := np.maximum(reached - times, 0.0))
    weights = np.diff(came, prepend=0.0)[order].cumsum()
    return float(latency[order][np.searchsorted(weights, 0.99 * weights[-1])]) * 1000


def verdicts(courses: Mapping[tuple[str, float], Course]) -> list[Verdict]:
    """Judge DS2 by its targets."""
    mine = {overhead: course for (policy, overhead), course in courses.items() if policy == "ds2"}
    if not mine:
        return []
    slowest = max(reaction for course in mine.values() for reaction in course.reactions) / SETTINGS.interval_s
    bent = [steps for overhead, course in mine.items() if overhead for steps in course.steps]
    return [
        Verdict("simulated, linear: DS2's most steps after a change of demand", max(mine[0.0].steps), 1, "lower"),
        Verdict("simulated, not linear: DS2's most steps after a change of demand", max(bent), MOST_STEPS, "lower"),
        Verdict("simulated: DS2's slowest reaction, policy intervals", slowest, MOST_INTERVALS, "lower"),
        Verdict("simulated: DS2's most workers off the optimum at the end of a phase", max(max(c.off) for c in mine.values()), 0, "lower"),
    ]
