"""The job: which state it is in, which checkpoint is under way, and what is to be done next, without I/O.

Invariant: what the sinks wrote is committed exactly once and in the order of the checkpoints; whatever fails, the job goes on from its
newest complete checkpoint as if nothing had happened after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..balancer.plan import BalancePlan
from ..engine.errors import JobBusyError, JobFailedError, JobLostError, JobNotRunningError, RequestError
from ..engine.plan.physical import Plan, Stage
from ..engine.plan.rescale import rescale
from ..engine.protocol.effects import Finished, Prepared, Rewound, Switched
from ..engine.protocol.handover import Arrived
from ..engine.protocol.handover_step import HandoverStep
from ..engine.protocol.routing import RoutingTable
from ..state.errors import EvenflowError
from .checkpoints import Checkpoints
from .job_effects import Commit, Discard, Effect, Ended, JobState, Redeploy, Retire, Save, Spawn, Tell
from .job_settings import JobSettings
from .manifest import Manifest
from .messages import (
    Announced,
    Attached,
    BeginCheckpoint,
    CheckpointFailed,
    Shutdown,
    SourcePaused,
    StopSource,
)
from .migration import Migration, Migrations, MigrationState
from .newest import Newest
from .rescaling import Phase, RescaleState, Rescaling
from .restarts import Restarts
from .restore import fitting_tables


@dataclass(slots=True)
class _Restart:
    """A migration by the strategy `restart`: goes on with `tables` once checkpoint `number` is complete."""

    migration: Migration
    number: int
    tables: Mapping[str, RoutingTable]


class JobCore:
    """Times are in seconds of any clock that doesn't go back. `restored`: a savepoint to begin from.

    `committed`: the newest checkpoint that may have been committed, perhaps by a process that is gone.
    """

    def __init__(self, plan: Plan, settings: JobSettings | None = None, restored: Manifest | None = None, committed: int = 0) -> None:
        self.name = plan.name
        self.plan = plan
        self.settings = settings if settings is not None else JobSettings()
        self.state = JobState.STARTING
        self.error: EvenflowError | None = None
        self.attempt = 0
        self.checkpoints = Checkpoints()
        self.checkpoints.newest = restored
        self.committed = max(committed, restored.checkpoint if restored is not None else 0)
        self.restarts = Restarts(self.settings.restarts)
        self.migrations = Migrations(plan.tables)
        self._ready: set[str] = set()
        self._next_at: float | None = None
        self._whole = 0
        self._stop_wanted = False
        self.rescales = Newest[Rescaling]()
        self._restart: _Restart | None = None
        self._manifest: Manifest | None = None
        self._now = 0.0

    @property
    def starting(self) -> bool:
        """Whether workers are being started, for the first time or again."""
        return self.state in (JobState.STARTING, JobState.RESTARTING)

    @property
    def workers(self) -> tuple[str, ...]:
        """The names of all workers."""
        return tuple(task.name for task in self.plan.tasks)

    @property
    def sources(self) -> frozenset[str]:
        """The workers that read sources."""
        return frozenset(f"{s.name}-{i}" for s in self.plan.stages if s.is_source for i in range(s.parallelism))

    def ready(self, worker: str, now: float) -> list[Effect]:
        """The worker has started its task."""
        self._now = now
        self._ready.add(worker)
        if not self.starting:
            return self._rescale(now)
        if not self._ready.issuperset(self.workers):
            return []
        self.state = JobState.RUNNING
        interval = self.settings.checkpoint_interval
        self._next_at = None if interval is None else now + interval
        if self._restart is not None:
            self._restart.migration.done = len(self._restart.migration.steps)
            self._restart.migration.end(MigrationState.DONE, now)
            self._restart = None
        if self._stop_wanted:
            self._stop_wanted = False
            return self.stop()
        return []

    def report(
        self,
        worker: str,
        report: Prepared | CheckpointFailed | Finished | Announced | Switched | Arrived | Attached | SourcePaused | Rewound,
        now: float,
    ) -> list[Effect]:
        """A worker has prepared a checkpoint, finished, or got on with a migration or a rescale."""
        self._now = now
        if self.state.final:
            return []
        if isinstance(report, Prepared):
            self.checkpoints.prepared(worker, report)
        elif isinstance(report, CheckpointFailed):
            self.checkpoints.failed(worker, report.checkpoint, report.problem, report.committables)
        elif isinstance(report, Finished):
            self.checkpoints.finish(worker, report)
            if self._finished.issuperset(self.workers):
                return self._finish(now) if not self._saving else []
        elif isinstance(report, (Attached, SourcePaused, Rewound)):
            if self.rescaling is not None:
                self.rescaling.note(worker, report)
        else:
            self.migrations.note(worker, report)
        return [*self._try_complete(now), *self._rescale(now), *self._migrate(now)]

    def saved(self, checkpoint: int, problem: str | None, now: float) -> list[Effect]:
        """The manifest of `checkpoint` is written, or can't be."""
        self._now = now
        pending = self.checkpoints.pending
        if pending is None or pending.number != checkpoint or self.state.final:
            return []
        if problem is not None:
            pending.problem = problem
            effects = self._give_up(now)
        else:
            effects = self._complete(now, self._manifest)
        if not self.state.final and self._finished.issuperset(self.workers):
            return [*effects, *self._finish(now)]  # the last worker finished while the manifest was written
        return [*effects, *self._rescale(now), *self._migrate(now)]

    def rescale(self, stage: Stage, parallelism: int, reason: str, now: float) -> tuple[Rescaling, list[Effect]]:
        """Give a stage another number of workers; those that leave must own no keys any more.

        Raises RequestError for an impossible number, of it JobNotRunningError or JobBusyError if the job is not running, or a migration or
        a rescale is under way.
        """
        self._refuse_if_busy("workers can only join or leave")
        change = rescale(self.plan, stage, parallelism, self.migrations.tables)
        token = self.rescales[-1].token if self.rescales else 0
        rescaling = Rescaling(len(self.rescales), self.plan, change, reason, now, token)
        self.rescales.append(rescaling)
        self.plan = replace(self.plan, next_channel=change.plan.next_channel)  # whatever becomes of it, no number is used again
        self._ready -= set(change.joining)
        spawn = [Spawn(rescaling.spawned(), change.joining)] if change.joining else []
        return rescaling, [*spawn, *self._rescale(now)]

    def not_spawned(self, problem: str, now: float) -> list[Effect]:
        """The workers that were to join did not start."""
        rescaling = self.rescaling
        if rescaling is None or rescaling.phase is not Phase.STARTING:
            return []
        rescaling.end(RescaleState.ENDED_EARLY, now, problem)
        return [Retire(rescaling.rescale.joining), *self._migrate(now)]

    def migrate(
        self,
        stage: Stage,
        strategy: str,
        steps: Sequence[HandoverStep],
        reason: str,
        now: float,
        plan: BalancePlan | None = None,
    ) -> tuple[Migration, list[Effect]]:
        """Change the routing of a stage with keyed state by `steps`, which were planned from its table as it is.

        Raises RequestError for the strategy `restart` if the job doesn't save its state, JobError if the job is not running, or a
        migration is under way.
        """
        if strategy == "restart" and not self.settings.save_state:
            raise RequestError(
                f"job `{self.name}`: the strategy restart goes through a savepoint: give the job a place for it, "
                "CheckpointConfig(dir=...), or use another strategy"
            )
        self._refuse_if_busy("keys can only move")
        feeders = frozenset(
            f"{s.name}-{i}" for s in self.plan.stages for o in s.outputs if o.target == stage.name for i in range(s.parallelism)
        )
        members = frozenset(f"{stage.name}-{i}" for i in range(stage.parallelism))
        migration = self.migrations.add(stage.name, strategy, reason, [s for s in steps if s.moves], feeders, members, plan)
        return migration, self._migrate(now)

    def failed(self, error: EvenflowError, now: float | None = None) -> list[Effect]:
        """A worker's task, or something outside the workers, has failed: back to the last checkpoint, or the first cause ends the job."""
        self._now = self._now if now is None else now
        if self.state.final:
            return []
        delay = self.restarts.delay(error, self._now) if self.settings.save_state else None
        if delay is not None:
            return self._go_back(self.plan, delay)
        first = self.restarts.first_cause
        self.error = first if isinstance(first, EvenflowError) else error
        if error is not self.error:  # what was lost is one thing, why the job can't go on without it another
            self.error.add_note(f"The last restart failed too: {error}")
        return self._end(JobState.FAILED)

    def abort(self, error: EvenflowError) -> list[Effect]:
        """End with this error, whatever the restart strategy is: starting again would not help."""
        if self.state.final:
            return []
        self.error = error
        return self._end(JobState.FAILED)

    def redeploy(self) -> list[Effect]:
        """Begin where the newest checkpoint ends: the process that knew more is gone."""
        return self._go_back(self.plan, 0.0)

    def lost(self, worker: str, why: str, now: float | None = None) -> list[Effect]:
        """The worker's process is gone."""
        runs = next((f", which runs {task.operators}," for task in self.plan.tasks if task.name == worker), "")
        return self.failed(JobLostError(f"job `{self.name}`: worker {worker}{runs} is gone: {why}"), now)

    def unreadable(self, checkpoint: int, problem: str, older: Manifest | None, now: float) -> list[Effect]:
        """Checkpoint `checkpoint`, from which the job was to go on, can't be read: go on from an older one, or begin anew without one."""
        self._now = now
        newest = self.checkpoints.newest
        if self.state.final or newest is None or newest.checkpoint != checkpoint:
            return []
        self.checkpoints.unreadable(problem, older)
        return self._go_back(self.plan, 0.0)

    def checkpoint(self, now: float, *, whole: bool = False) -> int:
        """Begin a checkpoint as soon as none is under way; its number. Raises JobNotRunningError if the job is not running.

        `whole`: it must hold the whole state in files of its own.
        """
        if self.state is not JobState.RUNNING:
            raise JobNotRunningError(f"job `{self.name}` is {self.state}: a checkpoint can only be taken while it runs")
        self._next_at = now
        number = self.checkpoints.last + 1
        self._whole = number if whole else self._whole
        return number

    def stop(self) -> list[Effect]:
        """Let the sources end now, or once all workers have started; what they have read is processed and committed."""
        if self.state is not JobState.RUNNING:
            self._stop_wanted = self.starting
            return []
        if self._in_step or self._restart is not None:
            self._stop_wanted = True
            return []
        self.state = JobState.STOPPING
        return [Tell(worker, StopSource()) for worker in sorted(self.sources - self._finished)]

    def cancel(self) -> list[Effect]:
        """End at once; what was not committed is not."""
        return [] if self.state.final else self._end(JobState.CANCELLED)

    def tick(self, now: float) -> list[Effect]:
        """Time has passed: begin a checkpoint if one is due, give one up that takes too long, go back if it never passes everybody."""
        self._now = now
        pending, timeout = self.checkpoints.pending, self.settings.checkpoint_timeout
        if pending is not None and not pending.saving and now - pending.begun > timeout:
            waiting = ", ".join(self.checkpoints.waits_for(self.workers))
            if pending.problem is None:
                pending.problem = f"it took longer than {timeout:g} s (CheckpointConfig(timeout=...) sets the bound), for {waiting}"
            if now - pending.begun > 2 * timeout:
                problem = f"checkpoint {pending.number} has not passed {waiting} within {2 * timeout:g} s"
                return self.failed(JobFailedError(f"job `{self.name}`: {problem}, twice CheckpointConfig(timeout=...)"), now)
        return self._begin(now) if self._due(now) and not self._in_step else []

    @property
    def rescaling(self) -> Rescaling | None:
        """The rescale that is not over."""
        newest = self.rescales[-1] if self.rescales else None
        return newest if newest is not None and newest.state is RescaleState.RUNNING else None

    @property
    def _in_step(self) -> bool:
        """Whether no checkpoint may begin, and no stop."""
        return self.migrations.in_step or (self.rescaling is not None and self.rescaling.exclusive)

    def _refuse_if_busy(self, what: str) -> None:
        if self.state is not JobState.RUNNING:
            raise JobNotRunningError(f"job `{self.name}` is {self.state}: {what} while it runs")
        if (current := self.migrations.current) is not None:
            problem = f"migration {current.number} of `{current.stage}` is under way ({current.done} of {len(current.steps)} steps)"
            raise JobBusyError(f"job `{self.name}`: {problem}; wait until it is done")
        if (rescaling := self.rescaling) is not None:
            problem = f"rescale {rescaling.number} of `{rescaling.rescale.stage}` is under way ({rescaling.phase.value})"
            raise JobBusyError(f"job `{self.name}`: {problem}; wait until it is done")

    def _rescale(self, now: float) -> list[Effect]:
        """Whatever the rescale's next moves are, as far as it goes without an answer."""
        effects: list[Effect] = []
        while (current := self.rescaling) is not None:
            running = self.state is JobState.RUNNING and not self._stop_wanted and bool(self.sources - self._finished)
            free = self.checkpoints.pending is None and self.migrations.current is None
            told = current.advance(ready=self._ready, finished=self._finished, running=running, free=free, now=now)
            if told is None:
                break
            if current.joined:
                self.plan = current.rescale.plan
            elif current.state is RescaleState.DONE:
                self.plan = current.rescale.plan
                self.checkpoints.retire(current.rescale.leaving)
                effects += [*(Tell(name, Shutdown()) for name in current.rescale.leaving), Retire(current.rescale.leaving)]
            elif current.state is RescaleState.ENDED_EARLY and current.rescale.joining:
                self.checkpoints.retire(current.rescale.joining)
                effects.append(Retire(current.rescale.joining))
            effects += [Tell(name, command) for name, command in told]
        return effects

    @property
    def _saving(self) -> bool:
        return self.checkpoints.pending is not None and self.checkpoints.pending.saving

    @property
    def _finished(self) -> frozenset[str]:
        return self.checkpoints.finished

    def _due(self, now: float) -> bool:
        running = self.state is JobState.RUNNING and self.checkpoints.pending is None
        return running and self._next_at is not None and now >= self._next_at

    def _begin(self, now: float) -> list[Effect]:
        sources = sorted(self.sources - self._finished)
        if not sources:
            return []
        number = self.checkpoints.begin(now)
        newest = self.checkpoints.newest
        base = newest.checkpoint if newest is not None and number != self._whole else 0
        return [Tell(worker, BeginCheckpoint(number, base)) for worker in sources]

    def _try_complete(self, now: float) -> list[Effect]:
        pending = self.checkpoints.pending
        if pending is None or not self.checkpoints.passed(self.workers):
            return []
        if pending.problem is not None:
            return self._give_up(now)
        if not self.settings.save_state:
            return self._complete(now, None)
        return self._save(now)

    def _save(self, now: float) -> list[Effect]:
        self._manifest = self.checkpoints.manifest(self.plan, self.attempt, now, self.migrations.tables)
        return [Save(self._manifest)]

    def _complete(self, now: float, manifest: Manifest | None) -> list[Effect]:
        assert self.checkpoints.pending is not None
        number, last = self.checkpoints.pending.number, self.checkpoints.pending.last
        committables = self.checkpoints.end(now, manifest)
        self.committed = number
        if last:
            return [Commit(number, committables), *self._end(JobState.FINISHED)]
        self._plan_next(now)
        return [Commit(number, committables), *self._restart_from(number)]

    def _give_up(self, now: float) -> list[Effect]:
        assert self.checkpoints.pending is not None
        number, problem = self.checkpoints.pending.number, self.checkpoints.pending.problem or ""
        if self.checkpoints.pending.last:
            return self.failed(JobFailedError(f"job `{self.name}`: its last checkpoint, {number}, can't be saved: {problem}"), now)
        self.checkpoints.give_up(now, problem)
        discarded: list[Effect] = [Discard(number, problem)] if self.settings.save_state else []
        self._plan_next(now)
        if self._restart is not None and number >= self._restart.number:
            self._restart.migration.end(MigrationState.ENDED_EARLY, now)
            self._restart = None
        if self.checkpoints.failures > self.settings.tolerable_failures:
            count = self.checkpoints.failures
            self.error = JobFailedError(f"job `{self.name}`: {count} checkpoints in a row have failed; the last, {number}: {problem}")
            return [*discarded, *self._end(JobState.FAILED)]
        return discarded

    def _plan_next(self, now: float) -> None:
        interval = self.settings.checkpoint_interval
        self._next_at = None if interval is None else now + max(interval, self.settings.checkpoint_pause)

    def _restart_from(self, number: int) -> list[Effect]:
        """If a migration by restart waited for this checkpoint: go on from it with the new tables."""
        restart = self._restart
        if restart is None or number < restart.number:
            return []
        return self._go_back(self.plan, 0.0)

    def _go_back(self, plan: Plan, delay: float) -> list[Effect]:
        """A new attempt from the newest checkpoint, with its routing tables unless a migration by restart gives others."""
        newest, restart, pending = self.checkpoints.newest, self._restart, self.checkpoints.pending
        why = "the job went back to its last checkpoint"
        dropped = self._drop_rescale(why)
        if (current := self.migrations.current) is not None and (restart is None or current is not restart.migration):
            current.end(MigrationState.ENDED_EARLY, self._now)
        if restart is not None and (newest is None or newest.checkpoint < restart.number):
            restart.migration.end(MigrationState.ENDED_EARLY, self._now)
            self._restart = restart = None
        tables = {**self.migrations.tables, **fitting_tables(newest, plan)} if newest is not None else self.plan.tables
        if restart is not None:
            tables.update(restart.tables)
        self.attempt += 1
        self._stop_wanted = self._stop_wanted or self.state is JobState.STOPPING
        self.state = JobState.RESTARTING
        self.plan = plan.with_tables(tables)
        self.migrations.tables = self.plan.tables
        self.checkpoints.reset(self._now)
        self._ready = set()
        retracts = self.committed > (newest.checkpoint if newest is not None else 0)
        discarded = [Discard(pending.number, why)] if pending is not None else []
        return [*dropped, *discarded, Redeploy(self.attempt, self.plan, newest, delay, retracts)]

    def _migrate(self, now: float) -> list[Effect]:
        """Whatever the migrations' next moves are, as far as it goes without an answer."""
        effects: list[Effect] = []
        while (current := self.migrations.current) is not None:
            more = self._advance(current, now)
            if more is None:
                break
            effects += more
        if self._stop_wanted and not self._in_step:
            self._stop_wanted = False
            effects += self.stop()
        return effects

    def _advance(self, migration: Migration, now: float) -> list[Effect] | None:
        """The next move of a migration, None while it waits for an answer. A checkpoint that is due comes before the next step."""
        if migration.strategy == "restart":
            return self._advance_restart(migration, now)
        if migration.may_step(self._finished) and self._due(now) and (begun := self._begin(now)):
            return begun
        running = self.state is JobState.RUNNING and not self._stop_wanted
        free = self.checkpoints.pending is None
        told = self.migrations.advance(finished=self._finished, running=running, free=free, now=now)
        return None if told is None else [Tell(name, command) for name, command in told]

    def _advance_restart(self, migration: Migration, now: float) -> list[Effect] | None:
        if migration.state is MigrationState.WAITING:
            migration.state, migration.begun = MigrationState.RUNNING, now
        if not migration.steps:
            migration.end(MigrationState.DONE, now)
            return []
        if self.state is JobState.RESTARTING or self.checkpoints.pending is not None:
            return None
        if self.state is not JobState.RUNNING or not self.sources - self._finished:
            self._restart = None
            migration.end(MigrationState.ENDED_EARLY, now)
            return []
        if self._restart is None:
            moves = [move for step in migration.steps for move in step.moves]
            tables = {migration.stage: self.migrations.tables[migration.stage].after(moves)}
            self._restart = _Restart(migration, self.checkpoint(now), tables)
        return self._begin(now) if self._due(now) else None

    def _finish(self, now: float) -> list[Effect]:
        dropped = self._drop_rescale()
        if (current := self.migrations.current) is not None:
            if current.in_step and current.complete:
                self.migrations.end_step(current)
            current.end(MigrationState.DONE if current.done == len(current.steps) else MigrationState.ENDED_EARLY, now)
        if not self.settings.save_state:
            self.checkpoints.last += 1
            return [*dropped, Commit(self.checkpoints.last, self.checkpoints.take_all()), *self._end(JobState.FINISHED)]
        self.checkpoints.begin_last(now)
        return [*dropped, *self._save(now)]

    def _end(self, state: JobState) -> list[Effect]:
        if (current := self.migrations.current) is not None:
            current.end(MigrationState.ENDED_EARLY, max(current.begun or 0.0, self._now))
        dropped = self._drop_rescale()
        self.state = state
        return [*dropped, *(Tell(worker, Shutdown()) for worker in self.workers), Ended(state)]

    def _drop_rescale(self, problem: str | None = None) -> list[Effect]:
        """What becomes of a rescale that is under way when the job ends or goes back."""
        rescaling = self.rescaling
        if rescaling is None:
            return []
        rescaling.end(RescaleState.ENDED_EARLY, self._now, problem)
        outside = tuple(name for name in rescaling.rescale.joining if name not in self.workers)
        return [Retire(outside)] if outside else []
