"""Upgrades of a running job: workers with the new code get a part of the keys, are watched, and take the others' places.

A stage gets additional workers with the new code, and these get the canary's keys. If the new code does well, the keys of the first
old worker move to an additional one. That worker, which owns nothing now, makes place for one with the new code at its index, which
takes the keys of the second, and so on; last the additional workers leave. Workers without keyed state are replaced together. If the
new code does badly, its keys move back and its workers leave.

Invariant: every key has one owner at any moment, as in any migration, and that owner's code processes its rows. A job that goes back to
a checkpoint runs one version everywhere. While the old code could not read what the new code writes, no checkpoint is taken before the
new code has passed its watch; so going back to the old code is an ordinary recovery.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from ...balancer.canary import canary, emptied, turned
from ...engine.errors import JobBusyError, JobNotRunningError, RequestError, shown
from ...engine.plan.physical import Stage
from ...engine.plan.recoded import describing
from ...engine.plan.rescale import NewCode
from ...engine.protocol.ids import FIRST_CODE, CodeVersion, code_of
from ...engine.protocol.routing import RoutingTable
from ...engine.time.duration import seconds
from ...state.errors import EvenflowError
from ..load.load_snapshot import hash_of
from ..policies.canary import StageComparison, VersionFigures, longest_watch, objection, unwatched
from ..policies.nodes.placement import ClusterView
from ..protocol.effects import JobState, Reserve, Warn
from ..protocol.reports import CheckpointState, UpgradeState
from ..protocol.upgrade_options import UpgradeOptions
from ..record.job_record import JobRecord
from ..record.migrations import Migration
from ..record.rescaling import Rescaling
from ..record.upgrade import Task, Upgrade, Work
from .checkpointing import Checkpointing, Lifecycle
from .reconfiguration import Reconfiguration
from .stepwise import Stepwise

MOST_AHEAD = 16
"""Processes that start before the first move, so that none starts during moves. Those of larger jobs start when they are needed."""

PREPARE_PATIENCE = 60.0
"""Seconds for which an upgrade waits for them."""

LOAD_WINDOWS = 3
"""Windows for which an upgrade waits until the load of its key groups is known: a canary is chosen by load."""

_STATES = {
    Task.SAVE: UpgradeState.SAVING,
    Task.PREPARE: UpgradeState.JOINING,
    Task.JOIN: UpgradeState.JOINING,
    Task.CANARY: UpgradeState.JOINING,
    Task.WATCH: UpgradeState.WATCHING,
}


class Upgrading(Stepwise[Upgrade]):
    """The upgrades of one job, one at a time."""

    def __init__(self, job: JobRecord, lifecycle: Lifecycle, checkpointing: Checkpointing, reconfiguration: Reconfiguration) -> None:
        super().__init__(job)
        self.operations = job.upgrades
        self._lifecycle, self._checkpointing, self._reconfiguration = lifecycle, checkpointing, reconfiguration

    def upgrade(self, codes: Mapping[str, NewCode], options: UpgradeOptions, reason: str, *, readable: bool = True) -> Upgrade:
        """Begin to exchange the code of the stages in `codes`; `readable`: the old code can read state that the new code writes.

        Raises JobNotRunningError or JobBusyError if the job is not running, or something changes already.
        """
        job = self._job
        if job.state is not JobState.RUNNING or job.stop_wanted:
            raise JobNotRunningError(f"job `{job.name}` is {job.state}: its code can only be exchanged while it runs")
        if self.busy or self._reconfiguration.busy:
            raise JobBusyError(f"job `{job.name}` changes something already: wait until that is done")
        if not readable and not job.config.checkpoint.saves_state and (options.canary or options.keys):
            raise RequestError(
                f"job `{job.name}`: the old code can't read state that the new code writes, so a canary could only be taken back from a "
                "checkpoint: give the job a place for them, CheckpointConfig(dir=...), or say canary=0"
            )
        ordered = {stage.name: codes[stage.name] for stage in job.plan.stages if stage.name in codes}
        version = next(iter(ordered.values())).version
        upgrade = Upgrade(
            ordered,
            job.plan,
            dict(job.migrations.tables),
            options,
            readable,
            version,
            number=len(self.operations),
            state=UpgradeState.SAVING,
            reason=reason,
            begun=job.now,
        )
        upgrade.work = deque([*self._canary(upgrade), *self._rollout(upgrade)])
        self.operations.append(upgrade)
        job.emit(upgrade.remembered(new=False, over=False))
        return upgrade

    @property
    def next_version(self) -> CodeVersion:
        """The version of the code that the next upgrade brings."""
        running = [code for stage in self._job.plan.stages for code in stage.codes]
        tried = [upgrade.version for upgrade in self.operations]
        return CodeVersion(max([FIRST_CODE, *running, *tried]) + 1)

    def abort(self) -> None:
        """Take the new code of the upgrade under way back. Raises RequestError if there is none."""
        current = self.operations.current
        if current is None:
            raise RequestError(f"job `{self._job.name}`: no upgrade is under way")
        if current.goes_on or (current.decided and not self._job.config.checkpoint.saves_state):
            raise RequestError(f"job `{self._job.name}`: upgrade {current.number} can't be taken back any more: it has passed its watch")
        if not current.rolls_back:
            self._take_back(current, "it was aborted by hand")

    def heals(self, error: EvenflowError) -> bool:
        """Return True if the job can go on after this error, which would end it, because it goes back to the old code."""
        current = self.operations.current
        if current is None or not self._job.config.checkpoint.saves_state or (current.decided and not current.readable):
            return False
        current.rolls_back, current.trouble = True, current.trouble or shown(error).partition("\n")[0]
        return True

    def reset(self) -> None:
        """End the upgrade under way, since the job goes back to a checkpoint: all workers run the old code then, or all the new."""
        job, current = self._job, self.operations.current
        job.holds_checkpoints = False
        if current is None:
            return
        new = current.goes_on and not current.rolls_back
        job.plan = current.plan_after(new=new).numbering_after(job.plan)
        why = job.trouble[1] if job.trouble is not None else "the job goes back to its newest checkpoint"
        self._over(current, UpgradeState.DONE if new else UpgradeState.ROLLED_BACK, current.trouble or why)

    def finish(self) -> None:
        """End the upgrade under way, since the job ends."""
        if (current := self.operations.current) is not None:
            current.end(UpgradeState.ENDED_EARLY, self._job.now, current.trouble or "the job ended before")

    def _step(self, operation: Upgrade) -> Migration | Rescaling | None:
        return operation.step

    def _next(self, operation: Upgrade, cluster: ClusterView | None) -> None:
        job = self._job
        if job.state is not JobState.RUNNING or not job.reading:
            return
        if job.stop_wanted and not operation.decided and not operation.readable and not operation.rolls_back:
            self._take_back(operation, "the job was asked to stop")
            return
        if (step := operation.step) is not None:
            operation.step = None
            if isinstance(step, Migration):
                operation.keys_moved += step.keys_moved
                operation.state_bytes += step.state_bytes
            if not step.succeeded:
                self._take_back(operation, step.problem or "the stream ended, or the job is being stopped")
                return
        if operation.work:
            self._begin(operation, operation.work[0], cluster)
        else:
            self._over(operation, UpgradeState.ROLLED_BACK if operation.rolls_back else UpgradeState.DONE, operation.trouble)

    def _end(self, operation: Upgrade, problem: str | None) -> None:
        """Take the new code back because a step could not begin."""
        self._take_back(operation, problem or "a step failed")

    def _canary(self, upgrade: Upgrade) -> list[Work]:
        """Return the steps up to the decision on the new code."""
        work = [Work(Task.SAVE)] if self._job.config.checkpoint.saves_state else []
        work.append(Work(Task.PREPARE))
        if not upgrade.options.canary and not upgrade.options.keys:
            return [*work, Work(Task.DECIDE)]
        for name in upgrade.codes:
            stage = upgrade.before.stage_of(name)
            if stage.can_be_scaled:
                work.append(Work(Task.JOIN, name))
                work += [Work(Task.CANARY, name)] if stage.is_keyed else []
        return [*work, Work(Task.WATCH), Work(Task.DECIDE)]

    def _rollout(self, upgrade: Upgrade) -> list[Work]:
        """Return the steps after the decision."""
        work: list[Work] = []
        for name in upgrade.codes:
            stage = upgrade.before.stage_of(name)
            joined = Work(Task.JOIN, name) in self._canary(upgrade)
            if not stage.is_keyed:
                work.append(Work(Task.REPLACE, name, tuple(range(stage.parallelism))))
                work += [Work(Task.LEAVE, name)] if joined else []
                continue
            work += [] if joined else [Work(Task.JOIN, name)]
            for index in range(stage.parallelism):
                work += [Work(Task.EMPTY, name, (index,)), Work(Task.REPLACE, name, (index,))]
            work += [Work(Task.CLEAR, name), Work(Task.LEAVE, name)]
        return work

    def _begin(self, upgrade: Upgrade, work: Work, cluster: ClusterView | None) -> None:
        """Begin the next step, and remove it from those that are left once it has begun or needs nothing."""
        upgrade.state = self._state(upgrade, work.task)
        if work.task in (Task.SAVE, Task.PREPARE):
            if self._saved(upgrade) if work.task is Task.SAVE else self._prepared(upgrade, cluster):
                upgrade.work.popleft()
            return
        if work.task is Task.WATCH:
            self._watch(upgrade)
            return
        if work.task is Task.DECIDE:
            self._decide(upgrade)
            return
        if work.task is Task.UNDO:  # now that no step is under way
            upgrade.work = deque(self._return(upgrade))
            return
        if work.task is Task.GO_BACK:
            if not self._checkpointing.saving:  # only the answer tells which checkpoint is the newest
                self._lifecycle.go_back()
            return
        if work.task is Task.CANARY and not self._measured(upgrade, work.stage):
            return
        upgrade.step = self._started(upgrade, work, self._job.plan.stage_of(work.stage))
        upgrade.work.popleft()

    def _state(self, upgrade: Upgrade, task: Task) -> UpgradeState:
        if upgrade.rolls_back:
            return UpgradeState.RETURNING
        return UpgradeState.ROLLING if upgrade.decided else _STATES.get(task, UpgradeState.ROLLING)

    def _started(self, upgrade: Upgrade, work: Work, stage: Stage) -> Migration | Rescaling:
        changes, code, why = self._reconfiguration, upgrade.codes[stage.name], f"upgrade {upgrade.number}: {work.task.value}"
        usual = upgrade.before.stage_of(stage.name).parallelism
        match work.task:
            case Task.JOIN:
                self._job.holds_checkpoints |= not upgrade.readable and not upgrade.decided
                return changes.change_workers(stage, usual + upgrade.additional(stage.name), why, code)
            case Task.REPLACE:
                return changes.replace_workers(stage, work.indexes, code, why)
            case Task.LEAVE:
                return changes.change_workers(stage, usual, why)
            case _:
                return changes.move(stage, self._strategy(upgrade), self._target(upgrade, work, stage), why)

    def _strategy(self, upgrade: Upgrade) -> str:
        """Return the migration strategy; one that restarts the job would defeat the purpose."""
        chosen = upgrade.options.strategy or self._job.config.migration_strategy
        return "batched" if chosen == "restart" else chosen

    def _target(self, upgrade: Upgrade, work: Work, stage: Stage) -> RoutingTable:
        """Return the routing table to which a step moves keys."""
        table, usual = self._job.migrations.tables[stage.name], upgrade.before.stage_of(stage.name).parallelism
        match work.task:
            case Task.CANARY if upgrade.options.keys:
                routes = {hash_of(key): usual for key in upgrade.options.keys}
                return RoutingTable(table.groups, {**table.keys, **routes}, table.splits)
            case Task.CANARY:
                return canary(table, range(usual, stage.parallelism), upgrade.options.canary, self._loads(stage))
            case Task.EMPTY:
                (index,) = work.indexes
                return emptied(table, index, index - 1 if index else usual)
            case Task.RETURN:
                return upgrade.tables[stage.name]
            case _:
                return turned(table, upgrade.tables[stage.name], usual)

    def _loads(self, stage: Stage) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        loads = np.zeros(self._job.plan.key_groups)
        for group, load in self._job.metrics.load(stage.name).groups.items():
            loads[group] = load
        return loads

    def _measured(self, upgrade: Upgrade, stage: str) -> bool:
        """Return True once the load of the stage's key groups is known, or has been unknown for long."""
        metrics = self._job.config.metrics
        if upgrade.options.keys or not metrics.enabled or self._job.metrics.load(stage).groups:
            return True
        if upgrade.measured_until is None:
            upgrade.measured_until = self._job.now + LOAD_WINDOWS * seconds(metrics.window)
        return self._job.now >= upgrade.measured_until

    def _saved(self, upgrade: Upgrade) -> bool:
        """Return True once there is a checkpoint of the old code alone; request one first."""
        if upgrade.checkpoint is None:
            upgrade.checkpoint = self._checkpointing.request(f"for upgrade {upgrade.number}")
            return False
        found = next((report for report in self._checkpointing.reports() if report.number == upgrade.checkpoint), None)
        if found is None or found.state in (CheckpointState.PENDING, CheckpointState.SAVING, CheckpointState.COMMITTING):
            return False
        if found.state is not CheckpointState.COMPLETE:
            raise RequestError(f"checkpoint {found.number}, to which the job could go back, has failed: {found.problem}")
        return True

    def _prepared(self, upgrade: Upgrade, cluster: ClusterView | None) -> bool:
        """Return True once the processes for the workers that join have started, or can't; request them first."""
        if cluster is None or not upgrade.joining:
            return True
        if upgrade.prepares_until is None:
            upgrade.prepares_until = self._job.now + PREPARE_PATIENCE
            self._job.emit(Reserve(upgrade.joining[:MOST_AHEAD], hurry=False))
            return False
        return cluster.reserved or self._job.now >= upgrade.prepares_until

    def not_reserved(self) -> None:
        """Go on without processes that start ahead, since there is no room for them."""
        if (current := self.operations.current) is not None:
            current.prepares_until = self._job.now

    def _release(self, upgrade: Upgrade) -> None:
        """Give processes back that have started ahead, and are not needed any more."""
        if upgrade.prepares_until is not None:
            upgrade.prepares_until = None
            self._job.emit(Reserve())

    def _watch(self, upgrade: Upgrade) -> None:
        """Compare both versions; decide at the end of the watch, or when the new code does badly."""
        job, options = self._job, upgrade.options
        if upgrade.watch_from is None:
            upgrade.watch_from = job.now
            upgrade.quiet = {name for name in upgrade.codes if upgrade.before.stage_of(name).can_be_scaled}
        upgrade.compared = tuple(self._compared(job.plan.stage_of(name), upgrade) for name in upgrade.codes)
        upgrade.quiet -= {one.operator for one in upgrade.compared if one.new.rows}
        bad = next(filter(None, (objection(one, options.max_errors, options.max_slowdown) for one in upgrade.compared)), None)
        watched = job.now - upgrade.watch_from
        if bad is not None:
            self._take_back(upgrade, bad)
        elif watched >= options.watch and not upgrade.quiet:
            upgrade.work.popleft()
        elif watched >= longest_watch(options.watch, seconds(job.config.metrics.window)):
            one = next(one for one in upgrade.compared if one.operator in upgrade.quiet)
            stage = job.plan.stage_of(one.operator)
            self._take_back(upgrade, unwatched(one, watched, is_source=stage.is_source, is_keyed=stage.is_keyed))

    def _decide(self, upgrade: Upgrade) -> None:
        """Note that all keys get the new code; a coordinator that takes over knows it before any checkpoint of new state."""
        upgrade.work.popleft()
        upgrade.decided = True
        self._job.plan = describing(self._job.plan, upgrade.codes)  # checkpoints describe the state of the new code from now on
        if upgrade.goes_on:
            self._job.emit(upgrade.remembered(new=True, over=False))
        self._job.holds_checkpoints = False

    def _compared(self, stage: Stage, upgrade: Upgrade) -> StageComparison:
        new = [worker for worker in stage.workers if code_of(worker) == upgrade.version]
        old = [worker for worker in stage.workers if code_of(worker) != upgrade.version]
        since, sends, history = upgrade.watch_from or 0.0, bool(stage.outputs), self._job.metrics.history
        return StageComparison(stage.name, *(VersionFigures.of(map(history, workers), since, sends=sends) for workers in (old, new)))

    def _take_back(self, upgrade: Upgrade, problem: str) -> None:
        """Begin to return to the old code: while the stream goes on if only the canary has the new code, else from the checkpoint."""
        job = self._job
        live = not upgrade.decided and upgrade.readable and not upgrade.rolls_back and not job.stop_wanted
        upgrade.trouble, upgrade.rolls_back = upgrade.trouble or problem, not upgrade.goes_on
        outcome = "goes back to the old code" if upgrade.rolls_back else "is completed"
        job.emit(Warn(f"job `{job.name}`: upgrade {upgrade.number} {outcome}: {problem}"))
        if upgrade.rolls_back:
            self._release(upgrade)
        if live:
            upgrade.work = deque([Work(Task.UNDO)])
        elif job.config.checkpoint.saves_state and not (job.stop_wanted and upgrade.readable):
            upgrade.work = deque([Work(Task.GO_BACK)])
        else:
            self._release(upgrade)
            upgrade.end(UpgradeState.ENDED_EARLY, job.now, upgrade.trouble)

    def _return(self, upgrade: Upgrade) -> list[Work]:
        """Return the steps that undo the canary."""
        work: list[Work] = []
        for name in reversed(list(upgrade.codes)):
            stage, before = self._job.plan.stage_of(name), upgrade.before.stage_of(name)
            if stage.parallelism > before.parallelism:
                work += [Work(Task.RETURN, name)] if stage.is_keyed else []
                work.append(Work(Task.LEAVE, name))
        return work

    def _over(self, upgrade: Upgrade, state: UpgradeState, problem: str | None) -> None:
        job, done = self._job, state is UpgradeState.DONE
        job.holds_checkpoints = False
        self._release(upgrade)
        upgrade.end(state, job.now, problem)
        job.emit(upgrade.remembered(new=done, over=True))
