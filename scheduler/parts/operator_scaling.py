"""Scaling an operator of a running job: what the steps are and when each is over.

To add workers: they join, then the balancer moves keys to them. To remove workers: their keys move to the others, then they leave. The
stream goes on meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...balancer.evacuation import evacuated, highest_worker, spread
from ...balancer.policies import named
from ...engine.errors import JobBusyError
from ...engine.plan.physical import Stage
from ...engine.plan.rescale import check_parallelism
from ...engine.protocol.routing import RoutingTable
from ...state.errors import EvenflowError
from ..load.load_snapshot import hash_of
from ..protocol.reports import MigrationState, ScalingReport, ScalingState
from ..record.job_record import JobRecord
from ..record.migrations import Migration
from ..record.newest import Newest
from ..record.rescaling import RescaleState, Rescaling
from .mover import Mover
from .reconfiguration import Reconfiguration

BALANCER = "hotspot"

SPREAD_WINDOWS = 30
"""How many of the newest windows show who is hot when workers join. A plan on fewer would pick the groups that happened to have much in
them: half of an operator's load by the last few seconds may be a third of it in the next."""


@dataclass(slots=True)
class _Order:
    """`migration`, `rescaling`: the steps that were begun last."""

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
    rescaling: Rescaling | None = None
    problem: str | None = None


class OperatorScaling:
    """The scalings of one job, one at a time."""

    def __init__(self, job: JobRecord, reconfiguration: Reconfiguration, mover: Mover) -> None:
        self._job, self._reconfiguration, self._mover = job, reconfiguration, mover
        self._orders = Newest[_Order]()

    @property
    def busy(self) -> bool:
        """Whether an operator is being scaled."""
        newest = self._orders.newest
        return newest is not None and newest.ended is None

    def scale(self, operator: str, parallelism: int, strategy: str | None = None, reason: str = "by hand") -> int:
        """Begin to give the operator `parallelism` workers; the scaling's number.

        Raises RequestError for an unknown operator or an impossible number, JobBusyError or JobNotRunningError if the job is not running,
        or something moves already.
        """
        job = self._job
        stage = job.plan.stage_of(operator)
        check_parallelism(job.plan, stage, parallelism)
        if self.busy:
            raise JobBusyError(f"job `{job.name}`: scaling {self._orders[-1].number} is under way ({self._orders[-1].state.value})")
        order = _Order(len(self._orders), stage.name, stage.parallelism, parallelism, strategy, reason, job.now, ScalingState.CHANGING)
        if parallelism == stage.parallelism:
            order.state, order.ended = ScalingState.DONE, order.begun
        elif stage.is_keyed and parallelism < stage.parallelism:
            order.state = ScalingState.EMPTYING
            target = evacuated(job.migrations.tables[stage.name], parallelism, self._group_loads(stage))
            order.migration = self._mover.move(stage, strategy, target, f"{reason}: {stage.parallelism} to {parallelism} workers")
        else:
            order.rescaling = self._reconfiguration.change_workers(stage, parallelism)
        self._orders.append(order)
        return order.number

    def advance(self) -> None:
        """Go on with what is under way."""
        if not self.busy:
            return
        order = self._orders[-1]
        try:
            if order.state is ScalingState.CHANGING:
                self._after_change(order)
            else:
                self._after_move(order)
        except EvenflowError as error:
            self._fail(order, str(error))

    @property
    def begun(self) -> int:
        """The number of scalings so far."""
        return len(self._orders)

    def reports(self) -> list[ScalingReport]:
        """The newest scalings, oldest first."""
        return [self._report(order) for order in self._orders]

    def report(self, number: int) -> ScalingReport:
        """One of the newest."""
        return self._report(self._orders[number])

    def _after_change(self, order: _Order) -> None:
        rescaling = order.rescaling
        assert rescaling is not None
        if rescaling.state is RescaleState.ENDED_EARLY:
            self._fail(order, rescaling.problem or "the stream ended before")
        elif rescaling.state is RescaleState.DONE:
            stage = self._job.plan.stage_of(order.stage)
            if stage.is_keyed and order.after > order.before:
                order.state = ScalingState.SPREADING
                order.migration = self._spread(stage, order)
            else:
                self._end(order)

    def _after_move(self, order: _Order) -> None:
        migration = order.migration
        assert migration is not None
        if not migration.over:
            return
        if migration.state is not MigrationState.DONE:
            self._fail(order, "the keys did not all move: the stream ended, or the job went back to its last checkpoint")
        elif order.state is ScalingState.SPREADING:
            self._end(order)
        elif highest_worker(self._job.migrations.tables[order.stage]) >= order.after:
            self._fail(order, "keys came to workers that were to leave")
        else:
            order.state = ScalingState.CHANGING
            order.rescaling = self._reconfiguration.change_workers(self._job.plan.stage_of(order.stage), order.after)

    def _spread(self, stage: Stage, order: _Order) -> Migration:
        """By load where it is known, else as many groups for everyone."""
        table = self._job.migrations.tables[stage.name]
        target: RoutingTable = spread(table, stage.parallelism)
        if self._group_loads(stage).sum() > 0:
            plan = named(BALANCER).plan(self._job.snapshot(stage.name, SPREAD_WINDOWS))
            target = plan.table(table, hash_of) if plan.moves else target
        return self._mover.move(stage, order.strategy, target, f"{order.reason}: {order.before} to {order.after} workers")

    def _group_loads(self, stage: Stage) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        loads = np.zeros(self._job.plan.key_groups)
        for group, load in self._job.metrics.load(stage.name).groups.items():
            loads[group] = load
        return loads

    def _end(self, order: _Order) -> None:
        order.state, order.ended = ScalingState.DONE, self._job.now

    def _fail(self, order: _Order, problem: str) -> None:
        order.state, order.ended, order.problem = ScalingState.FAILED, self._job.now, problem

    def _report(self, order: _Order) -> ScalingReport:
        keys = size = 0
        if order.migration is not None:
            keys, size = order.migration.keys_moved, order.migration.state_bytes
        seconds = None if order.ended is None else order.ended - order.begun
        return ScalingReport(
            number=order.number,
            state=order.state,
            reason=order.reason,
            began_at=order.begun,
            seconds=seconds,
            problem=order.problem,
            operator=order.stage,
            before=order.before,
            after=order.after,
            keys_moved=keys,
            state_bytes=size,
        )
