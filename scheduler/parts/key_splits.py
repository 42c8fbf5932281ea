"""Routing tables with a hot key of a join split over several workers, or no longer split.

Invariant: a key keeps its home; a split only changes which workers share the key with it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from ...engine.errors import RequestError
from ...engine.plan.physical import Stage
from ...engine.protocol.routing import RoutingTable
from ...engine.protocol.split_route import Dealt, SplitRoute
from ..load.load_snapshot import hash_of


def with_split(stage: Stage, table: RoutingTable, key: Hashable, to: Sequence[int], dealt: Dealt) -> RoutingTable:
    """Return the table in which the key's home shares it with exactly the workers `to`, and the rows of the side `dealt` are
    dealt.

    Raises RequestError for an operator that can't deal that side, a key of another number of columns, and workers that it doesn't
    have.
    """
    hashed = hash_in(stage, key)
    if not stage.dealable:
        problem = "only joins can, and a full join or one in sessions can't, because neither of its sides can be dealt"
        raise RequestError(f"operator `{stage.name}` can't split a key over several workers: {problem}")
    if dealt not in stage.dealable:
        sides = " or ".join(f"dealt={side!r}" for side in stage.dealable)
        raise RequestError(f"operator `{stage.name}` can't deal the rows of its {dealt!r} side: give {sides}")
    wrong = [worker for worker in to if not isinstance(worker, int) or isinstance(worker, bool) or not 0 <= worker < stage.parallelism]
    if wrong:
        there = f"its {stage.parallelism} workers are 0 to {stage.parallelism - 1}"
        raise RequestError(f"operator `{stage.name}` has no worker {wrong[0]!r}: {there}")
    home = int(table.owners(np.array([hashed], np.uint64))[0])
    split = SplitRoute(home, tuple(to), dealt)
    if not split.others:
        raise RequestError(f"operator `{stage.name}`: key {key!r} is at worker {home}: give to=[...] with other workers to share it")
    return RoutingTable(table.groups, table.keys, {**table.splits, hashed: split})


def without_split(stage: Stage, table: RoutingTable, key: Hashable) -> RoutingTable:
    """Return the table in which only its home has the key. Raises RequestError if it is not split."""
    hashed = hash_in(stage, key)
    if hashed not in table.splits:
        raise RequestError(f"operator `{stage.name}`: key {key!r} is not split over several workers")
    return RoutingTable(table.groups, table.keys, {other: split for other, split in table.splits.items() if other != hashed})


def refuse_split_keys(operator: str, table: RoutingTable, keys: Sequence[Hashable]) -> None:
    """Raise RequestError if one of these keys, which are to move, is split."""
    for key in keys:
        if (split := table.splits.get(hash_of(key))) is not None:
            workers = ", ".join(map(str, split.workers))
            raise RequestError(f"operator `{operator}`: key {key!r} is split over the workers {workers}: call job.unsplit first")


def hash_in(stage: Stage, key: Hashable) -> int:
    """Return the hash64 of a key of the stage. Raises RequestError for a key of another number of columns."""
    columns, given = len(stage.keys), len(key) if isinstance(key, tuple) else 1
    if stage.keys and columns != given:
        raise RequestError(f"operator `{stage.name}` has keys of {columns} columns, and {key!r} has {given}")
    return hash_of(key)
