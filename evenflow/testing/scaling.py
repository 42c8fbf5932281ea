"""Workers that join and leave simulated jobs at random, while the stream runs and keyed state moves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..balancer.strategies import plan_steps
from ..engine.plan.physical import Stage
from ..engine.protocol.handover_step import HandoverStep
from ..engine.protocol.routing import RoutingTable
from ..scheduler.config import LIVE
from ..scheduler.job_effects import JobState
from .actions import COORDINATOR, Action, Choice, World
from .moving import with_moves

MOST_WORKERS = 5


def with_scaling(most: int = 4, *, keyed_only: bool = False) -> tuple[Action, ...]:
    """`with_moves()`, and at most `most` changes of the number of workers of any operator, sources and sinks too.

    `keyed_only`: of operators with keyed state alone, for flows that rely on the order of a source's records: what a source worker hands on
    to another comes by another channel.
    """

    def scale(world: World) -> Iterator[Choice]:
        core = world.coordinator.core
        if core.state is JobState.RUNNING and core.rescaling is None and core.migrations.current is None and len(core.rescales) < most:
            yield Choice(COORDINATOR, "rescale", _rescale, (world, keyed_only))

    return *with_moves(), scale


def _rescale(world: World, keyed_only: bool) -> None:
    """Grow a stage; or shrink it, for which its keys must go first: then it shrinks another time, if they still are gone."""
    core, random = world.coordinator.core, world.random
    stages = [stage for stage in core.plan.stages if stage.fixed_parallelism is None and (stage.is_keyed or not keyed_only)]
    if not stages:
        return
    emptied = [stage for stage in stages if stage.is_keyed and _highest(core.migrations.tables[stage.name]) + 1 < stage.parallelism]
    stage = random.choice(emptied) if emptied and random.random() < 0.7 else random.choice(stages)
    count = random.randint(1, MOST_WORKERS)
    if stage.is_keyed and stage in emptied:
        count = random.randint(_highest(core.migrations.tables[stage.name]) + 1, stage.parallelism)
    elif stage.is_keyed and count < stage.parallelism:
        _empty(world, stage, count)
        return
    if count != stage.parallelism:
        _, effects = core.rescale(stage, count, "drawn at random", world.now)
        world.coordinator.carry_out(effects)


def _empty(world: World, stage: Stage, count: int) -> None:
    """Move all keys of the workers that are to leave."""
    core, random = world.coordinator.core, world.random
    table = core.migrations.tables[stage.name]
    target = RoutingTable((table.groups % count).astype(np.uint16), {key: worker % count for key, worker in table.keys.items()})
    strategy = random.choice(LIVE)
    steps = [HandoverStep(0, step.moves, step.lazy, step.pause) for step in plan_steps(strategy, table, target)]
    _, effects = core.migrate(stage, strategy, steps, "workers leave", world.now)
    world.coordinator.carry_out(effects)


def _highest(table: RoutingTable) -> int:
    return max(int(table.groups.max()), *table.keys.values(), 0)
