"""Changes of a job's routing tables and of its workers while the stream runs: one at a time, coordinated with its checkpoints.

Invariant: a step of a migration, and the part of a rescale in which channels open and close, begin only while no checkpoint is
under way, and no checkpoint begins meanwhile. A due checkpoint precedes the next step. A commit, which can take long, delays only
the next checkpoint.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...balancer.base import Limits
from ...balancer.plan import BalancePlan
from ...balancer.policies import named
from ...balancer.strategies import plan_steps
from ...engine.errors import JobBusyError, JobNotRunningError, RequestError
from ...engine.plan.physical import Stage
from ...engine.plan.rescale import NewCode, Rescale, replaced, rescale
from ...engine.protocol.effects import Rewound
from ...engine.protocol.handover_step import Arrived, HandoverStep
from ...engine.protocol.ids import StepVersion, WorkerId
from ...engine.protocol.routing import RoutingTable
from ..load.load_snapshot import group_loads, groups_per_step, hash_of
from ..protocol.effects import JobState, Retire, Spawn, Tell
from ..protocol.messages import Announced, Attached, Shutdown, SourcePaused
from ..protocol.reports import MigrationState
from ..record.job_record import JobRecord
from ..record.migrations import Migration
from ..record.rescaling import RescalePhase, RescaleState, Rescaling
from .checkpointing import Checkpointing, Lifecycle

BACK = "the job was restored from its last checkpoint"


class Reconfiguration:
    """The migrations and rescales of one job."""

    def __init__(self, job: JobRecord, lifecycle: Lifecycle, checkpointing: Checkpointing) -> None:
        self._job, self._lifecycle, self._checkpointing = job, lifecycle, checkpointing

    @property
    def busy(self) -> bool:
        """True if keys move, or workers join or leave."""
        return self._job.migrations.current is not None or self._job.rescaling is not None

    @property
    def restarting(self) -> bool:
        """True if a migration goes through a checkpoint and a new attempt."""
        return self._restart is not None

    @property
    def _restart(self) -> Migration | None:
        """The migration by the strategy `restart` whose checkpoint was requested."""
        current = self._job.migrations.current
        return current if current is not None and current.checkpoint is not None else None

    def rebalance(self, operator: str, policy: str, strategy: str | None, on_behalf: str) -> Migration:
        """Plan by the balancer `policy` over the newest windows, and begin to move keys; `on_behalf`: a part of the reason.

        Raises RequestError for an unknown operator, balancer or strategy, and as `move` does.
        """
        job, balance = self._job, self._job.config.balance
        stage = job.keyed_stage(operator)
        plan = named(policy).plan(job.snapshot(operator, balance.windows), Limits(split_keys=balance.split_hot_keys))
        target = plan.table(job.migrations.tables[stage.name], hash_of)
        return self.move(stage, strategy, target, f"{policy}, {on_behalf}: {plan.reason}", plan)

    def move(self, stage: Stage, strategy: str | None, target: RoutingTable, reason: str, plan: BalancePlan | None = None) -> Migration:
        """Begin to move keys of `stage` until its routing table is `target`, by `strategy` (None: the job's).

        Raises RequestError for the strategy `restart` if the job doesn't save its state, JobNotRunningError or JobBusyError if
        the job is not running, or a migration is under way.
        """
        job = self._job
        chosen = strategy if strategy is not None else job.config.migration_strategy
        table = job.migrations.tables[stage.name]
        newest = [job.metrics.newest(worker) for worker in stage.workers]
        planned = plan_steps(chosen, table, target, groups_per_step(newest, table, target), group_loads(newest, table))
        if chosen == "restart" and not job.config.checkpoint.saves_state:
            raise RequestError(
                f"job `{job.name}`: the strategy restart goes through a checkpoint: give the job a place for it, "
                "CheckpointConfig(dir=...), or use another strategy"
            )
        self._refuse_if_busy("keys can only move")
        feeders = frozenset(worker for s in job.plan.stages for o in s.outputs if o.target == stage.name for worker in s.workers)
        members = {task.name: task.number for task in job.plan.tasks if task.stage == stage.name}
        steps = [HandoverStep(StepVersion(0), step.moves, step.lazy, step.pause) for step in planned if step.moves]
        migration = job.migrations.add(stage.name, chosen, reason, steps, feeders, members, plan, requested=job.now)
        self.advance()
        return migration

    def change_workers(self, stage: Stage, parallelism: int, reason: str, code: NewCode | None = None) -> Rescaling:
        """Give a stage another number of workers; workers that leave must no longer own any keys. `code`: of workers that join.

        Raises RequestError for an impossible number, of it JobNotRunningError or JobBusyError if the job is not running, or
        a migration or a rescale is under way.
        """
        self._refuse_if_busy("workers can only join or leave")
        return self._begin(rescale(self._job.plan, stage, parallelism, self._job.migrations.tables, code), reason)

    def replace_workers(self, stage: Stage, indexes: Collection[int], code: NewCode, reason: str) -> Rescaling:
        """Let workers with other code take the places of these workers of a stage, which own no keys.

        Raises JobNotRunningError or JobBusyError as `change_workers`.
        """
        self._refuse_if_busy("workers can only be replaced")
        return self._begin(replaced(self._job.plan, stage, indexes, self._job.migrations.tables, code), reason)

    def _begin(self, change: Rescale, reason: str) -> Rescaling:
        job = self._job
        token = job.rescales.newest.token if job.rescales.newest is not None else 0
        rescaling = Rescaling(job.plan, change, token, number=len(job.rescales), state=RescaleState.RUNNING, reason=reason, begun=job.now)
        job.rescales.append(rescaling)
        job.plan = job.plan.numbering_after(change.plan)  # whatever becomes of it, no number is used again
        job.ready -= set(change.joining)
        if change.joining:
            for name in change.joining:
                job.metrics.join(name, change.stage)
            job.emit(Spawn(job.attempt, rescaling.spawned(), change.joining))
        self.advance()
        return rescaling

    def note(self, worker: WorkerId, report: Announced | Arrived | Attached | SourcePaused | Rewound) -> None:
        """Note the progress of a worker with a migration or a rescale."""
        if not isinstance(report, (Attached, SourcePaused, Rewound)):
            self._job.migrations.note(worker, report)
        elif (rescaling := self._job.rescaling) is not None:
            rescaling.note(worker, report)

    def not_spawned(self, problem: str) -> None:
        """End a rescale whose joining workers did not start."""
        rescaling = self._job.rescaling
        if rescaling is not None and rescaling.phase is RescalePhase.STARTING:
            rescaling.end(RescaleState.ENDED_EARLY, self._job.now, problem)
            self._retire(rescaling.rescale.joining)

    def advance(self) -> None:
        """Take every step that needs no further answer."""
        self._advance_rescale()
        while (current := self._job.migrations.current) is not None:
            if not (self._advance_restart(current) if current.strategy == "restart" else self._advance(current)):
                break

    def started(self) -> None:
        """End a migration by restart: all workers of the new attempt have started."""
        if (migration := self._restart) is not None:
            migration.steps_done = len(migration.steps)
            migration.end(MigrationState.DONE, self._job.now)

    def reset(self) -> Mapping[str, RoutingTable]:
        """End all changes, since the job restores its last checkpoint. Return the routing tables of a migration by restart to
        that checkpoint.
        """
        job, restart = self._job, self._restart
        self._drop_rescale(BACK)
        newest = job.checkpoints.newest
        if restart is not None and restart.checkpoint is not None and newest is not None and newest.checkpoint >= restart.checkpoint:
            return restart.tables
        if (current := job.migrations.current) is not None:
            current.end(MigrationState.ENDED_EARLY, job.now, BACK)
        return {}

    def finish(self) -> None:
        """End all changes, since every worker has finished."""
        self._drop_rescale()
        if (current := self._job.migrations.current) is not None:
            if current.in_step and current.complete:
                self._job.migrations.end_step(current)
            current.end(MigrationState.DONE if current.steps_done == len(current.steps) else MigrationState.ENDED_EARLY, self._job.now)

    def end(self) -> None:
        """End all changes, since the job ends."""
        if (current := self._job.migrations.current) is not None:
            current.end(MigrationState.ENDED_EARLY, max(current.begun or 0.0, self._job.now))
        self._drop_rescale()

    def _refuse_if_busy(self, what: str) -> None:
        job = self._job
        if job.state is not JobState.RUNNING:
            raise JobNotRunningError(f"job `{job.name}` is {job.state}: {what} while it runs")
        if (current := job.migrations.current) is not None:
            problem = f"migration {current.number} of `{current.stage}` is under way ({current.steps_done} of {len(current.steps)} steps)"
            raise JobBusyError(f"job `{job.name}`: {problem}; wait until it is done")
        if (rescaling := job.rescaling) is not None:
            problem = f"rescale {rescaling.number} of `{rescaling.rescale.stage}` is under way ({rescaling.phase.value})"
            raise JobBusyError(f"job `{job.name}`: {problem}; wait until it is done")

    def _advance_rescale(self) -> None:
        job = self._job
        while (current := job.rescaling) is not None:
            running = job.state is JobState.RUNNING and not job.stop_wanted and bool(job.reading)
            free = not self._checkpointing.under_way and job.migrations.current is None
            commands = current.advance(ready=job.ready, finished=job.finished, running=running, free=free, now=job.now)
            if commands is None:
                break
            if current.joined:
                job.plan = current.rescale.plan
            if current.state is RescaleState.DONE:
                job.plan = current.rescale.plan
                job.emit(*(Tell(name, Shutdown(others_go_on=True)) for name in current.rescale.leaving))
                self._retire(current.rescale.leaving)
            elif current.state is RescaleState.ENDED_EARLY:
                if current.rescale.replaces:
                    job.plan = current.before.numbering_after(job.plan)
                self._retire(current.rescale.joining)
            job.emit(*(Tell(name, command) for name, command in commands))

    def _advance(self, migration: Migration) -> bool:
        """Take the next step of a migration. Return False while it waits for an answer."""
        job = self._job
        if migration.may_step(job.finished) and self._checkpointing.begin_if_due():
            return True
        running = job.state is JobState.RUNNING and not job.stop_wanted
        free = not self._checkpointing.under_way
        commands = job.migrations.advance(finished=job.finished, running=running, free=free, now=job.now)
        if commands is None:
            return False
        job.emit(*(Tell(name, command) for name, command in commands))
        return True

    def _advance_restart(self, migration: Migration) -> bool:
        job, checkpoints = self._job, self._job.checkpoints
        if migration.state is MigrationState.WAITING:
            migration.state, migration.begun = MigrationState.RUNNING, job.now
        if not migration.steps:
            migration.end(MigrationState.DONE, job.now)
            return True
        if job.state is JobState.RESTARTING or not self._checkpointing.free:
            return False
        wanted = migration.checkpoint
        if wanted is not None and checkpoints.newest is not None and checkpoints.newest.checkpoint >= wanted:
            self._lifecycle.go_back()
            return False
        failed = wanted is not None and checkpoints.last >= wanted
        if failed or job.state is not JobState.RUNNING or not job.reading:
            migration.end(MigrationState.ENDED_EARLY, job.now, "its checkpoint failed" if failed else None)
            return True
        if wanted is None:
            moves = [move for step in migration.steps for move in step.moves]
            migration.tables = {migration.stage: job.migrations.tables[migration.stage].after(moves)}
            migration.checkpoint = self._checkpointing.request(f"for migration {migration.number}")
        return self._checkpointing.begin_if_due()

    def _drop_rescale(self, problem: str | None = None) -> None:
        """End a rescale that is under way when the job ends or restores a checkpoint."""
        rescaling = self._job.rescaling
        if rescaling is not None:
            rescaling.end(RescaleState.ENDED_EARLY, self._job.now, problem)
            self._retire(tuple(name for name in rescaling.rescale.joining if name not in self._job.workers))

    def _retire(self, workers: tuple[WorkerId, ...]) -> None:
        if workers:
            self._job.checkpoints.retire(workers)
            for name in workers:
                self._job.metrics.leave(name)
            self._job.emit(Retire(workers))
