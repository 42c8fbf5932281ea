"""Partial key grouping: two workers for each key, and each record goes to the less loaded of them.

Nasir et al. (The Power of Both Choices, ICDE 2015). A key that two workers share has two partial results, so this is for
aggregates that are merged downstream. In a plan:

- A key group has two candidates by hash and goes whole to the one that is less loaded when its turn comes (no group is split).
- A hot key has two candidates by its own hash, and its load is split so that both are as even as possible, as if each record went to the
  less loaded one. The plan has a move for each candidate that isn't the key's worker already, with the `share` of the key's load that goes
  there; the rest stays at its source. `BalancePlan.floor` doesn't bind this balancer.

`state_bytes` counts a split key's state once per worker that gets a share: each builds its own summary.

>>> from .snapshot import GroupLoad, KeyLoad
>>> plan = TwoChoices().plan(LoadSnapshot(2, [GroupLoad(0, 0, 1.0)], [KeyLoad("JFK", 0, 1.0)]))
>>> [(move.key, move.target, move.share) for move in plan.moves if move.key], plan.imbalance_after, plan.floor
([('JFK', 1, 0.5)], 1.0, 2.0)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from xxhash import xxh3_64_intdigest

from .base import ANY_STATE, Balancer, Limits
from .placement import bytes_with_groups, group_moves, key_moves
from .plan import BalanceMove, BalancePlan
from .ring import group_points
from .snapshot import LoadSnapshot, Workers, imbalance

Shares = dict[int, float]
"""The part of a key's load by worker, each above 0, 1 in sum."""


class TwoChoices(Balancer):
    """A balancer that places groups by ascending number, then the hot keys, the hottest first."""

    name: ClassVar[str] = "two_choices"

    def plan(self, snapshot: LoadSnapshot, limits: Limits = ANY_STATE) -> BalancePlan:
        loads = snapshot.split_loads.tolist()
        groups = _place_groups(snapshot, loads)
        shares = _split_keys(snapshot, loads)
        moves, key_bytes = list(group_moves(snapshot, groups)), 0
        whole = np.array([max(split, key=lambda worker: split[worker]) for split in shares], np.int64)
        of_whole = {move.key: move for move in key_moves(snapshot, groups, whole)}
        for key, split, source, size in zip(
            snapshot.hot_keys, shares, snapshot.key_workers.tolist(), snapshot.key_bytes.tolist(), strict=True
        ):
            parts = [BalanceMove(source, worker, key=key.key, share=share) for worker, share in split.items() if worker != source]
            key_bytes += size * len(parts)
            moves.extend(parts if len(split) > 1 else filter(None, [of_whole.get(key.key)]))
        divided = sum(len(split) > 1 for split in shares)
        reason = f"the less loaded of two workers for each key group; {divided} hot keys are split over two workers, for merged aggregates"
        size = bytes_with_groups(snapshot, groups) + key_bytes
        return BalancePlan(tuple(moves), snapshot.imbalance, imbalance(np.array(loads)), snapshot.floor, size, reason)


def _place_groups(snapshot: LoadSnapshot, loads: list[float]) -> Workers:
    """Return the worker of each group; adds the groups' loads without the hot keys' to `loads`."""
    rest = snapshot.group_loads - np.bincount(snapshot.key_at, snapshot.key_loads, len(snapshot.key_groups))
    first = group_points(snapshot.group_ids, 1).tolist()
    second = group_points(snapshot.group_ids, 2).tolist()
    placed = np.zeros(len(first), np.int64)
    for at in np.argsort(snapshot.group_ids).tolist():
        one, other = _candidates(first[at], second[at], snapshot.workers)
        placed[at] = chosen = one if loads[one] <= loads[other] else other
        loads[chosen] += max(float(rest[at]), 0.0)
    return placed


def _split_keys(snapshot: LoadSnapshot, loads: list[float]) -> list[Shares]:
    """Return the split of each hot key, in the snapshot's order; adds the keys' loads to `loads`."""
    shares: list[Shares] = [{} for _ in snapshot.hot_keys]
    for at in np.argsort(-snapshot.key_loads, kind="stable").tolist():
        load, written = float(snapshot.key_loads[at]), repr(snapshot.hot_keys[at].key).encode()
        one, other = _candidates(xxh3_64_intdigest(written, 1), xxh3_64_intdigest(written, 2), snapshot.workers)
        part = min(max((loads[other] - loads[one] + load) / 2, 0.0), load) / load if load > 0 and one != other else 1.0
        for worker, share in ((one, part), (other, 1.0 - part)):
            if share > 0:
                shares[at][worker] = share
                loads[worker] += share * load
    return shares


def _candidates(first: int, second: int, workers: int) -> tuple[int, int]:
    """Return two workers, distinct if there are at least two."""
    one = first % workers
    return one, (one + 1 + second % (workers - 1)) % workers if workers > 1 else one
