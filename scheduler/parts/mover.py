"""How keys of an operator begin to move: from a wanted routing table, or a balance plan, to the steps of a migration."""

from __future__ import annotations

from ...balancer.base import Limits
from ...balancer.plan import BalancePlan
from ...balancer.policies import named
from ...balancer.strategies import plan_steps
from ...engine.plan.physical import Stage
from ...engine.protocol.handover_step import HandoverStep
from ...engine.protocol.ids import StepVersion, worker_id
from ...engine.protocol.routing import RoutingTable
from ..load.load_snapshot import groups_per_step, hash_of
from ..record.job_record import JobRecord
from ..record.migrations import Migration
from .reconfiguration import Reconfiguration


class Mover:
    """Of one job."""

    def __init__(self, job: JobRecord, reconfiguration: Reconfiguration) -> None:
        self._job, self._reconfiguration = job, reconfiguration

    def move(self, stage: Stage, strategy: str | None, target: RoutingTable, reason: str, plan: BalancePlan | None = None) -> Migration:
        """Begin to move keys so that `target` holds, by `strategy` (None: the job's). Raises as `Reconfiguration.move` does."""
        job = self._job
        chosen = strategy if strategy is not None else job.config.migration_strategy
        table = job.migrations.tables[stage.name]
        newest = [job.metrics.newest(worker_id(stage.name, i)) for i in range(stage.parallelism)]
        planned = plan_steps(chosen, table, target, groups_per_step(newest, table))
        steps = [HandoverStep(StepVersion(0), step.moves, step.lazy, step.pause) for step in planned]
        return self._reconfiguration.move(stage, chosen, steps, reason, plan)

    def rebalance(self, operator: str, policy: str, strategy: str | None, wish: str) -> Migration:
        """Plan by the balancer `policy` over the newest windows, and begin to move; `wish`: whose wish that is, for the reason.

        Raises RequestError for an unknown operator, balancer or strategy, JobNotRunningError or JobBusyError if the job is not running or
        moves something already.
        """
        stage = self._job.keyed_stage(operator)
        table = self._job.migrations.tables[stage.name]
        balance = self._job.config.balance
        plan = named(policy).plan(self._job.snapshot(operator, balance.windows), Limits(split_keys=balance.split_hot_keys))
        return self.move(stage, strategy, plan.table(table, hash_of), f"{policy}, {wish}: {plan.reason}", plan)
