"""Operators of simulated jobs that get more and fewer workers at random, while the stream runs and keyed state moves."""

from __future__ import annotations

from collections.abc import Iterator

from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.requests import Scale
from .actions import COORDINATOR, Action, Choice, World
from .moving import with_moves

MOST_WORKERS = 5

SHRINKS = 0.6
"""Share of the changes that take workers away, where there are several: their keys move first, so that the stream often ends before."""


def with_scaling(most: int = 4, *, keyed_only: bool = False) -> tuple[Action, ...]:
    """`with_moves()`, and at most `most` changes of the number of workers of any operator, sources and sinks too.

    `keyed_only`: of operators with keyed state alone, for flows that rely on the order of a source's records: what a source worker hands on
    to another comes by another channel.
    """

    def scale(world: World) -> Iterator[Choice]:
        core = world.coordinator.core
        if len(core.operator_scaling.operations) < most and core.state is JobState.RUNNING and not core.busy:
            yield Choice(COORDINATOR, "scale", _scale, (world, keyed_only))

    return *with_moves(), scale


def _scale(world: World, keyed_only: bool) -> None:
    core, random = world.coordinator.core, world.random
    stages = [stage for stage in core.plan.stages if stage.can_be_scaled and (stage.is_keyed or not keyed_only)]
    if stages:
        stage = random.choice(stages)
        fewer, more = range(1, stage.parallelism), range(stage.parallelism + 1, MOST_WORKERS + 1)
        shrinks = fewer and (not more or random.random() < SHRINKS)
        world.coordinator.ask(Scale(stage.name, random.choice(fewer if shrinks else more)))
