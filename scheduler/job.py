"""The job: which state it is in, which checkpoint is under way, and what is to be done next, without I/O.

Invariant: what the sinks wrote is committed exactly once and in the order of the checkpoints; a checkpoint is complete when every
worker that has not finished has prepared it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..engine.errors import EvenflowError, JobError
from ..engine.plan import Plan
from ..engine.task import Finished, Prepared
from .messages import BeginCheckpoint, Command, Shutdown, StopSource


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

    def ready(self, worker: str, now: float) -> list[Effect]:
        """The worker has started its task."""
        self._ready.add(worker)
        if self.state is JobState.STARTING and self._ready.issuperset(self.workers):
            self.state = JobState.RUNNING
            self._next_at = None if self.interval is None else now + self.interval
        return []

    def report(self, worker: str, report: Prepared | Finished, now: float) -> list[Effect]:
        """A worker has prepared a checkpoint or finished."""
        if self.state.final:
            return []
        self._collect(report.committables)
        if isinstance(report, Finished):
            self._finished.add(worker)
            if self._finished.issuperset(self.workers):
                return self._finish()
        elif self._pending is not None and report.checkpoint == self._pending.id:
            self._pending.prepared.add(worker)
        return self._try_complete(now)

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
        """Let the sources end now; what they have read is processed and committed."""
        if self.state is not JobState.RUNNING:
            return []
        self.state = JobState.STOPPING
        return [Tell(worker, StopSource()) for worker in sorted(self.sources - self._finished)]

    def cancel(self) -> list[Effect]:
        """End at once; what was not committed is not."""
        return [] if self.state.final else self._end(JobState.CANCELLED)

    def tick(self, now: float) -> list[Effect]:
        """Time has passed: begin a checkpoint if one is due."""
        if self.state is not JobState.RUNNING or self._next_at is None or self._pending is not None or now < self._next_at:
            return []
        return self._begin(now)

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

    def _finish(self) -> list[Effect]:
        self._last += 1
        commit = self._commit(self._last)
        return [commit, *self._end(JobState.FINISHED)]

    def _commit(self, checkpoint: int) -> Commit:
        committables, self._committables = self._committables, {}
        return Commit(checkpoint, committables)

    def _collect(self, committables: dict[str, list[Any]]) -> None:
        for sink, items in committables.items():
            self._committables.setdefault(sink, []).extend(items)

    def _end(self, state: JobState) -> list[Effect]:
        self.state = state
        return [*_tell_all(self.workers, Shutdown()), Ended(state)]


def _tell_all(workers: Iterable[str], command: Command) -> list[Effect]:
    return [Tell(worker, command) for worker in workers]
