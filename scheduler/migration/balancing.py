"""Automatic balancing of one operator: its workers' windows in, now and then a plan out, without I/O.

Invariant: every window of the operator is looked at once and in order. While keys of the operator move nothing is planned, and the
cool-down begins when they have arrived: what is measured meanwhile belongs to two placements.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from ...balancer.plan import BalancePlan
from ...balancer.policies import named
from ...balancer.trigger import Trigger, TriggerSettings
from ...balancer.window import OperatorWindows, WorkerLoad
from ...engine.errors import RequestError
from ...engine.protocol.ids import WorkerId
from ...engine.protocol.routing import RoutingTable
from ...engine.time.duration import Duration, seconds
from ..config import JobConfig
from ..configs.balance import balancer_problem
from ..load.window import WorkerWindow
from .load_snapshot import hash_of

MOST_NAMES = 65_536
"""Hot keys whose hashes are remembered, the newest: they are hot window after window."""

GOAL = 1.03
"""What plans aim for, in multiples of the floor: one that just reaches 1.05 by the loads as measured misses it by those that come."""


def trigger_settings(config: JobConfig) -> TriggerSettings:
    """The job's settings in windows of its metrics, rounded up."""

    def windows(duration: Duration) -> int:
        return ceil(seconds(duration) / seconds(config.metrics.window))

    balance = config.balance
    return TriggerSettings(
        threshold=balance.threshold,
        windows=max(1, windows(balance.after)),
        cooldown=windows(balance.cooldown),
        rest=windows(balance.rest),
        tolerance=GOAL,
        max_bytes=balance.max_bytes,
    )


def check_balancer(name: str) -> str:
    """The name itself. Raises RequestError unless it is `off` or a balancer that a job can use."""
    if (problem := balancer_problem(name)) is not None:
        raise RequestError(problem)
    return name


@dataclass(frozen=True, slots=True)
class Rebalance:
    """The table to migrate to, and the plan behind it, in which keys have their names."""

    target: RoutingTable
    plan: BalancePlan


class Balancing:
    """One operator's. `add` takes its workers' windows as they come, `decide` is asked a few times a window.

    `workers`: their names by index. An operator whose hottest worker is busy for less than `config.balance.least_busy` of the time is left
    as it is. Raises RequestError for a balancer that can't be used.
    """

    def __init__(self, policy: str, workers: tuple[WorkerId, ...], config: JobConfig) -> None:
        self.policy, self.workers = policy, workers
        self._index = {worker: index for index, worker in enumerate(workers)}
        self._windows = OperatorWindows(seconds(config.metrics.window))
        self._trigger = Trigger(named(check_balancer(policy)), trigger_settings(config))
        self._least_busy = config.balance.least_busy
        self._hashes: dict[Hashable, int] = {}

    def add(self, window: WorkerWindow, table: RoutingTable) -> None:
        """A window of one of the operator's workers, while `table` is the routing table."""
        worker = self._index[window.worker]
        owned = int(np.count_nonzero(table.groups == worker))
        hashes = [self._hash(key) for key, _ in window.hot_keys]
        length = max(window.length, 1e-9)
        per_record = float(window.load.sum()) / window.keyed_records / length if window.keyed_records else 0.0
        self._windows.add(
            WorkerLoad(
                worker,
                window.start,
                window.groups.astype(np.int64),
                window.load / length,
                np.full(len(window.groups), window.state_bytes // max(owned, 1), np.int64),
                np.array(hashes, np.uint64),
                np.array([count * per_record for _, count in window.hot_keys], np.float64),
            )
        )

    def decide(self, table: RoutingTable, *, moving: bool) -> Rebalance | None:
        """What to migrate to now, None if it is not time to. `moving`: keys of the operator are on their way."""
        decided = None
        while (snapshot := self._windows.take(table, len(self._index))) is not None:
            if moving or float(snapshot.worker_loads().max()) < self._least_busy:
                continue
            plan = self._trigger.observe(snapshot)
            if plan is not None:
                decided = Rebalance(plan.table(table, _as_hash), self._named(plan))
                moving = True
        return decided

    def _hash(self, key: Hashable) -> int:
        known = self._hashes.get(key)
        if known is None:
            if len(self._hashes) >= MOST_NAMES:
                self._hashes = dict(list(self._hashes.items())[MOST_NAMES // 2 :])
            known = self._hashes[key] = hash_of(key)
        return known

    def _named(self, plan: BalancePlan) -> BalancePlan:
        names = {hashed: key for key, hashed in self._hashes.items()}
        reason = re.sub(r"hot key (\d+)", lambda match: f"hot key {names.get(int(match[1]), match[1])!r}", plan.reason)
        moves = (move if move.group is not None else replace(move, key=names.get(_as_hash(move.key), move.key)) for move in plan.moves)
        return replace(plan, moves=tuple(moves), reason=reason)


def _as_hash(key: Hashable) -> int:
    """Snapshots made of windows know hot keys by their hash64."""
    if not isinstance(key, int):
        raise TypeError(f"a hot key of a window is its hash64, not {key!r}")
    return key
