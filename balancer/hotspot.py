"""Hotspot-diminishing: lowers the hottest worker's load, a piece at a time, for the least state moved.

Invariant: every change lowers the hottest worker's load and leaves the worker that takes the piece below it, so the loads' sum of
squares falls and the search ends.

A piece is a key group or a hot key with its own route. The hottest worker h, with load L(h), gives piece p to the coldest worker
c, where p is the one with the most

    min(p, gap - p, need) / (bytes + 1),    gap = L(h) - L(c),    need = L(h) - tolerance * floor * mean:

the needed part of the load that it takes off the hotter worker, per byte of state moved. A piece for which `gap - p` is small
would only move the hotspot: it stays, and other pieces move. A group with one key that has most of its load is opened: the key
and the rest become separate pieces. When no piece of the hottest worker can move, its hottest group with known hot keys is
opened; when there is none, a piece is swapped for a colder one of one of the coldest workers. When that doesn't help either, the
search ends.

A hot key of a join that alone is hotter than the mean is split over several workers before the search, and gathered again when it
has cooled (`splitting.py`).

The design follows AutoFlow's hotspot diminishing; the greedy step weighs balance against migration cost as Gedik does
(Partitioning functions for stateful data parallelism in stream processing, VLDB Journal 2014).

>>> from .snapshot import GroupLoad, KeyLoad
>>> groups = [GroupLoad(0, 0, 5.0, 100), GroupLoad(1, 0, 1.0, 100), GroupLoad(2, 1, 2.0, 100)]
>>> plan = Hotspot().plan(LoadSnapshot(2, groups, [KeyLoad("JFK", 0, 2.0, 8)]))
>>> [(move.key, move.source, move.target) for move in plan.moves], plan.imbalance_after, plan.state_bytes
([('JFK', 0, 1)], 1.0, 8)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import ClassVar

import numpy as np

from .base import ANY_STATE, Balancer, Limits
from .pieces import Pieces
from .placement import plan_to
from .plan import BalancePlan
from .snapshot import LoadSnapshot, Workers
from .splitting import needless, reachable_floor, reshaped

LEAST_EFFECT = 0.1
"""A move that lowers the hotter worker's load by less than this part of the piece would only move the hotspot."""

SWAP_PARTNERS = 16
"""The number of coldest workers that are tried for a swap."""

HOT_IN_GROUP = 0.5
"""A key with this part of its group's load is the group's hot key..."""

HOT_ON_WORKER = 0.25
"""...if it also has this part of a worker's mean load: only few keys should have their own route."""

COLD = 1e-3
"""A routed key with no more than this part of a worker's mean load is no longer hot."""

_TINY = 1e-9


class Hotspot(Balancer):
    """The default balancer, which moves load off the hottest worker."""

    name: ClassVar[str] = "hotspot"

    def plan(self, snapshot: LoadSnapshot, limits: Limits = ANY_STATE) -> BalancePlan:
        changed = reshaped(snapshot, limits)
        if not (changed.splits or changed.gathers):
            return _placed(snapshot, limits)
        left = limits.max_bytes - changed.state_bytes if limits.max_bytes is not None else None
        plan = _placed(changed.snapshot, replace(limits, max_bytes=left))
        return replace(
            plan,
            imbalance_before=snapshot.imbalance,
            state_bytes=plan.state_bytes + changed.state_bytes,
            reason="; ".join((*changed.reasons, f"then {plan.reason}")),
            splits=changed.splits,
            gathers=changed.gathers,
        )

    def floor(self, snapshot: LoadSnapshot, limits: Limits = ANY_STATE) -> float:
        return reachable_floor(snapshot, limits)

    def needless_splits(self, snapshot: LoadSnapshot) -> frozenset[Hashable]:
        return needless(snapshot)


def _placed(snapshot: LoadSnapshot, limits: Limits) -> BalancePlan:
    """Return the plan that moves pieces and changes no split."""
    before, floor = snapshot.imbalance, snapshot.floor
    good = f"{limits.tolerance:g} times the floor of {floor:.2f}"
    hot = f"worker {int(snapshot.worker_loads().argmax())} has {before:.2f} times the mean load"
    if before <= limits.tolerance * floor:
        return _stay(snapshot, f"{hot}, which is within {good}")
    search = _Search(snapshot, limits)
    reached = search.run()
    obstacle = "" if reached else f"; {search.obstacle()}"
    groups = search.pieces.group_workers()
    keys = _cold_ones_home(snapshot, groups, search.pieces.key_workers(), limits)
    plan = plan_to(snapshot, groups, keys, f"{hot}, over {good}{obstacle}")
    return plan if plan.imbalance_after < before else _stay(snapshot, plan.reason)


class _Search:
    """A search that moves pieces off the hottest worker until its load is low enough, or no move helps."""

    def __init__(self, snapshot: LoadSnapshot, limits: Limits) -> None:
        self.pieces = Pieces(snapshot, limits)
        mean = snapshot.mean
        self.goal = limits.tolerance * snapshot.floor * mean
        self._unaffordable = False
        self._least = _TINY * mean
        self.pieces.open_heat(HOT_IN_GROUP, HOT_ON_WORKER * mean)

    def run(self) -> bool:
        """Search, and return True if the goal was reached."""
        loads = self.pieces.loads
        while loads[hottest := int(loads.argmax())] > self.goal + self._least:
            if not (self._give(hottest) or self.pieces.open_hottest(hottest) or self._swap(hottest)):
                return False
        return True

    def obstacle(self) -> str:
        """Return why the goal was not reached."""
        if self._unaffordable:
            return "max_bytes allows no further move"
        worker = int(self.pieces.loads.argmax())
        return f"no move of one piece or swap of two lowers the load of worker {worker} further{self.pieces.heaviest(worker)}"

    def _give(self, source: int) -> bool:
        """Move the best piece of `source` to the coldest worker, which can take the most. Returns True if there was one."""
        pieces, target = self.pieces, int(self.pieces.loads.argmin())
        gap, need = float(pieces.loads[source] - pieces.loads[target]), float(pieces.loads[source]) - self.goal
        best, best_score, best_gain = -1, 0.0, self._least
        for per_byte, negative, piece in pieces.of(source):
            load = -negative
            if -per_byte < best_score or (-per_byte == best_score and load <= best_gain):
                break
            if gap - load < LEAST_EFFECT * load:
                continue
            gain, cost = min(load, gap - load, need), pieces.cost(piece, target)
            score = gain / (max(cost, 0) + 1)
            if (score, gain) <= (best_score, best_gain) or gain <= self._least:
                continue
            if pieces.affordable(cost):
                best, best_score, best_gain = piece, score, gain
            else:
                self._unaffordable = True
        if best >= 0:
            pieces.move(best, target)
        return best >= 0

    def _swap(self, source: int) -> bool:
        """Swap a piece of `source` for a colder piece of one of the coldest workers. Returns True if that helps."""
        pieces = self.pieces
        for target in np.argsort(pieces.loads, kind="stable")[:SWAP_PARTNERS].tolist():
            pair = self._best_swap(source, target)
            if pair is not None:
                pieces.move(pair[0], target)
                pieces.move(pair[1], source)
                return True
        return False

    def _best_swap(self, source: int, target: int) -> tuple[int, int] | None:
        """Return the swap with the most gain per byte, if one gains LEAST_EFFECT of the need.

        For a piece of load p, a partner near p - gap / 2 makes both workers equal, and one near p - need gives the needed gain.
        """
        pieces = self.pieces
        gap, need = float(pieces.loads[source] - pieces.loads[target]), float(pieces.loads[source]) - self.goal
        given, taken = sorted(pieces.of(source), key=_by_load), sorted(pieces.of(target), key=_by_load)
        if not given or not taken:
            return None
        p, q = -np.array([entry[1] for entry in given]), -np.array([entry[1] for entry in taken])
        near = np.concatenate([np.searchsorted(-q, -(p - wanted)) for wanted in (gap / 2, need)])
        best, best_score = None, 0.0
        for mine, theirs in zip(np.tile(np.arange(len(p)), 4).tolist(), np.concatenate([near, near - 1]).tolist(), strict=True):
            if not 0 <= theirs < len(q):
                continue
            difference = float(p[mine] - q[theirs])
            gain = min(difference, gap - difference, need)
            cost = pieces.cost(given[mine][2], target) + pieces.cost(taken[theirs][2], source)
            score = gain / (max(cost, 0) + 1)
            if gain >= max(LEAST_EFFECT * need, self._least) and score > best_score and pieces.affordable(cost):
                best, best_score = (given[mine][2], taken[theirs][2]), score
        return best


def _cold_ones_home(snapshot: LoadSnapshot, group_workers: Workers, key_workers: Workers, limits: Limits) -> Workers:
    """Return `key_workers` with routed keys without load back at their groups, so that routes don't accumulate."""
    homes = group_workers[snapshot.key_at]
    routed = snapshot.key_workers != snapshot.group_workers[snapshot.key_at]
    resting = np.array([key.key in limits.fixed_keys for key in snapshot.hot_keys], np.bool_)
    cold = routed & (snapshot.key_loads <= COLD * snapshot.mean) & ~resting
    if limits.max_bytes is not None:
        cold &= snapshot.key_bytes == 0
    return np.where(cold, homes, key_workers)


def _by_load(entry: tuple[float, float, int]) -> tuple[float, int]:
    return entry[1], entry[2]


def _stay(snapshot: LoadSnapshot, reason: str) -> BalancePlan:
    return plan_to(snapshot, snapshot.group_workers, snapshot.key_workers, reason)
