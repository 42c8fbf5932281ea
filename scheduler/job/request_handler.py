"""Answers to requests: begins the requested change, or shows the job's state."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, assert_never

from ...engine.errors import JobBusyError, RequestError
from ...engine.plan.physical import Stage
from ...engine.protocol.routing import RoutingTable
from ..load.load_snapshot import hash_of
from ..load.metrics import OperatorLoad
from ..parts.automatic_balancing import AutomaticBalancing
from ..parts.autoscaling import Autoscaling
from ..parts.checkpointing import Checkpointing, Lifecycle
from ..parts.key_reads import KeyReads
from ..parts.key_splits import refuse_split_keys, with_split, without_split
from ..parts.live_settings import LiveSettings
from ..parts.node_scaling import NodeScaling
from ..parts.operator_scaling import OperatorScaling
from ..parts.reconfiguration import Reconfiguration
from ..parts.saved_tables import saved_table
from ..parts.upgrading import Upgrading
from ..parts.waiting import Waiting
from ..policies.controller import DecisionRecord
from ..policies.nodes.placement import ClusterView
from ..protocol.changed_settings import SettingChange
from ..protocol.effects import JobState, StopOrder
from ..protocol.reports import CheckpointReport, MigrationReport, NodeScalingReport, SavepointReport, ScalingReport, UpgradeReport
from ..protocol.requests import (
    AbortUpgrade,
    AnyRequest,
    Autoscale,
    Balance,
    Cancel,
    ChangeRequest,
    ChangeSettings,
    Fail,
    MoveKeys,
    Planning,
    Question,
    ReadKey,
    Rebalance,
    Scale,
    ScaleIn,
    ScaleOut,
    ShowChanges,
    ShowFigures,
    ShowHistory,
    ShowLoad,
    ShowPlanning,
    ShowProgress,
    ShowSnapshot,
    ShowStatus,
    ShowTable,
    ShowView,
    SplitHotKey,
    Stop,
    TakeCheckpoint,
    TakeSavepoint,
    UnsplitHotKey,
    UpgradeCode,
)
from ..protocol.status import JobStatus, Progress
from ..record.job_record import JobRecord
from ..record.migrations import Migration
from .code_changes import new_codes, planned
from .viewing import Viewing

_MOVING = Rebalance | MoveKeys | SplitHotKey | UnsplitHotKey | Scale | ScaleOut | ScaleIn | UpgradeCode
"""The requests that can't be carried out while an upgrade is under way."""


class RequestHandler:
    """Answers the requests to one job."""

    def __init__(
        self,
        job: JobRecord,
        lifecycle: Lifecycle,
        checkpointing: Checkpointing,
        reconfiguration: Reconfiguration,
        operators: OperatorScaling,
        nodes: NodeScaling,
        balancing: AutomaticBalancing,
        autoscaling: Autoscaling,
        upgrading: Upgrading,
        settings: LiveSettings,
        reads: KeyReads,
    ) -> None:
        self._job, self._lifecycle, self._checkpointing, self._reconfiguration = job, lifecycle, checkpointing, reconfiguration
        self._operators, self._nodes, self._balancing, self._autoscaling = operators, nodes, balancing, autoscaling
        self._upgrading, self._settings, self._reads = upgrading, settings, reads
        self._waiting = Waiting(job, checkpointing, nodes)
        self._viewing = Viewing(job, checkpointing, operators, nodes, balancing, autoscaling, upgrading)
        self._histories: Mapping[type[Any], Callable[[], list[Any]]] = {
            CheckpointReport: checkpointing.reports,
            MigrationReport: lambda: [self._with_latency(migration) for migration in job.migrations.history],
            SavepointReport: checkpointing.savepoints.reports,
            ScalingReport: lambda: [scaling.report() for scaling in operators.operations],
            NodeScalingReport: lambda: [change.report() for change in nodes.operations],
            UpgradeReport: lambda: [upgrade.report() for upgrade in upgrading.operations],
            DecisionRecord: autoscaling.decisions,
        }

    def answer(self, request: AnyRequest, cluster: ClusterView | None) -> Any:
        """Answer a request with the type that it names.

        Raises RequestError for an impossible request, JobBusyError or JobNotRunningError for one that is impossible now.
        """
        return self._change(request, cluster) if isinstance(request, ChangeRequest) else self._show(request, cluster)

    def _change(self, request: ChangeRequest, cluster: ClusterView | None) -> int | tuple[SettingChange, ...] | None:  # noqa: C901, PLR0911, PLR0912 -- a line for each kind
        if isinstance(request, _MOVING) and (current := self._upgrading.operations.current) is not None:
            raise JobBusyError(
                f"job `{self._job.name}`: upgrade {current.number} is under way ({current.state.value}); wait until it is done, or abort it"
            )
        match request:
            case Stop(drain, savepoint):
                if savepoint is not None and not self._job.config.checkpoint.saves_state:
                    raise RequestError("a savepoint needs CheckpointConfig(dir=...), through which it is taken")
                self._lifecycle.stop(StopOrder(drain, savepoint))
            case Cancel(discard):
                if not self._job.state.final:
                    self._job.discarded = discard
                    self._lifecycle.end(JobState.CANCELLED)
            case Fail(error):
                self._lifecycle.abort(error)
            case Rebalance(operator, policy, strategy):
                return self._reconfiguration.rebalance(operator, policy, strategy, "by hand").number
            case MoveKeys(operator, groups, keys, to, strategy):
                return self._move(operator, groups, keys, to, strategy).number
            case SplitHotKey(operator, key, to, dealt):
                change = partial(with_split, key=key, to=to, dealt=dealt)
                return self._share(operator, change, f"key {key!r} is split, {dealt} is dealt").number
            case UnsplitHotKey(operator, key):
                return self._share(operator, partial(without_split, key=key), f"key {key!r} is split no longer").number
            case Balance(operator, policy):
                self._settings.balance(operator, policy)
            case Scale(operator, parallelism, strategy):
                if self._nodes.busy:
                    raise JobBusyError(f"job `{self._job.name}`: its nodes are being scaled; wait until that is done")
                return self._operators.scale(operator, parallelism, strategy).number
            case ScaleOut(nodes, policy):
                return self._nodes.scale_out(nodes, cluster, policy).number
            case ScaleIn(policy):
                return self._nodes.scale_in(cluster, policy=policy).number
            case Autoscale(policy, mode):
                self._settings.autoscale(policy, mode, cluster)
            case ChangeSettings(wanted):
                return self._settings.change(wanted, cluster)
            case UpgradeCode():
                return self._upgrade(request)
            case AbortUpgrade():
                self._upgrading.abort()
            case TakeCheckpoint():
                return self._checkpointing.request("by hand")
            case TakeSavepoint(path):
                return self._take_savepoint(path)
            case _:
                assert_never(request)
        return None

    def _show(self, question: Question, cluster: ClusterView | None) -> Any:  # noqa: C901, PLR0911 -- as above
        job = self._job
        match question:
            case ShowStatus():
                return self.status()
            case ShowProgress(seen):
                return Progress(job.state, job.error, self._checkpointing.deliveries.after(seen))
            case ShowFigures():
                workers = set(job.workers)
                return [figures for figures in job.metrics.workers() if figures.worker in workers]
            case ShowLoad(operator, windows):
                return self._load(operator, windows)
            case ShowSnapshot(operator):
                return job.snapshot(operator, job.config.balance.windows)
            case ShowHistory(kind):
                return self._histories[kind]()
            case ReadKey():
                return self._reads.ask(question)
            case ShowTable(operator):
                return saved_table(job, operator)
            case ShowChanges(plan, everything):
                return planned(job.plan, plan, everything=everything)
            case ShowPlanning():
                return Planning(job.config.parallelism, job.config.combine, job.config.task_settings())
            case ShowView(since):
                return self._viewing.view(since, self.status(), [migration.report() for migration in job.migrations.history], cluster)
            case _:
                assert_never(question)

    def _load(self, operator: str, windows: int) -> OperatorLoad:
        stage = self._job.plan.stage_of(operator)
        load = self._job.metrics.load(stage.name, windows)
        measured: dict[str, float] = {worker: load.workers[worker] for worker in stage.workers if worker in load.workers}
        splits = self._job.migrations.tables[stage.name].splits if stage.is_keyed else {}
        split = tuple(key for key, _ in load.hot_keys if hash_of(key) in splits) if splits else ()
        return replace(load, workers=measured, can_split=bool(stage.dealable), split=split)

    def status(self) -> JobStatus:
        """Return the job's status, as `job.status()` shows it."""
        job = self._job
        seconds, completed = self._lifecycle.running_seconds, job.checkpoints.completed
        restarting = job.state is JobState.RESTARTING
        upgrade = self._upgrading.operations.current
        trouble, description = job.trouble if job.trouble is not None and job.ails else (None, None)
        return JobStatus(
            job.name,
            job.state,
            trouble if restarting else job.error,
            job.workers,
            completed,
            seconds,
            attempt=job.attempt,
            problems=(
                *job.problems,
                *(() if description is None else (description,)),
                *(job.quiet.problems if not job.state.final else ()),
            ),
            restarts=job.restarts,
            restart_causes=dict(job.restart_causes),
            no_progress_seconds=0.0 if job.state.final else job.progress.still_seconds(job.now),
            waits_for=self._waiting.waits(),
            next_try=max(0.0, job.next_try - job.now) if restarting else None,
            upgrade=None if upgrade is None else upgrade.progress(job.now),
            advice=self._autoscaling.advice,
        )

    def _upgrade(self, wanted: UpgradeCode) -> int | None:
        job = self._job
        if self._operators.busy or self._nodes.busy:
            raise JobBusyError(f"job `{job.name}` is being scaled: wait until that is done")
        changes = planned(job.plan, wanted.plan, everything=wanted.everything)
        codes = new_codes(job.plan, wanted.plan, changes, self._upgrading.next_version, wanted.environment)
        if not codes:
            return None
        readable = all(map(changes.can_go_back, codes))
        return self._upgrading.upgrade(codes, wanted.options, "by hand", readable=readable).number

    def _take_savepoint(self, path: str) -> int:
        number = self._checkpointing.request("for a savepoint", whole=True)
        self._checkpointing.savepoints.add(number, path)
        return number

    def _move(self, operator: str, groups: Sequence[int], keys: Sequence[Hashable], to: int, strategy: str | None) -> Migration:
        stage = self._job.keyed_stage(operator)
        table = self._job.migrations.tables[stage.name]
        if not len(groups) and not len(keys):
            raise RequestError(f"operator `{operator}`: nothing to move: give groups=[...] or keys=[...]")
        if not isinstance(to, int) or isinstance(to, bool) or not 0 <= to < stage.parallelism:
            raise RequestError(
                f"operator `{operator}` has no worker {to!r}: its {stage.parallelism} workers are 0 to {stage.parallelism - 1}"
            )
        wrong = [group for group in groups if not isinstance(group, Integral) or not 0 <= int(group) < len(table)]
        if wrong:
            raise RequestError(f"operator `{operator}` has no key group {wrong[0]!r}: its groups are 0 to {len(table) - 1}")
        refuse_split_keys(operator, table, keys)
        target = table.groups.copy()
        target[list(groups)] = to
        routes = {**table.keys, **{hash_of(key): to for key in keys}}
        return self._reconfiguration.move(stage, strategy, RoutingTable(target, routes, table.splits), "by hand")

    def _share(self, operator: str, change: Callable[[Stage, RoutingTable], RoutingTable], what: str) -> Migration:
        stage = self._job.keyed_stage(operator)
        return self._reconfiguration.move(stage, None, change(stage, self._job.migrations.tables[stage.name]), f"by hand: {what}")

    def _with_latency(self, migration: Migration) -> MigrationReport:
        report = migration.report()
        until = migration.requested + report.seconds if report.seconds is not None else self._job.now
        return replace(report, latency_ms=self._job.metrics.latency_between(migration.requested, until))
