"""The state machine of a job: it turns events into effects, without I/O.

    events -> JobCore -> effects

An event is a method that is called with the time, `now`; effects are taken with `effects()` and carried out in order. The
decisions are made in parts: `attempts.py`, `checkpointing.py`, `reconfiguration.py`, `operator_scaling.py`, `node_scaling.py`,
`automatic_balancing.py`, `autoscaling.py`, `upgrading.py`, `live_settings.py` and `key_reads.py`. This module hands each event
to the parts, and holds the job's begin, stop and end.

Invariant: whatever fails, the job resumes from its newest complete checkpoint, as if nothing had happened since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from ...engine.errors import JobFailedError, JobLostError, JobNotRunningError, ProtocolError
from ...engine.plan.physical import Plan
from ...engine.plan.recoded import recoded
from ...engine.protocol.effects import Finished, OperatorProblem, Prepared, StateRead
from ...engine.protocol.ids import Attempt, WorkerId, attempt_name
from ...state.errors import EvenflowError
from ..configs.job import JobConfig
from ..load.long_call import LongCall
from ..load.window import WorkerWindow
from ..parts.attempts import Attempts
from ..parts.automatic_balancing import AutomaticBalancing
from ..parts.autoscaling import NODES_SECONDS, Autoscaling
from ..parts.checkpointing import Checkpointing
from ..parts.key_reads import KeyReads
from ..parts.live_settings import LiveSettings
from ..parts.node_scaling import NodeScaling
from ..parts.operator_scaling import OperatorScaling
from ..parts.reconfiguration import Reconfiguration
from ..parts.upgrading import Upgrading
from ..policies.nodes.placement import ClusterView
from ..protocol.effects import (
    Effect,
    Ended,
    JobState,
    RememberStart,
    RememberStop,
    StopOrder,
    Tell,
    Warn,
)
from ..protocol.failures import failure_of
from ..protocol.messages import CheckpointFailed, Failed, Report, Shutdown, StopSource
from ..protocol.requests import AnyRequest, ChangeRequest
from ..protocol.restore_point import RestorePoint
from ..protocol.storage_answers import (
    Committed,
    Delivery,
    ManifestSaved,
    OlderFound,
    SavepointCopied,
    SinksRestored,
    StorageAnswer,
    StorageFailed,
)
from ..record.checkpoints import Checkpoints, Deliveries
from ..record.job_record import JobRecord
from ..record.migrations import Migrations
from ..record.rescaling import Rescaling
from ..record.restoring.restore import fitting_tables, plan_at
from ..record.restoring.run_claim import RunEnd
from .request_handler import RequestHandler

QUIET_CHECK_SECONDS = 1.0
"""Seconds between two searches for inputs that hold event time back."""


class JobCore:
    """The state machine of one job, which starts from `begin` (by default from nothing).

    Times are seconds since the epoch, by a clock that never decreases.
    """

    def __init__(self, plan: Plan, config: JobConfig | None = None, begin: RestorePoint | None = None) -> None:
        begin = begin if begin is not None else RestorePoint()
        undelivered: tuple[Delivery, ...] = ()
        if begin.code is not None:
            plan = recoded(plan, begin.code.codes)
        if begin.manifest is not None:
            again = begin.takes_over and not begin.from_savepoint
            parallelism = begin.code.parallelism if begin.code is not None else {}
            plan = plan_at(begin.manifest, plan, parallelism) if again else plan.with_tables(fitting_tables(begin.manifest, plan))
            undelivered = () if begin.from_savepoint else begin.manifest.undelivered
        self._job = job = JobRecord(plan, config if config is not None else JobConfig(), begin)
        self.checkpointing = Checkpointing(job, self, Deliveries(undelivered))
        self.reconfiguration = Reconfiguration(job, self, self.checkpointing)
        self.upgrading = Upgrading(job, self, self.checkpointing, self.reconfiguration)
        self._attempts = Attempts(job, self, self.checkpointing, self.reconfiguration, self.upgrading, begin)
        self.operator_scaling = OperatorScaling(job, self.reconfiguration)
        self.node_scaling = NodeScaling(job, self, self.checkpointing, self.operator_scaling)
        self.balancing = AutomaticBalancing(job, self.reconfiguration, lambda: self.busy)
        self.autoscaling = Autoscaling(job, self.operator_scaling, self.node_scaling, self.reconfiguration, lambda: self.busy)
        self._reads = KeyReads(job)
        self._settings = LiveSettings(job, self._attempts, self.checkpointing, self.balancing, self.autoscaling)
        self._answering = RequestHandler(
            job, self, self.checkpointing, self.reconfiguration, self.operator_scaling, self.node_scaling, self.balancing, self.autoscaling,
            self.upgrading, self._settings, self._reads,
        )  # fmt: skip
        self._running_since = begin.running_since
        self._ended_at: float | None = None
        self._quiet_check_at = 0.0

    @property
    def record(self) -> JobRecord:
        """The data that the job's parts share; read-only for callers."""
        return self._job

    @property
    def name(self) -> str:
        return self._job.name

    @property
    def plan(self) -> Plan:
        """The current plan: workers may have joined and left since the start."""
        return self._job.plan

    @property
    def state(self) -> JobState:
        return self._job.state

    @property
    def error(self) -> EvenflowError | None:
        """The error that ended the job, None if it hasn't failed."""
        return self._job.error

    @property
    def end_note(self) -> RunEnd:
        """The note about the end of a job, for the next start of the program."""
        if self.state is JobState.CANCELLED:
            return RunEnd.DISCARDED if self._job.discarded else RunEnd.CANCELLED
        return RunEnd.FINISHED if self.state is JobState.FINISHED else RunEnd.FAILED

    @property
    def attempt(self) -> int:
        return self._job.attempt

    @property
    def checkpoints(self) -> Checkpoints:
        return self._job.checkpoints

    @property
    def migrations(self) -> Migrations:
        return self._job.migrations

    @property
    def rescaling(self) -> Rescaling | None:
        """The rescale that is not over."""
        return self._job.rescaling

    @property
    def workers(self) -> tuple[WorkerId, ...]:
        return self._job.workers

    @property
    def deploying(self) -> bool:
        """True if workers of the newest attempt have not started yet."""
        return self._attempts.deploying

    @property
    def busy(self) -> bool:
        """True if keys move, workers join or leave, an operator or the nodes are being scaled, or code is exchanged."""
        return self.reconfiguration.busy or self.operator_scaling.busy or self.node_scaling.busy or self.upgrading.busy

    @property
    def age_of_nodes(self) -> float | None:
        """The greatest age in seconds of the list of nodes that the job needs now; None if it needs none. Advice can wait."""
        if self.node_scaling.busy:
            return NODES_SECONDS
        return self.autoscaling.age_of_nodes

    @property
    def running_seconds(self) -> float:
        """Seconds since all workers started, up to the job's end; 0.0 before that."""
        until = self._ended_at if self._ended_at is not None else self._job.now
        return max(0.0, until - self._running_since) if self._running_since is not None else 0.0

    def effects(self) -> list[Effect]:
        """Return the effects to carry out, in order, and forget them."""
        return self._job.take_effects()

    def begin(self, now: float) -> None:
        """Start the first attempt, or take over from a coordinator that was lost."""
        self._job.happens("begin", now)
        self._attempts.begin()

    def ready(self, worker: WorkerId, attempt: Attempt, now: float) -> None:
        """Note that the worker has started its task in this attempt."""
        job = self._job
        if attempt != job.attempt or job.state.final:
            return
        job.happens(f"{worker} is ready", now)
        self._settings.greet(worker)
        if self._attempts.ready(worker):
            self._started()
        self._advance()

    def report(self, worker: WorkerId, report: Report, now: float) -> None:
        """Handle a worker's report; reports of one worker arrive in the order sent."""
        job = self._job
        if isinstance(report, WorkerWindow):
            window = job.dropped_records.taken(report)
            job.metrics.add(window)
            job.progress.add(window)
            if worker in job.sources:
                job.quiet.add(window)
            self.balancing.add(window)
            return
        job.happens(f"{worker}: {type(report).__name__}", now)
        if isinstance(report, OperatorProblem):
            job.note(report)
            return
        if isinstance(report, StateRead):
            self._reads.note(worker, report)
            return
        if job.state.final:
            return
        if isinstance(report, Failed):
            self.fail(report.error if isinstance(report.error, EvenflowError) else JobFailedError(str(report.error)), worker)
        elif isinstance(report, (Prepared, CheckpointFailed, Finished)):
            self.checkpointing.note(worker, report)
        else:
            self.reconfiguration.note(worker, report)
        self._advance()

    def lost(self, worker: WorkerId, why: str, now: float) -> None:
        """Handle the end of a worker's process. It is a failure unless an attempt is yet to begin or the worker has sent its last
        row.
        """
        self._job.happens(f"{worker} is lost: {why}", now)
        if self._job.state.final or self.checkpointing.ending:
            return
        runs = next((f", which runs {task.operators}," for task in self.plan.tasks if task.name == worker), "")
        self.fail(JobLostError(f"job `{self.name}`: worker {worker}{runs} is gone: {why}"))
        self._advance()

    def not_deployed(self, attempt: Attempt, error: EvenflowError, now: float) -> None:
        """Handle the failed start of an attempt. If the first one can't start, the job fails, since another would not help."""
        job = self._job
        job.happens(f"attempt {attempt_name(attempt)} is not deployed: {error}", now)
        if attempt != job.attempt or job.state.final:
            return
        if job.state is JobState.STARTING:
            self.abort(error)
        else:
            self.fail(error)

    def not_spawned(self, workers: tuple[WorkerId, ...], attempt: Attempt, problem: str, now: float) -> None:
        """Handle the failed start of workers that were to join."""
        self._job.happens(f"{', '.join(workers)} did not start: {problem}", now)
        current = self._job.rescaling
        if attempt == self._job.attempt and current is not None and current.rescale.joining == workers:
            self.reconfiguration.not_spawned(problem)
            self._advance()

    def not_reserved(self, problem: str, now: float) -> None:
        """Note that there is no room for the requested spare processes."""
        self._job.happens(f"no spares: {problem}", now)
        self.node_scaling.not_reserved(problem)
        self.upgrading.not_reserved()

    def stored(self, answer: StorageAnswer, now: float) -> None:
        """Handle an answer of the storage."""
        self._job.happens(type(answer).__name__, now)
        match answer:
            case ManifestSaved():
                self.checkpointing.saved(answer)
                self._attempts.saved()
            case Committed():
                self.checkpointing.committed(answer)
            case SinksRestored():
                self._attempts.sinks_restored(answer)
            case OlderFound():
                self._attempts.older_found(answer)
            case StorageFailed():
                self.abort(answer.error)
            case SavepointCopied():
                self.checkpointing.copied(answer)
            case _:
                assert_never(answer)
        self._advance()

    def tick(self, now: float, cluster: ClusterView | None = None) -> None:
        """Advance to time `now`. `cluster`: its current state, None where there are no nodes."""
        self._job.passes(now)
        if not self.state.final:
            self._job.progress.look(now, self._job.checkpoints.completed)
            self._attempts.tick()
            self.checkpointing.tick()
            self._advance()
            self._find_quiet_inputs()
        self.operator_scaling.advance(cluster)
        self.upgrading.advance(cluster)
        self.node_scaling.advance(cluster)
        self.balancing.advance()
        self.autoscaling.advance(cluster)

    def note_long_calls(self, calls: Mapping[WorkerId, LongCall]) -> None:
        """Note the workers whose threads have been in one call for long, all that there are."""
        self._job.long_calls = calls

    def answer(self, request: AnyRequest, now: float, cluster: ClusterView | None = None) -> Any:
        """Answer a request with the type that it names.

        Raises RequestError for an impossible request, JobBusyError or JobNotRunningError for one that is impossible now.
        """
        if isinstance(request, ChangeRequest):
            self._job.happens(type(request).__name__, now)
        else:
            self._job.now = now
        return self._answering.answer(request, cluster)

    def stop(self, order: StopOrder) -> None:
        """Stop now, or once all workers have started and no change, and for a barrier no checkpoint, is under way."""
        job = self._job
        if job.state.final or job.state is JobState.STOPPING:
            if order.savepoint is not None:
                raise JobNotRunningError(f"job `{job.name}` is {job.state} already: it makes no savepoint any more")
            return
        if job.stop_asked != order:
            job.stop_asked = order
            job.emit(RememberStop(order))
        self._stop_if_it_can()

    def _stop_if_it_can(self) -> None:
        job = self._job
        changing = job.in_step or self.reconfiguration.restarting or job.holds_checkpoints
        if not job.stop_wanted or job.state is not JobState.RUNNING or changing:
            return
        if (job.stop_asked is not None and job.stop_asked.drain) or not job.reading:
            job.state = JobState.STOPPING
            job.emit(*(Tell(worker, StopSource()) for worker in sorted(job.reading)))
        elif self.checkpointing.begin_last():
            job.state = JobState.STOPPING
            if not job.config.checkpoint.saves_state and any(stage.is_keyed for stage in job.plan.stages):
                job.emit(
                    Warn(
                        f"job `{job.name}` stops without a checkpoint folder: what its operators hold, such as open windows, is discarded; "
                        "stop(drain=True) emits it, and CheckpointConfig(dir=...) keeps it for the next run"
                    )
                )

    def fail(self, error: EvenflowError, worker: WorkerId | None = None) -> None:
        """Handle a failure, perhaps of a worker: restore the job from the last checkpoint, or end it with the first cause."""
        self._attempts.fail(error, worker)

    def abort(self, error: EvenflowError) -> None:
        """End with this error, whatever the restart strategy is: starting again would not help."""
        if not self.state.final:
            self._job.failures.append(failure_of(error, self._job.now))
            self._job.error = error
            self.end(JobState.FAILED)

    def go_back(self) -> None:
        """Begin an attempt from the newest checkpoint, since a change needs it."""
        self._attempts.go_back()

    def end(self, state: JobState) -> None:
        """Come to a final state."""
        job = self._job
        if isinstance(job.error, ProtocolError):
            job.error.add_note(f"The last events of the job, with their times in seconds:\n{job.story}")
        self.reconfiguration.end()
        self.upgrading.finish()
        self._attempts.end()
        job.state, self._ended_at = state, job.now
        self.operator_scaling.advance(None)  # its report is over too: there may be no further tick
        job.emit(*(Tell(worker, Shutdown()) for worker in job.workers), Ended(state))

    def _advance(self) -> None:
        """Take every step that needs no further answer."""
        job = self._job
        if job.state.final:
            return
        if self._attempts.begun and self.checkpointing.may_finish:
            self.reconfiguration.finish()
            self.checkpointing.finish()
            return
        self.checkpointing.advance()
        self.reconfiguration.advance()
        self._stop_if_it_can()

    def _started(self) -> None:
        job = self._job
        if self._running_since is None:
            self._running_since = job.now
            job.emit(RememberStart(job.now))
        job.progress.started(job.now)
        self.checkpointing.started()
        self.reconfiguration.started()

    def _find_quiet_inputs(self) -> None:
        job = self._job
        if job.state is JobState.RUNNING and job.now >= self._quiet_check_at:
            self._quiet_check_at = job.now + QUIET_CHECK_SECONDS
            for problem in job.quiet.find(job.plan, job.finished, job.now):
                job.emit(Warn(f"job `{job.name}`: {problem}"))
