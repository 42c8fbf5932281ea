"""Scaling an operator of a running job: the steps, and when each is over.

To add workers: they join, then the balancer moves keys to them. To remove workers: their keys move to the others, then they
leave. The stream goes on meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...balancer.evacuation import evacuated, highest_worker, spread
from ...balancer.policies import named
from ...engine.errors import JobBusyError, RequestError
from ...engine.plan.physical import Stage
from ...engine.plan.rescale import check_parallelism
from ...engine.protocol.routing import RoutingTable
from ..load.load_snapshot import hash_of
from ..policies.nodes.placement import ClusterView
from ..protocol.reports import ScalingReport, ScalingState
from ..record.job_record import JobRecord
from ..record.migrations import Migration
from ..record.operation import Operation
from ..record.rescaling import Rescaling
from .reconfiguration import Reconfiguration
from .stepwise import Stepwise

BALANCER = "hotspot"

NOT_ALL_MOVED = "the keys did not all move: the stream ended, or the job was restored from its last checkpoint"

SPREAD_WINDOWS = 30
"""The newest windows by which keys are placed on joining workers. Fewer windows are misleading: half of an operator's load in the
last few seconds may be a third of it in the next.
"""


@dataclass(slots=True)
class Scaling(Operation[ScalingState]):
    """A change of the number of workers of one operator. `migration`, `rescaling`: the steps that were begun last."""

    stage: str
    before: int
    after: int
    strategy: str | None
    migration: Migration | None = None
    rescaling: Rescaling | None = None

    def report(self) -> ScalingReport:
        """Return the scaling as `job.scale()` shows it."""
        moved = self.migration
        return ScalingReport(
            number=self.number,
            state=self.state,
            reason=self.reason,
            began_at=self.begun,
            seconds=self.seconds,
            problem=self.problem,
            operator=self.stage,
            before=self.before,
            after=self.after,
            keys_moved=0 if moved is None else moved.keys_moved,
            state_bytes=0 if moved is None else moved.state_bytes,
        )


class OperatorScaling(Stepwise[Scaling]):
    """Gives operators more or fewer workers, one operator at a time."""

    def __init__(self, job: JobRecord, reconfiguration: Reconfiguration) -> None:
        super().__init__(job)
        self._reconfiguration = reconfiguration

    def scale(self, operator: str, parallelism: int, strategy: str | None = None, reason: str = "by hand") -> Scaling:
        """Begin to give the operator `parallelism` workers.

        Raises RequestError for an unknown operator or an impossible number, JobBusyError or JobNotRunningError if the job is not
        running, or something moves already.
        """
        job = self._job
        stage = job.plan.stage_of(operator)
        check_parallelism(job.plan, stage, parallelism)
        if (current := self.operations.current) is not None:
            raise JobBusyError(f"job `{job.name}`: scaling {current.number} is under way ({current.state.value})")
        scaling = Scaling(
            stage.name,
            stage.parallelism,
            parallelism,
            strategy,
            number=len(self.operations),
            state=ScalingState.CHANGING,
            reason=reason,
            begun=job.now,
        )
        if parallelism == stage.parallelism:
            self._end(scaling, None)
        elif stage.is_keyed and parallelism < stage.parallelism:
            scaling.state = ScalingState.EMPTYING
            target = evacuated(job.migrations.tables[stage.name], parallelism, self._group_loads(stage))
            scaling.migration = self._reconfiguration.move(stage, strategy, target, _why(scaling))
        else:
            scaling.rescaling = self._reconfiguration.change_workers(stage, parallelism, _why(scaling))
        self.operations.append(scaling)
        return scaling

    def _step(self, operation: Scaling) -> Migration | Rescaling | None:
        return operation.rescaling if operation.state is ScalingState.CHANGING else operation.migration

    def _next(self, operation: Scaling, cluster: ClusterView | None) -> None:
        if operation.state is ScalingState.CHANGING:
            self._after_change(operation)
        else:
            self._after_move(operation)

    def _after_change(self, scaling: Scaling) -> None:
        rescaling = scaling.rescaling
        assert rescaling is not None
        if not rescaling.succeeded:
            raise RequestError(rescaling.problem or "the stream ended before")
        stage = self._job.plan.stage_of(scaling.stage)
        if stage.is_keyed and scaling.after > scaling.before:
            scaling.state = ScalingState.SPREADING
            scaling.migration = self._reconfiguration.move(stage, scaling.strategy, self._spread(stage), _why(scaling))
        else:
            self._end(scaling, None)

    def _after_move(self, scaling: Scaling) -> None:
        migration = scaling.migration
        assert migration is not None
        if not migration.succeeded:
            raise RequestError(NOT_ALL_MOVED)
        if scaling.state is ScalingState.SPREADING:
            self._end(scaling, None)
        elif highest_worker(self._job.migrations.tables[scaling.stage]) >= scaling.after:
            raise RequestError("keys came to workers that were to leave")
        else:
            scaling.state = ScalingState.CHANGING
            stage = self._job.plan.stage_of(scaling.stage)
            scaling.rescaling = self._reconfiguration.change_workers(stage, scaling.after, _why(scaling))

    def _spread(self, stage: Stage) -> RoutingTable:
        """Balance by load; without measurements, give each worker the same number of groups."""
        table = self._job.migrations.tables[stage.name]
        if self._group_loads(stage).sum() > 0:
            plan = named(BALANCER).plan(self._job.snapshot(stage.name, SPREAD_WINDOWS))
            if plan.moves:
                return plan.table(table, hash_of)
        return spread(table, stage.parallelism)

    def _group_loads(self, stage: Stage) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        loads = np.zeros(self._job.plan.key_groups)
        for group, load in self._job.metrics.load(stage.name).groups.items():
            loads[group] = load
        return loads

    def _end(self, operation: Scaling, problem: str | None) -> None:
        operation.end(ScalingState.DONE if problem is None else ScalingState.FAILED, self._job.now, problem)


def _why(scaling: Scaling) -> str:
    return f"{scaling.reason}: {scaling.before} to {scaling.after} workers"
