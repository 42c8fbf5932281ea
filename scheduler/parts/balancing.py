"""Automatic balancing of one operator: takes its workers' windows and sometimes returns a plan, without I/O.

Invariant: every window of the operator is used once and in order. While keys of the operator move nothing is planned, and the
cool-down begins when they have arrived: measurements during a move belong to two placements.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import numpy.typing as npt

from ...balancer.plan import BalancePlan
from ...balancer.policies import named
from ...balancer.snapshot import LoadSnapshot
from ...balancer.trigger import Trigger, TriggerSettings
from ...balancer.verdict import Verdict
from ...balancer.window import OperatorWindows
from ...engine.errors import RequestError
from ...engine.protocol.ids import WorkerId
from ...engine.protocol.routing import RoutingTable
from ...engine.protocol.split_route import Dealt
from ...engine.time.duration import Duration, seconds
from ..configs.balance import balancer_problem
from ..configs.job import JobConfig
from ..load.load_snapshot import hashes_of, owned_groups, worker_load
from ..load.window import WorkerWindow
from ..protocol.view import BalanceObservation

MOST_NAMES = 65_536
"""Number of hot keys whose hashes are remembered, the newest ones: keys stay hot for many windows."""

GOAL = 1.03
"""The goal of plans, in multiples of the floor: a plan that just reaches 1.05 on measured loads misses it on later ones."""


def trigger_settings(config: JobConfig) -> TriggerSettings:
    """Return the job's settings in windows of its metrics, rounded up."""

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
        split_keys=balance.split_hot_keys,
    )


def check_balancer(name: str) -> str:
    """Return the name unchanged. Raises RequestError unless it is `off` or a balancer that a job can use."""
    if (problem := balancer_problem(name)) is not None:
        raise RequestError(problem)
    return name


@dataclass(frozen=True, slots=True)
class PlannedMigration:
    """The table to migrate to, and the plan behind it, in which keys have their names."""

    target: RoutingTable
    plan: BalancePlan


class Balancing:
    """The balancing of one operator. `add` takes its workers' windows, `decide` is called a few times a window.

    `workers`: their names by index; `dealable`: the sides of the operator whose rows may be dealt when a hot key is split.
    `observation`: the result for the newest window, None before the first. An operator whose hottest worker is busy for less than
    `config.balance.least_busy` of the time stays unchanged. Raises RequestError for a balancer that can't be used.
    """

    def __init__(self, policy: str, workers: tuple[WorkerId, ...], config: JobConfig, dealable: tuple[Dealt, ...] = ()) -> None:
        self.policy, self.workers = policy, workers
        self.observation: BalanceObservation | None = None
        self._index = {worker: index for index, worker in enumerate(workers)}
        self._windows = OperatorWindows(seconds(config.metrics.window), dealable=dealable)
        self._trigger = Trigger(named(check_balancer(policy)), trigger_settings(config))
        self._least_busy = config.balance.least_busy
        self._added: list[WorkerWindow] = []
        """The windows that `_take_in` has not taken."""
        self._hashes: dict[Hashable, int] = {}
        self._table: RoutingTable | None = None
        self._owned: list[npt.NDArray[np.int64]] = []
        """The key groups of each worker by `_table`, the newest routing table."""

    def add(self, window: WorkerWindow, table: RoutingTable) -> None:
        """Add a window of one of the operator's workers, while `table` is the routing table."""
        if table is not self._table:
            self._take_in()
            self._table, self._owned = table, owned_groups(table, len(self.workers))
        self._added.append(window)

    def _take_in(self) -> None:
        """Take the added windows, all at once: to hash a key alone takes as long as to hash a hundred."""
        if self._table is None:
            return
        added, self._added = self._added, []
        self._remember_hashes(dict.fromkeys(key for window in added for key, _ in window.hot_keys))
        for window in added:
            index = self._index[window.worker]
            self._windows.add(worker_load(index, [window], self._owned[index], len(self._table), self._hashes.__getitem__))

    def decide(self, table: RoutingTable, *, moving: bool) -> PlannedMigration | None:
        """Return the migration to begin now, None if there is none. `moving`: True while keys of the operator move."""
        self._take_in()
        decided = None
        while (snapshot := self._windows.take(table, len(self._index))) is not None:
            if moving or float(snapshot.worker_loads().max()) < self._least_busy:
                self._trigger.interrupt()
                self._note(snapshot, Verdict.MOVING if moving else Verdict.IDLE)
                continue
            plan = self._trigger.observe(snapshot, self._windows.records)
            self._note(snapshot, self._trigger.verdict)
            if plan is not None:
                decided = PlannedMigration(plan.table(table, _as_hash), self._named(plan))
                moving = True
        return decided

    def _note(self, snapshot: LoadSnapshot, verdict: Verdict) -> None:
        self.observation = BalanceObservation(snapshot.imbalance, snapshot.floor, verdict)

    def _remember_hashes(self, keys: Iterable[Hashable]) -> None:
        """Look up the hashes of keys that are not known yet."""
        new = [key for key in keys if key not in self._hashes]
        if len(self._hashes) + len(new) > MOST_NAMES:
            self._hashes = dict(list(self._hashes.items())[MOST_NAMES // 2 :])
            new = [key for key in keys if key not in self._hashes]
        self._hashes.update(zip(new, hashes_of(new), strict=True))

    def _named(self, plan: BalancePlan) -> BalancePlan:
        names = {hashed: key for key, hashed in self._hashes.items()}
        reason = re.sub(r"hot key (\d+)", lambda match: f"hot key {names.get(int(match[1]), match[1])!r}", plan.reason)

        def name(key: Hashable) -> Hashable:
            return names.get(_as_hash(key), key)

        return replace(
            plan,
            moves=tuple(move if move.group is not None else replace(move, key=name(move.key)) for move in plan.moves),
            splits=tuple(replace(split, key=name(split.key)) for split in plan.splits),
            gathers=tuple(map(name, plan.gathers)),
            reason=reason,
        )


def _as_hash(key: Hashable) -> int:
    """Return a hot key unchanged: snapshots made of windows know hot keys by their hash64."""
    if not isinstance(key, int):
        raise TypeError(f"a hot key of a window is its hash64, not {key!r}")
    return key
