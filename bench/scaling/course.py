"""Measures of a scaling policy under changing demand: decisions, settling time, and over- and under-provisioning.

Invariant: each figure is per phase, a time of constant demand. All times are seconds of one clock.

>>> phases = (Phase(0.0, 10.0, 100.0, {"count": 2}),)
>>> course = Course(phases, ((1.0, {"count": 1}), (2.0, {"count": 1}), (3.0, {"count": 3}), (4.0, {"count": 2})), (1.0, 3.0))
>>> course.steps, course.reactions, course.settled, course.provisioned, course.turns
([2], [1.0], [4.0], (1.0, 2.0), 1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..harness.record import Case

Sizes = Mapping[str, int]
"""Workers by operator."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A time of constant demand (records/s), with the fewest workers that are enough: the `optimum`."""

    begun: float
    ended: float
    demand: float
    optimum: Sizes

    def holds(self, time: float) -> bool:
        """Return True if the time is in the phase; its end belongs to the next one."""
        return self.begun <= time < self.ended


@dataclass(frozen=True, slots=True)
class Course:
    """The course of a job: `samples` of (time, workers), evenly spaced; the times of `decisions`; `latency_p99` in ms.

    `lost`: results that are missing or repeated, None where none can be lost.
    """

    phases: tuple[Phase, ...]
    samples: tuple[tuple[float, Sizes], ...]
    decisions: tuple[float, ...]
    latency_p99: float | None = None
    lost: int | None = None

    @property
    def steps(self) -> list[int]:
        """Decisions in each phase."""
        return [sum(map(phase.holds, self.decisions)) for phase in self.phases]

    @property
    def reactions(self) -> list[float]:
        """Seconds from the beginning of each phase to its first decision, without the phases that have none."""
        firsts = ((phase, next(filter(phase.holds, self.decisions), None)) for phase in self.phases)
        return [first - phase.begun for phase, first in firsts if first is not None]

    @property
    def settled(self) -> list[float]:
        """Seconds from the beginning of each phase to its last change of workers."""
        return [self._settled(phase) for phase in self.phases]

    @property
    def off(self) -> list[int]:
        """The number of workers too many or too few at the end of each phase."""
        found = []
        for phase in self.phases:
            last = self._within(phase)[-1][1]
            found.append(sum(abs(last[name] - workers) for name, workers in phase.optimum.items()))
        return found

    @property
    def provisioned(self) -> tuple[float, float]:
        """Worker-seconds above the optimum, and below it."""
        over = under = 0.0
        for phase in self.phases:
            for _, sizes in self._within(phase):
                differences = [sizes[name] - workers for name, workers in phase.optimum.items()]
                over += sum(d for d in differences if d > 0)
                under -= sum(d for d in differences if d < 0)
        spacing = self.samples[1][0] - self.samples[0][0] if len(self.samples) > 1 else 0.0
        return over * spacing, under * spacing

    @property
    def turns(self) -> int:
        """The number of times that an operator's changes turned their direction within a phase."""
        return sum(_turns([sizes[name] for _, sizes in self._within(phase)]) for phase in self.phases for name in phase.optimum)

    @property
    def drawn(self) -> dict[str, Any]:
        """The series of a plot: `time`, and for each operator `workers` and `optimum` by time."""
        within = [(sample, phase) for phase in self.phases for sample in self._within(phase)]
        names = list(self.phases[0].optimum)
        return {
            "time": [round(sample[0], 2) for sample, _ in within],
            "workers": {name: [sample[1][name] for sample, _ in within] for name in names},
            "optimum": {name: [phase.optimum[name] for _, phase in within] for name in names},
        }

    def cases(self, name: str, details: tuple[Mapping[str, Any], ...] = ()) -> list[Case]:
        """Return its measurements; some have a value per phase."""
        over, under = self.provisioned
        figures: dict[str, tuple[str, Sequence[float]]] = {
            "steps": ("", self.steps),
            "time to converge": ("s", self.settled),
            "workers off the optimum": ("", self.off),
            "over-provisioned": ("worker-s", [over]),
            "under-provisioned": ("worker-s", [under]),
            "oscillations": ("", [self.turns]),
        }
        if self.latency_p99 is not None:
            figures["p99 latency"] = "ms", [self.latency_p99]
        if self.lost is not None:
            figures["results lost"] = "", [self.lost]
        return [Case(f"{name}/{what}", unit, "lower", tuple(map(float, values)), details) for what, (unit, values) in figures.items()]

    def line(self, name: str) -> str:
        """Describe it in one line."""
        over, under = self.provisioned
        latency = "" if self.latency_p99 is None else f", p99 {self.latency_p99:,.0f} ms"
        lost = "" if self.lost is None else f", {self.lost} results lost"
        settled = ", ".join(f"{seconds:.0f}" for seconds in self.settled)
        return (
            f"{name}: {_list(self.steps)} steps, settled after {settled} s, {_list(self.off)} workers off, {over:.0f} worker-s over and "
            f"{under:.0f} under, {self.turns} oscillations{latency}{lost}"
        )

    def _within(self, phase: Phase) -> list[tuple[float, Sizes]]:
        return [sample for sample in self.samples if phase.holds(sample[0])]

    def _settled(self, phase: Phase) -> float:
        changes = [b[0] for a, b in pairwise(self._within(phase)) if dict(a[1]) != dict(b[1])]
        return changes[-1] - phase.begun if changes else 0.0


def _turns(sizes: list[int]) -> int:
    changes = [b - a for a, b in pairwise(sizes) if a != b]
    return sum(a * b < 0 for a, b in pairwise(changes))


def _list(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
