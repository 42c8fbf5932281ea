"""An accident-free disturbance for simulated jobs: keyed state is moved between workers, at random, while the stream runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import pyarrow as pa

from ..balancer.strategies import STRATEGIES, plan_steps
from ..engine.handover_step import HandoverStep
from ..engine.routing import RoutingTable
from ..scheduler.job import JobState
from ..state.hashing import hash64
from .actions import COORDINATOR, Action, Choice, World

LIVE_STRATEGIES = tuple(name for name in STRATEGIES if name != "restart")
"""The strategies that need no restart of the job."""

COMMON_KEYS = (*hash64(pa.array(range(10))).tolist(), *hash64(pa.array(list("abcdefghij"))).tolist())
"""Hashes of keys that tests like to use, to be given routes of their own."""


def moving(most: int = 5, strategies: Sequence[str] = LIVE_STRATEGIES) -> Action:
    """Something that happens besides `ACTIONS`: at most `most` migrations, each by one of `strategies`.

    `simulate(flow, seed, actions=(*ACTIONS, moving()))`
    """

    def move_state(world: World) -> Iterator[Choice]:
        core = world.coordinator.core
        migrations = core.migrations
        if core.state is JobState.RUNNING and migrations.current is None and len(migrations.history) < most:
            yield Choice(COORDINATOR, "migrate", _migrate, (world, strategies))

    return move_state


def random_target(random: Random, table: RoutingTable, workers: int) -> RoutingTable:
    """A table near or far from `table`, with routes of their own for a few keys."""
    groups = table.groups.copy()
    for group in random.sample(range(len(groups)), random.randint(1, len(groups))):
        groups[group] = random.randrange(workers)
    keys = {key: worker for key, worker in table.keys.items() if random.random() < 0.5}
    keys |= {random.choice(COMMON_KEYS): random.randrange(workers) for _ in range(random.choice((0, 0, 3)))}
    return RoutingTable(groups, keys)


def _migrate(world: World, strategies: Sequence[str]) -> None:
    core, random = world.coordinator.core, world.random
    stages = [s for s in core.plan.stages if s.is_keyed and s.parallelism > 1]
    if not stages:
        return
    stage = random.choice(stages)
    table = core.migrations.tables[stage.name]
    target = random_target(random, table, stage.parallelism)
    strategy = random.choice(strategies)
    steps = [HandoverStep(0, step.moves, step.lazy, step.pause) for step in plan_steps(strategy, table, target)]
    _, effects = core.migrate(stage, strategy, steps, "drawn at random", world.now)
    world.coordinator.carry_out(effects)
