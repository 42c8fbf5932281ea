"""Scaling an operator of a running job: what the steps are and when each is over.

More workers: they join, then the balancer gives them the heat. Fewer: the keys of those that leave move to the others, then they leave.
Nothing stops meanwhile. Used by the supervisor, under its lock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from ..balancer.evacuation import evacuated, highest_worker, spread
from ..balancer.policies import named
from ..engine.errors import JobBusyError
from ..engine.plan.physical import Stage
from ..engine.plan.rescale import check_parallelism
from ..engine.protocol.routing import RoutingTable
from ..scheduler.load_snapshot import hash_of
from ..scheduler.migration import Migration, MigrationState
from ..scheduler.newest import Newest
from ..scheduler.rescaling import RescaleState
from ..state.errors import EvenflowError

if TYPE_CHECKING:
    from .supervisor import Supervisor

BALANCER = "hotspot"

SPREAD_WINDOWS = 30
"""How many of the newest windows show who is hot when workers join. A plan on fewer would pick the groups that happened to have much in
them: half of an operator's load by the last few seconds may be a third of it in the next."""


class ScalingState(StrEnum):
    """What a scaling is at; the last two are final."""

    EMPTYING = "moving keys away"
    CHANGING = "changing workers"
    SPREADING = "moving keys in"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ScalingReport:
    """What `job.scale()` gives: workers before and after, seconds until the last key had moved; `problem` says why it failed."""

    number: int
    operator: str
    before: int
    after: int
    reason: str
    state: ScalingState
    seconds: float | None
    keys_moved: int
    state_bytes: int
    problem: str | None = None

    def __str__(self) -> str:
        taken = "" if self.seconds is None else f" in {self.seconds:.3f} s"
        why = self.reason if self.problem is None else f"{self.reason}; {self.problem}"
        moved = f"{self.keys_moved:,} keys, {self.state_bytes:,} bytes"
        what = f"scaling {self.number} of `{self.operator}` from {self.before} to {self.after} workers"
        return f"{what} {self.state.value}{taken}: {moved}; {why}"


@dataclass(slots=True)
class _Order:
    """`migration`, and the number of the `rescale`: the steps that were begun last."""

    number: int
    stage: str
    before: int
    after: int
    strategy: str | None
    reason: str
    begun: float
    state: ScalingState
    ended: float | None = None
    migration: Migration | None = None
    rescale: int | None = None
    problem: str | None = None


class Elasticity:
    """One scaling of a job at a time."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._orders = Newest[_Order]()

    @property
    def scaling(self) -> bool:
        """Whether an operator is being scaled."""
        return bool(self._orders) and self._orders[-1].ended is None

    @property
    def busy(self) -> bool:
        """Whether a scaling is under way, of an operator or of the job's nodes."""
        return self.scaling or self._supervisor.nodes.busy

    def scale(self, operator: str, parallelism: int, strategy: str | None = None, reason: str = "by hand") -> int:
        """Begin to give the operator so many workers; the scaling's number.

        Raises RequestError for an unknown operator or an impossible number, JobBusyError or JobNotRunningError if the job is not running,
        or something moves already.
        """
        if self._supervisor.nodes.busy:
            raise JobBusyError(f"job `{self._supervisor.core.name}`: its nodes are being scaled; wait until that is done")
        return self.begin(operator, parallelism, strategy, reason)

    def begin(self, operator: str, parallelism: int, strategy: str | None = None, reason: str = "by hand") -> int:
        """As `scale`, also as a step of scaling nodes."""
        supervisor, core = self._supervisor, self._supervisor.core
        stage = core.plan.stage_of(operator)
        check_parallelism(core.plan, stage, parallelism)
        if self.scaling:
            raise JobBusyError(f"job `{core.name}`: scaling {self._orders[-1].number} is under way ({self._orders[-1].state.value})")
        order = _Order(
            len(self._orders), stage.name, stage.parallelism, parallelism, strategy, reason, time.monotonic(), ScalingState.CHANGING
        )
        if parallelism == stage.parallelism:
            order.state, order.ended = ScalingState.DONE, order.begun
        elif stage.is_keyed and parallelism < stage.parallelism:
            order.state = ScalingState.EMPTYING
            target = evacuated(core.migrations.tables[stage.name], parallelism, self._group_loads(stage))
            number = supervisor.move(stage, strategy, target, f"{reason}: {stage.parallelism} to {parallelism} workers")
            order.migration = core.migrations.history[number]
        else:
            order.rescale = supervisor.rescale(stage, parallelism, reason)
        self._orders.append(order)
        return order.number

    def tick(self) -> None:
        """Go on with what is under way."""
        if not self.scaling:
            return
        order = self._orders[-1]
        try:
            if order.state is ScalingState.CHANGING:
                self._after_change(order)
            else:
                self._after_move(order)
        except EvenflowError as error:
            self._fail(order, str(error))

    def reports(self) -> list[ScalingReport]:
        """The newest scalings, oldest first."""
        return [self._report(order) for order in self._orders]

    def report(self, number: int) -> ScalingReport:
        """One of the newest."""
        return self._report(self._orders[number])

    def _after_change(self, order: _Order) -> None:
        core = self._supervisor.core
        assert order.rescale is not None
        rescaling = core.rescales[order.rescale]
        if rescaling.state is RescaleState.ENDED_EARLY:
            self._fail(order, rescaling.problem or "the stream ended before")
        elif rescaling.state is RescaleState.DONE:
            stage = core.plan.stage_of(order.stage)
            if stage.is_keyed and order.after > order.before:
                order.state = ScalingState.SPREADING
                order.migration = core.migrations.history[self._spread(stage, order)]
            else:
                self._end(order)

    def _after_move(self, order: _Order) -> None:
        core = self._supervisor.core
        migration = order.migration
        assert migration is not None
        if not migration.over:
            return
        if migration.state is not MigrationState.DONE:
            self._fail(order, "the keys did not all move: the stream ended, or the job went back to its last checkpoint")
        elif order.state is ScalingState.SPREADING:
            self._end(order)
        elif highest_worker(core.migrations.tables[order.stage]) >= order.after:
            self._fail(order, "keys came to workers that were to leave")
        else:
            order.state = ScalingState.CHANGING
            order.rescale = self._supervisor.rescale(core.plan.stage_of(order.stage), order.after, order.reason)

    def _spread(self, stage: Stage, order: _Order) -> int:
        """By load where it is known, else as many groups for everyone."""
        supervisor, table = self._supervisor, self._supervisor.core.migrations.tables[stage.name]
        target: RoutingTable = spread(table, stage.parallelism)
        if self._group_loads(stage).sum() > 0:
            plan = named(BALANCER).plan(supervisor.snapshot(stage.name, SPREAD_WINDOWS))
            target = plan.table(table, hash_of) if plan.moves else target
        return supervisor.move(stage, order.strategy, target, f"{order.reason}: {order.before} to {order.after} workers")

    def _group_loads(self, stage: Stage) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        loads = np.zeros(self._supervisor.core.plan.key_groups)
        for group, load in self._supervisor.load(stage.name).groups.items():
            loads[group] = load
        return loads

    def _end(self, order: _Order) -> None:
        order.state, order.ended = ScalingState.DONE, time.monotonic()

    def _fail(self, order: _Order, problem: str) -> None:
        order.state, order.ended, order.problem = ScalingState.FAILED, time.monotonic(), problem

    def _report(self, order: _Order) -> ScalingReport:
        keys = size = 0
        if order.migration is not None:
            keys, size = order.migration.keys_moved, order.migration.state_bytes
        seconds = None if order.ended is None else order.ended - order.begun
        return ScalingReport(
            order.number, order.stage, order.before, order.after, order.reason, order.state, seconds, keys, size, order.problem
        )
