"""Changes the number of workers of simulated jobs' operators at random, while the stream runs and keyed state moves."""

from __future__ import annotations

from collections.abc import Iterator

from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.requests import Scale
from ..simulation.actions import COORDINATOR, Action, Choice, World
from .moving import with_moves

MOST_WORKERS = 5

SHRINKS = 0.6
"""The share of scale-ins among the changes, if there are several workers: their keys move first, so the stream often ends before."""


def with_scaling(most: int = 4, *, keyed_only: bool = False) -> tuple[Action, ...]:
    """Return `with_moves()` with at most `most` changes of the number of workers of any operator, including sources and sinks.

    `keyed_only`: only operators with keyed state, for flows that rely on the order of a source's records: after a change of sources,
    records arrive on other channels.
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
