"""Runs a scaling policy and a simulated cluster in a closed loop: the policy's decisions change the figures that it sees next.

>>> source = ModelOperator("source", rate=1000.0, demand=lambda time: 300.0)
>>> model = ClusterModel([source, ModelOperator("count", rate=100.0)], [("source", "count")])
>>> from evenflow.scheduler.policies.ds2 import Ds2
>>> course = closed_loop(model, Controller(Ds2()), 120.0)
>>> course.steps, course.final, course.turns("count")
(1, {'source': 1, 'count': 3}, 0)
"""

from __future__ import annotations

from dataclasses import dataclass

from ...scheduler.policies.controller import Controller, DecisionRecord
from .cluster_model import ClusterModel, ModelOperator

__all__ = ["ClusterModel", "Controller", "LoopCourse", "LoopSample", "ModelOperator", "closed_loop"]


@dataclass(frozen=True, slots=True)
class LoopSample:
    """One second: the workers of each operator, the unread records of the sources, the records that each operator has processed so far."""

    time: float
    parallelism: dict[str, int]
    backlog: float
    processed: dict[str, float]


@dataclass(frozen=True, slots=True)
class LoopCourse:
    """The decisions of a run, and its samples second by second."""

    decisions: tuple[DecisionRecord, ...]
    samples: tuple[LoopSample, ...]

    @property
    def steps(self) -> int:
        """The number of decisions."""
        return len(self.decisions)

    @property
    def final(self) -> dict[str, int]:
        """The workers of each operator at the end."""
        return self.samples[-1].parallelism

    @property
    def settled_at(self) -> float:
        """The time from which the number of workers didn't change any more, in seconds."""
        return next((sample.time for sample in reversed(self.samples) if sample.parallelism != self.final), 0.0)

    def sizes(self, operator: str) -> list[int]:
        """List the operator's numbers of workers, one after the other, each once while it lasts."""
        sizes: list[int] = []
        for sample in self.samples:
            if sizes[-1:] != [sample.parallelism[operator]]:
                sizes.append(sample.parallelism[operator])
        return sizes

    def turns(self, operator: str) -> int:
        """Count the changes of direction, from fewer to more workers or back."""
        sizes = self.sizes(operator)
        return sum((b - a) * (c - b) < 0 for a, b, c in zip(sizes, sizes[1:], sizes[2:], strict=False))


def closed_loop(model: ClusterModel, controller: Controller, seconds: float) -> LoopCourse:
    """Let a controller run a simulated cluster for some virtual time, looking at it every second."""
    samples, end = [], model.time + seconds
    waiting = False
    while model.time < end:
        model.advance(1.0)
        sizes = model.parallelism
        samples.append(LoopSample(model.time, sizes, model.backlog, {name: model.processed(name) for name in sizes}))
        if waiting and not model.reconfiguring:
            controller.carried_out(model.time)
            waiting = False
        if controller.due(model.time) and model.time >= model.settings.interval_s:
            decision = controller.observe(model.time, model.snapshot())
            if decision is not None:
                model.carry_out(decision)
                waiting = True
    return LoopCourse(controller.history, tuple(samples))
