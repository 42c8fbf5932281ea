"""Splits hot keys of joins over several workers, and joins them again, at random in simulated jobs while keyed state moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import pyarrow as pa

from ...engine.keys.encoding import key_hashes
from ...engine.plan.physical import Stage
from ...engine.protocol.routing import RoutingTable
from ...engine.protocol.split_route import SplitRoute
from ...scheduler.configs.job import LIVE
from ...scheduler.protocol.effects import JobState
from ...state.hashing import hash64
from ..simulation.actions import COORDINATOR, Action, Choice, World

_LETTERS, _NUMBERS = pa.array([*"abcd"]).take(pa.array(np.repeat(range(4), 9))), pa.array([*range(9)] * 4)
COMMON_KEYS = {1: hash64(pa.array([*"abcdlr", None])).tolist(), 2: key_hashes([_LETTERS, _NUMBERS], "join").tolist()}
"""Hashes of keys in the flows with joins, by their number of columns."""


def with_splits(actions: Sequence[Action], most: int = 6, strategies: Sequence[str] = LIVE) -> tuple[Action, ...]:
    """Return `actions` with at most `most` changes of the split keys and their workers; `actions` may move keys too.

    `check(make_flow, seeds, actions=with_splits(with_moves()))`
    """

    def split(world: World) -> Iterator[Choice]:
        core = world.coordinator.core
        done = sum(migration.reason == REASON for migration in core.migrations.history)
        if core.state is JobState.RUNNING and not core.busy and done < most:
            stages = [stage for stage in core.plan.stages if stage.parallelism > 1 and stage.dealable]
            if stages:
                yield Choice(COORDINATOR, "split", _split, (world, stages, strategies))

    return *actions, split


REASON = "split at random"


def random_splits(random: Random, table: RoutingTable, stage: Stage) -> RoutingTable:
    """Return the table with other splits: some are removed, changed or added."""
    known = COMMON_KEYS[len(stage.keys)]
    splits = {key: split for key, split in table.splits.items() if random.random() < 0.6}
    for key in random.sample(known, random.choice((2, len(known) // 2))):
        home = int(table.owners(np.array([key], np.uint64))[0])
        others = tuple(worker for worker in range(stage.parallelism) if worker != home and random.random() < 0.7)
        if others:
            splits[key] = SplitRoute(home, others, random.choice(stage.dealable))
    return RoutingTable(table.groups, table.keys, splits)


def _split(world: World, stages: Sequence[Stage], strategies: Sequence[str]) -> None:
    core, random = world.coordinator.core, world.random
    stage = random.choice(stages)
    target = random_splits(random, core.migrations.tables[stage.name], stage)
    strategy = random.choice(strategies)
    world.coordinator.do(lambda: core.reconfiguration.move(stage, strategy, target, REASON))
