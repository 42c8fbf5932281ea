"""The job: which state it is in, which checkpoint is under way, and what is to be done next, without I/O.

Invariant: what the sinks wrote is committed exactly once and in the order of the checkpoints; a checkpoint is complete when every
worker that has not finished has prepared it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..balancer.plan import BalancePlan
from ..engine.errors import EvenflowError, FlowError, JobError
from ..engine.handover import Arrived
from ..engine.handover_step import HandoverStep
from ..engine.plan import Plan, Stage
from ..engine.task import Finished, Prepared, Switched
from .config import LIVE
from .messages import Announce, Announced, BeginCheckpoint, Command, Resume, Shutdown, StopSource, Switch
from .migration import Migration, Migrations, MigrationState


class JobState(StrEnum):
    """Where a job is in its life; the last three are final."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self in (JobState.FINISHED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Tell:
    """Send `command` to `worker`; commands to one worker are in order."""

    worker: str
    command: Command


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit `checkpoint`: `committables` by sink operator. Commits must be carried out in the order in which they are given."""

    checkpoint: int
    committables: dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Ended:
    """The job has come to a final state."""

    state: JobState


Effect = Tell | Commit | Ended


@dataclass(slots=True)
class PendingCheckpoint:
    """A checkpoint that is under way."""

    id: int
    begun: float
    prepared: set[str]


class JobCore:
    """Times are in seconds of any clock that doesn't go back. `checkpoint_interval` None: no checkpoints, one commit at the end."""

    def __init__(self, plan: Plan, *, checkpoint_interval: float | None = None) -> None:
        self.name = plan.name
        self.workers = tuple(task.name for task in plan.tasks)
        self.sources = frozenset(f"{s.name}-{i}" for s in plan.stages if s.is_source for i in range(s.parallelism))
        self.interval = checkpoint_interval
        self.state = JobState.STARTING
        self.error: EvenflowError | None = None
        self.completed_checkpoints = 0
        self._ready: set[str] = set()
        self._finished: set[str] = set()
        self._pending: PendingCheckpoint | None = None
        self._last = 0
        self._next_at: float | None = None
        self._committables: dict[str, list[Any]] = {}
        self._later: dict[str, list[Any]] = {}
        self._stop_wanted = False
        self._now = 0.0
        self.plan = plan
        self.migrations = Migrations({s.name: plan.table_of(s) for s in plan.stages if s.is_keyed})

    def ready(self, worker: str, now: float) -> list[Effect]:
        """The worker has started its task."""
        self._ready.add(worker)
        if self.state is JobState.STARTING and self._ready.issuperset(self.workers):
            self.state = JobState.RUNNING
            self._next_at = None if self.interval is None else now + self.interval
            if self._stop_wanted:
                self._stop_wanted = False
                return self.stop()
        return []

    def report(self, worker: str, report: Prepared | Finished | Announced | Switched | Arrived, now: float) -> list[Effect]:
        """A worker has prepared a checkpoint, finished, or got on with a migration."""
        self._now = now
        if self.state.final:
            return []
        if isinstance(report, (Prepared, Finished)):
            passed = isinstance(report, Finished) and self._pending is not None and worker in self._pending.prepared
            _collect(self._later if passed else self._committables, report.committables)
        if isinstance(report, Finished):
            self._finished.add(worker)
            if self._finished.issuperset(self.workers):
                return self._finish(now)
        elif isinstance(report, Prepared):
            if self._pending is not None and report.checkpoint == self._pending.id:
                self._pending.prepared.add(worker)
        else:
            self._note_migration(worker, report)
        return [*self._try_complete(now), *self._migrate(now)]

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

        Raises FlowError for the strategy `restart`, JobError if the job is not running, or a migration is under way.
        """
        if strategy == "restart":
            instead = ", ".join(LIVE)
            raise FlowError(f"job `{self.name}`: the strategy restart needs savepoints, which jobs do not have yet: use one of {instead}")
        if self.state is not JobState.RUNNING:
            raise JobError(f"job `{self.name}` is {self.state}: keys can only move while it runs")
        if (current := self.migrations.current) is not None:
            problem = f"migration {current.number} of `{current.stage}` is under way ({current.done} of {len(current.steps)} steps)"
            raise JobError(f"job `{self.name}`: {problem}; wait until it is done")
        feeders = frozenset(
            f"{s.name}-{i}" for s in self.plan.stages for o in s.outputs if o.target == stage.name for i in range(s.parallelism)
        )
        members = frozenset(f"{stage.name}-{i}" for i in range(stage.parallelism))
        migration = self.migrations.add(stage.name, strategy, reason, [s for s in steps if s.moves], feeders, members, plan)
        return migration, self._migrate(now)

    def failed(self, error: EvenflowError) -> list[Effect]:
        """A worker's task has failed; the first cause stands."""
        if self.state.final:
            return []
        self.error = error
        return self._end(JobState.FAILED)

    def lost(self, worker: str, why: str) -> list[Effect]:
        """The worker's process is gone."""
        return self.failed(JobError(f"job `{self.name}`: worker {worker} is gone: {why}"))

    def stop(self) -> list[Effect]:
        """Let the sources end now, or once all workers have started; what they have read is processed and committed."""
        if self.state is not JobState.RUNNING:
            self._stop_wanted = self.state is JobState.STARTING
            return []
        if self.migrations.in_step:
            self._stop_wanted = True
            return []
        self.state = JobState.STOPPING
        return [Tell(worker, StopSource()) for worker in sorted(self.sources - self._finished)]

    def cancel(self) -> list[Effect]:
        """End at once; what was not committed is not."""
        return [] if self.state.final else self._end(JobState.CANCELLED)

    def tick(self, now: float) -> list[Effect]:
        """Time has passed: begin a checkpoint if one is due."""
        self._now = now
        return self._begin(now) if self._due(now) and not self.migrations.in_step else []

    def _due(self, now: float) -> bool:
        running = self.state is JobState.RUNNING and self._pending is None
        return running and self._next_at is not None and now >= self._next_at

    def _begin(self, now: float) -> list[Effect]:
        sources = sorted(self.sources - self._finished)
        if not sources:
            return []
        self._last += 1
        self._pending = PendingCheckpoint(self._last, now, set())
        return [Tell(worker, BeginCheckpoint(self._last)) for worker in sources]

    def _try_complete(self, now: float) -> list[Effect]:
        pending = self._pending
        if pending is None or not (pending.prepared | self._finished).issuperset(self.workers):
            return []
        self._pending = None
        self.completed_checkpoints += 1
        if self.interval is not None:
            self._next_at = now + self.interval
        return [self._commit(pending.id)]

    def _note_migration(self, worker: str, report: Announced | Switched | Arrived) -> None:
        current = self.migrations.current
        if current is None:
            return
        if isinstance(report, Announced):
            if report.number == current.number:
                current.announced.add(worker)
        elif current.in_step and report.version == current.step.version:
            if isinstance(report, Switched):
                current.switched.add(worker)
            else:
                current.note(int(worker.rpartition("-")[2]), report)

    def _migrate(self, now: float) -> list[Effect]:
        """Whatever the migrations' next moves are, as far as it goes without an answer."""
        effects: list[Effect] = []
        while (current := self.migrations.current) is not None:
            more = self._advance(current, now)
            if more is None:
                break
            effects += more
        if self._stop_wanted and not self.migrations.in_step:
            self._stop_wanted = False
            effects += self.stop()
        return effects

    def _advance(self, migration: Migration, now: float) -> list[Effect] | None:
        """The next move of a migration, None while it waits for an answer."""
        if migration.state is MigrationState.WAITING:
            migration.state, migration.begun = MigrationState.RUNNING, now
            concerned = sorted((migration.feeders | migration.members) - self._finished)
            return [Tell(w, Announce(migration.number, migration.stage, migration.steps)) for w in concerned]
        feeding = migration.feeders - self._finished
        if migration.in_step:
            return self._advance_step(migration, feeding, now)
        if migration.done == len(migration.steps):
            return self._end_migration(migration, MigrationState.DONE, now)
        if not feeding or self.state is not JobState.RUNNING or self._stop_wanted:
            return self._end_migration(migration, MigrationState.ENDED_EARLY, now)
        if self._pending is not None or not (migration.announced | self._finished).issuperset(migration.feeders | migration.members):
            return None
        if self._due(now) and (begun := self._begin(now)):
            return begun
        migration.in_step = True
        migration.switched, migration.arrived = set(), set()
        return [Tell(worker, Switch(migration.step.version)) for worker in sorted(feeding)]

    def _advance_step(self, migration: Migration, feeding: frozenset[str], now: float) -> list[Effect] | None:
        if not feeding and not migration.switched:
            return self._end_migration(migration, MigrationState.ENDED_EARLY, now)
        if not migration.complete or not (migration.switched | self._finished).issuperset(migration.feeders):
            return None
        step = migration.step
        self.migrations.end_step(migration)
        return [Tell(worker, Resume()) for worker in sorted(feeding)] if step.pause else []

    def _end_migration(self, migration: Migration, state: MigrationState, now: float) -> list[Effect]:
        migration.state, migration.ended, migration.in_step = state, now, False
        return []

    def _finish(self, now: float) -> list[Effect]:
        if (current := self.migrations.current) is not None:
            if current.in_step and current.complete:
                self.migrations.end_step(current)
            self._end_migration(current, MigrationState.DONE if current.done == len(current.steps) else MigrationState.ENDED_EARLY, now)
        _collect(self._committables, self._later)
        self._later = {}
        self._last += 1
        return [self._commit(self._last), *self._end(JobState.FINISHED)]

    def _commit(self, checkpoint: int) -> Commit:
        """What was written before the checkpoint; what workers wrote behind it, before they finished, is for the next."""
        committables, self._committables, self._later = self._committables, self._later, {}
        return Commit(checkpoint, committables)

    def _end(self, state: JobState) -> list[Effect]:
        if (current := self.migrations.current) is not None:
            self._end_migration(current, MigrationState.ENDED_EARLY, max(current.begun or 0.0, self._now))
        self.state = state
        return [*_tell_all(self.workers, Shutdown()), Ended(state)]


def _collect(into: dict[str, list[Any]], committables: dict[str, list[Any]]) -> None:
    for sink, items in committables.items():
        into.setdefault(sink, []).extend(items)


def _tell_all(workers: Iterable[str], command: Command) -> list[Effect]:
    return [Tell(worker, command) for worker in workers]
