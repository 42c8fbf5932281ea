"""Gathers the view of a job for its web page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...engine.plan.physical import Stage
from ..parts.automatic_balancing import AutomaticBalancing
from ..parts.autoscaling import Autoscaling
from ..parts.checkpointing import Checkpointing
from ..parts.node_scaling import NodeScaling
from ..parts.operator_scaling import OperatorScaling
from ..parts.upgrading import Upgrading
from ..policies.controller import DecisionRecord
from ..policies.dataflow.scaled_stage import scaled_stage
from ..policies.nodes.placement import ClusterView
from ..protocol.reports import MigrationReport, OperationReport
from ..protocol.status import JobStatus
from ..protocol.view import JobView, StageView
from ..record.job_record import JobRecord

R = TypeVar("R", bound=OperationReport)


class Viewing:
    """Builds views of one job from its parts."""

    def __init__(
        self,
        job: JobRecord,
        checkpointing: Checkpointing,
        operators: OperatorScaling,
        nodes: NodeScaling,
        balancing: AutomaticBalancing,
        autoscaling: Autoscaling,
        upgrading: Upgrading,
    ) -> None:
        self._job, self._checkpointing, self._operators, self._nodes = job, checkpointing, operators, nodes
        self._balancing, self._autoscaling, self._upgrading = balancing, autoscaling, upgrading

    def view(self, since: float, status: JobStatus, migrations: Sequence[MigrationReport], cluster: ClusterView | None) -> JobView:
        """Return the present state, and everything new since `since` (seconds since the epoch)."""
        job = self._job
        return JobView(
            now=job.now,
            status=status,
            stages=tuple(map(self._stage, job.plan.stages)),
            windows=tuple(w for worker in job.workers for w in job.metrics.history(worker) if w.start + w.length > since),
            migrations=_new(migrations, since),
            scalings=_new([scaling.report() for scaling in self._operators.operations], since),
            node_scalings=_new([change.report() for change in self._nodes.operations], since),
            decisions=_decided(self._autoscaling.decisions(), since),
            observation=self._autoscaling.last_observation,
            checkpoints=_new(self._checkpointing.reports(), since),
            threshold=job.config.balance.threshold,
            least_busy=job.config.balance.least_busy,
            plan_windows=job.config.balance.windows,
            split_hot_keys=job.config.balance.split_hot_keys,
            policy_settings=job.config.autoscale.policy_settings(),
            own_settings=self._autoscaling.own_settings,
            failures=tuple(job.failures),
            dropped_records=job.dropped_records.all(),
            cluster=cluster,
            worker_cpus=job.config.worker.reserved,
            saves_state=job.config.checkpoint.saves_state,
            checkpoint_interval=job.config.checkpoint.interval_s,
            upgrades=_recent([upgrade.report() for upgrade in self._upgrading.operations], since),
        )

    def _stage(self, stage: Stage) -> StageView:
        balancer, observation = self._balancing.observation(stage.name)
        return StageView(
            name=stage.name,
            operators=tuple(chained.name for chained in stage.chain),
            workers=stage.workers,
            outputs=tuple(dict.fromkeys(output.target for output in stage.outputs)),
            is_source=stage.is_source,
            table=self._job.migrations.tables[stage.name] if stage.is_keyed else None,
            dealable=stage.dealable,
            balancer=balancer,
            observation=observation,
            scaled=scaled_stage(stage, self._job.plan.key_groups),
        )


def _new(reports: Sequence[R], since: float) -> tuple[R, ...]:
    return tuple(r for r in reports if r.seconds is None or r.began_at is None or r.began_at + r.seconds >= since)


def _recent(reports: Sequence[R], since: float) -> tuple[R, ...]:
    """Return the new reports, and the newest one that is over, whenever it ended."""
    over = next((report.number for report in reversed(reports) if report.over), None)
    shown = {over, *(report.number for report in _new(reports, since))}
    return tuple(report for report in reports if report.number in shown)


def _decided(decisions: Sequence[DecisionRecord], since: float) -> tuple[DecisionRecord, ...]:
    """Return the decisions since `since` and the newest one before, whose outcome may have changed since then."""
    first = next((at for at, decision in enumerate(decisions) if decision.time >= since), len(decisions))
    return tuple(decisions[max(0, first - 1) :])
