"""The supervisor: carries out what the job's state machine decides, for either driver.

It owns the job's state, its metrics, and the sinks' commits. `tell(worker, command)` is how the driver reaches a worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..engine.duration import seconds
from ..engine.errors import EvenflowError, JobError
from ..engine.operators.write import Write
from ..engine.plan import Plan
from ..engine.sink import Sink
from ..scheduler.config import JobConfig
from ..scheduler.job import Commit, Effect, JobCore, JobState, Tell
from ..scheduler.messages import Command, Failed, Report
from ..scheduler.metrics import JobMetrics, OperatorLoad, WorkerFigures
from ..scheduler.window import WorkerWindow


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What `job.status()` shows."""

    name: str
    state: JobState
    error: EvenflowError | None
    workers: tuple[str, ...]
    completed_checkpoints: int
    running_seconds: float
    metrics_url: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What stays of a job that has ended; `loads` by operator."""

    status: JobStatus
    figures: list[WorkerFigures]
    loads: dict[str, OperatorLoad]


@dataclass(frozen=True, slots=True)
class Progress:
    """What the driver polls: the job's state, and the sinks' payloads from a given number on."""

    state: JobState
    error: EvenflowError | None
    deliveries: tuple[tuple[str, Any], ...]


class Supervisor:
    """Used by one thread at a time."""

    def __init__(self, plan: Plan, config: JobConfig, tell: Callable[[str, Command], None]) -> None:
        self.plan = plan
        interval = config.checkpoint_interval
        self.core = JobCore(plan, checkpoint_interval=None if interval is None else seconds(interval))
        self.metrics = JobMetrics({task.name: task.stage for task in plan.tasks})
        self._sinks = plan_sinks(plan)
        self._tell = tell
        self._deliveries: list[tuple[str, Any]] = []
        self._delivered = 0
        self._begun = time.monotonic()
        self._ended: float | None = None

    def ready(self, worker: str) -> None:
        """A worker has started."""
        self._carry_out(self.core.ready(worker, time.monotonic()))

    def report(self, worker: str, report: Report) -> None:
        """A worker's report, in the order in which the worker sent it."""
        if isinstance(report, WorkerWindow):
            self.metrics.add(report)
        elif isinstance(report, Failed):
            error = report.error
            self._carry_out(self.core.failed(error if isinstance(error, EvenflowError) else JobError(str(error))))
        else:
            self._carry_out(self.core.report(worker, report, time.monotonic()))

    def lost(self, worker: str, why: str) -> None:
        """A worker's process is gone."""
        self._carry_out(self.core.lost(worker, why))

    def failed(self, error: EvenflowError) -> None:
        """Something outside the workers failed: a source's query, a deployment."""
        self._carry_out(self.core.failed(error))

    def tick(self) -> None:
        """Called a few times a second."""
        self._carry_out(self.core.tick(time.monotonic()))

    def stop(self) -> None:
        """Let the sources end; everything read is processed and committed."""
        self._carry_out(self.core.stop())

    def cancel(self) -> None:
        """End at once."""
        self._carry_out(self.core.cancel())

    def progress(self, seen: int) -> Progress:
        """The state, and the payloads from number `seen` on; earlier ones are let go."""
        drop = seen - self._delivered
        if drop > 0:
            del self._deliveries[:drop]
            self._delivered = seen
        return Progress(self.core.state, self.core.error, tuple(self._deliveries))

    def status(self) -> JobStatus:
        """What `job.status()` shows."""
        running = (self._ended if self._ended is not None else time.monotonic()) - self._begun
        core = self.core
        return JobStatus(core.name, core.state, core.error, core.workers, core.completed_checkpoints, running)

    def figures(self) -> list[WorkerFigures]:
        """What `job.metrics()` shows."""
        return self.metrics.workers()

    def load(self, operator: str) -> OperatorLoad:
        """What `job.load()` shows. Raises FlowError if there is no such operator, naming those there are."""
        return self.metrics.load(self.plan.stage_of(operator).name)

    def loads(self) -> dict[str, OperatorLoad]:
        """The load of every operator."""
        return {chained.name: self.metrics.load(stage.name) for stage in self.plan.stages for chained in stage.chain}

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Tell):
                self._tell(effect.worker, effect.command)
            elif isinstance(effect, Commit):
                if not self._commit(effect):
                    return
            else:
                self._ended = time.monotonic()

    def _commit(self, commit: Commit) -> bool:
        for name, sink in self._sinks.items():
            try:
                payloads = sink.commit(commit.checkpoint, commit.committables.get(name, []))
            except Exception as error:  # noqa: BLE001 -- a sink is the user's or a library's: whatever it raises fails the job
                problem = f"sink `{name}` could not commit checkpoint {commit.checkpoint}: {type(error).__name__}: {error}"
                self.core.state = JobState.RUNNING
                self._carry_out(self.core.failed(error if isinstance(error, EvenflowError) else JobError(problem)))
                return False
            self._deliveries.extend((name, payload) for payload in payloads)
        return True


def plan_sinks(plan: Plan) -> dict[str, Sink]:
    """The sinks of a plan by operator name."""
    return {c.name: c.operator.sink for stage in plan.stages for c in stage.chain if isinstance(c.operator, Write)}
