"""Moves keyed state between workers of simulated jobs at random, while the stream runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

import pyarrow as pa

from ...engine.plan.physical import Stage
from ...engine.protocol.routing import RoutingTable
from ...scheduler.configs.job import LIVE
from ...scheduler.job.core import JobCore
from ...scheduler.protocol.effects import JobState
from ...state.hashing import hash64
from ..simulation.actions import ACTIONS, COORDINATOR, Action, Choice, World, poll

COMMON_KEYS = (*hash64(pa.array(range(10))).tolist(), *hash64(pa.array(list("abcdefghij"))).tolist())
"""Hashes of keys in tests' flows, which get routes of their own."""

READINESS, WHILE_MOVING = 0.2, (0.03, 0.1, 0.4)
"""Shares of the moments at which a source may be polled: a stream of a few rows would end before a move otherwise."""

MOST_READY = max(READINESS, *WHILE_MOVING)


def with_moves(most: int = 5, strategies: Sequence[str] = LIVE) -> tuple[Action, ...]:
    """Return `ACTIONS` with at most `most` migrations in mid-stream, each by one of `strategies`; sources read more slowly meanwhile.

    `check(make_flow, seeds, actions=with_moves())`
    """

    def move_state(world: World) -> Iterator[Choice]:
        core = world.coordinator.core
        migrations = core.migrations
        if len(migrations.history) < most and core.state is JobState.RUNNING and not core.busy:
            stages = [stage for stage in core.plan.stages if _may_move(world, stage)]
            if stages:
                yield Choice(COORDINATOR, "migrate", migrate, (world, stages, strategies))

    return *(action for action in ACTIONS if action is not poll), poll_slowly, move_state


def poll_slowly(world: World) -> Iterable[Choice]:
    """Poll as `poll` does, but sources are often not ready, and seldom during a change."""
    drawn = world.random.random()
    return poll(world) if drawn < MOST_READY and drawn < _readiness(world.coordinator.core) else ()


def _readiness(core: JobCore) -> float:
    if not core.busy:
        return READINESS
    return WHILE_MOVING[0] if core.operator_scaling.busy else WHILE_MOVING[len(core.migrations.history) % len(WHILE_MOVING)]


def random_target(random: Random, table: RoutingTable, workers: int) -> RoutingTable:
    """Return a table near or far from `table`, with routes of their own for a few keys; some split keys are no longer split."""
    groups = table.groups.copy()
    for group in random.sample(range(len(groups)), random.choice((3, len(groups) // 2, len(groups)))):
        groups[group] = random.randrange(workers)
    keys = {key: worker for key, worker in table.keys.items() if random.random() < 0.5}
    keys |= {random.choice(COMMON_KEYS): random.randrange(workers) for _ in range(random.choice((0, 0, 3)))}
    splits = {key: split for key, split in table.splits.items() if random.random() < 0.5}
    return RoutingTable(groups, keys, splits)


def migrate(world: World, stages: Sequence[Stage], strategies: Sequence[str]) -> None:
    """Begin a migration of one of `stages` to a random table, by one of `strategies` that the job has not used, if there is one."""
    core, random = world.coordinator.core, world.random
    stage = random.choice(stages)
    target = random_target(random, core.migrations.tables[stage.name], stage.parallelism)
    used = {migration.strategy for migration in core.migrations.history}
    strategy = random.choice([strategy for strategy in strategies if strategy not in used] or strategies)
    world.coordinator.do(lambda: core.reconfiguration.move(stage, strategy, target, "drawn at random"))


def _may_move(world: World, stage: Stage) -> bool:
    """True if the stage has keyed state, and another worker for it."""
    if not stage.is_keyed or stage.parallelism < 2:
        return False
    workers = [world.workers.get(worker) for worker in stage.workers]
    return any(worker is not None and worker.task.rows_in for worker in workers)
