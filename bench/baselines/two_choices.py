"""Partial key grouping: two workers for each key, and each record goes to the one with less load.

Nasir et al. (The Power of Both Choices, ICDE 2015). A key that two workers share has two partial results, so this suits aggregates that
are merged downstream. No routing table of a job can express it:

- A key group has two candidates by hash. The one with less load takes all of it.
- A hot key has two candidates by its own hash, and its load is split so that both are as even as possible, as if each record went to the
  one with less load.

>>> from ...balancer.snapshot import GroupLoad, KeyLoad
>>> placed = two_choices(LoadSnapshot(2, [GroupLoad(0, 0, 1.0)], [KeyLoad("JFK", 0, 1.0)]))
>>> placed.shares, placed.imbalance
([{1: 0.5, 0: 0.5}], 1.0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xxhash import xxh3_64_intdigest

from ...balancer.snapshot import LoadSnapshot, Workers, imbalance
from .consistent import group_points

Shares = dict[int, float]
"""The parts of a key's load by worker; their sum is 1."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The worker of each key group, the shares of each hot key, and the imbalance of the workers."""

    groups: Workers
    shares: list[Shares]
    imbalance: float


def two_choices(snapshot: LoadSnapshot) -> Placement:
    """Place groups by ascending number, then the hot keys, the hottest first."""
    loads = snapshot.split_loads.tolist()
    groups, shares = _place_groups(snapshot, loads), _split_keys(snapshot, loads)
    return Placement(groups, shares, imbalance(np.array(loads)))


def _place_groups(snapshot: LoadSnapshot, loads: list[float]) -> Workers:
    """Return the worker of each group; adds the groups' loads without the hot keys' to `loads`."""
    rest = snapshot.group_loads - np.bincount(snapshot.key_at, snapshot.key_loads, len(snapshot.key_groups))
    first, second = (group_points(snapshot.group_ids, choice).tolist() for choice in (1, 2))
    placed = np.zeros(len(first), np.int64)
    for at in np.argsort(snapshot.group_ids).tolist():
        one, other = _candidates(first[at], second[at], snapshot.workers)
        placed[at] = chosen = one if loads[one] <= loads[other] else other
        loads[chosen] += max(float(rest[at]), 0.0)
    return placed


def _split_keys(snapshot: LoadSnapshot, loads: list[float]) -> list[Shares]:
    """Return the shares of each hot key, in the snapshot's order; adds the keys' loads to `loads`."""
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
