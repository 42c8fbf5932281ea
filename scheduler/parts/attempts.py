"""The part of a job that begins attempts: the first one, and others from a checkpoint after a failure or a requested restart.

An attempt waits for its delay, for the sinks to be restored, and for its workers to start.

Invariant: whatever fails, the next attempt begins from the newest complete checkpoint. So while a manifest is being written, a
failure waits for the answer.
"""

from __future__ import annotations

from enum import StrEnum

from ...engine.errors import JobLostError
from ...engine.protocol.ids import Attempt, CheckpointNumber, WorkerId
from ...state.errors import CorruptCheckpointError, EvenflowError, StoreUnavailableError
from ..configs.restart import RestartConfig
from ..protocol.effects import Deploy, FindOlder, JobState, RestoreSinks, Warn
from ..protocol.failures import cause_of, failure_of
from ..protocol.restore_point import RestorePoint
from ..protocol.storage_answers import OlderFound, SinksRestored
from ..record.job_record import JobRecord
from ..record.restarts import Restarts
from ..record.restoring.restore import fitting_tables, unsplit, within
from .checkpointing import Checkpointing, Lifecycle
from .reconfiguration import Reconfiguration
from .upgrading import Upgrading


class _Phase(StrEnum):
    """The event that the newest attempt waits for."""

    DELAY = "its delay"
    OLDER = "an older checkpoint"
    SINKS = "the sinks"
    WORKERS = "the workers"
    NOTHING = "nothing"


class Attempts:
    """The attempts of one job; the first starts from `begin`."""

    def __init__(
        self,
        job: JobRecord,
        lifecycle: Lifecycle,
        checkpointing: Checkpointing,
        reconfiguration: Reconfiguration,
        upgrading: Upgrading,
        begin: RestorePoint,
    ) -> None:
        self._job, self._lifecycle, self._checkpointing, self._reconfiguration = job, lifecycle, checkpointing, reconfiguration
        self._upgrading = upgrading
        self._begin_from = begin
        self._restarts = Restarts(job.config.restart)
        self._phase = _Phase.NOTHING
        self._ran = False
        """True once all workers of the newest attempt have started."""
        self._accident: tuple[EvenflowError, WorkerId | None] | None = None
        """An error, and its worker, while a manifest was being written: the job restarts once the manifest is known to count or
        not.
        """

    @property
    def deploying(self) -> bool:
        """True if workers of the newest attempt have not started yet."""
        return self._phase is _Phase.WORKERS

    @property
    def begun(self) -> bool:
        """True if the newest attempt waits for nothing any more."""
        return self._phase is _Phase.NOTHING

    @property
    def _progressed(self) -> bool:
        """True if the job has got further in this attempt: a checkpoint is complete, or it takes none by the clock and ran."""
        return self._job.completed_since or (self._ran and self._job.config.checkpoint.interval_s is None)

    def begin(self) -> None:
        """Start the first attempt, or take over from a coordinator that was lost."""
        if self._begin_from.takes_over:
            error = JobLostError(f"job `{self._job.name}`: its coordinator was lost, and another takes over")
            self._job.emit(Warn(str(error)))
            self.go_back(trouble=(error, str(error)))
        else:
            self._restore_sinks()

    def restart_by(self, config: RestartConfig) -> None:
        """Follow this restart strategy from the next failure on."""
        self._restarts.config = config

    def ready(self, worker: WorkerId) -> bool:
        """Note that a worker has started its task; return True if it was the last one, so that the job runs."""
        job = self._job
        job.ready.add(worker)
        if not self.deploying or not job.ready.issuperset(job.workers):
            return False
        job.state, self._phase, self._ran = JobState.RUNNING, _Phase.NOTHING, True
        return True

    def tick(self) -> None:
        """Begin the attempt whose delay is over."""
        if self._phase is _Phase.DELAY and self._job.now >= self._job.next_try:
            self._restore_sinks()

    def fail(self, error: EvenflowError, worker: WorkerId | None) -> None:
        """Begin another attempt after a failure, perhaps of a worker, or end the job with the first cause.

        Failures before an attempt begins belong to the previous one and are ignored.
        """
        if self._job.state.final or self._phase in (_Phase.DELAY, _Phase.OLDER, _Phase.SINKS):
            return
        if self._checkpointing.saving:
            self._accident = self._accident or (error, worker)
        elif isinstance(error, CorruptCheckpointError):
            self._find_older(error)
        else:
            self._fail_now(error, worker)

    def saved(self) -> None:
        """Handle the failure that happened while a manifest was being written, now that it is known to count or not."""
        if self._accident is not None and not self._checkpointing.saving and not self._job.state.final:
            self._fail_now(*self._accident)

    def go_back(self, delay: float = 0.0, trouble: tuple[EvenflowError, str] | None = None) -> None:
        """Begin an attempt from the newest checkpoint, with its routing tables unless a migration by restart gives others.

        `trouble`: the error that made the job restart, and its description; None if a restart was requested.
        """
        job = self._job
        job.trouble = trouble
        changed = self._reconfiguration.reset()
        self._upgrading.reset()
        newest, plan = job.checkpoints.newest, job.plan
        self._checkpointing.reset()
        tables = {**job.migrations.tables, **fitting_tables(newest, plan)} if newest is not None else unsplit(plan.tables)
        job.plan = plan.with_tables(within({**tables, **changed}, plan))
        job.migrations.tables = job.plan.tables
        job.metrics.follow({task.name: task.stage for task in job.plan.tasks})
        job.attempt = Attempt(job.attempt + 1)
        self._leave_running()
        job.ready = set()
        job.quiet.reset()
        self._accident = None
        job.restarts += 1
        job.restart_causes[cause_of(None if trouble is None else trouble[0])] += 1
        self._ran, job.completed_before = False, job.checkpoints.completed
        self._phase, job.next_try = _Phase.DELAY, job.now + delay
        if delay <= 0:
            self._restore_sinks()

    def end(self) -> None:
        """Wait for nothing any more, since the job ends."""
        self._phase = _Phase.NOTHING

    def sinks_restored(self, answer: SinksRestored) -> None:
        """Deploy the workers, now that the sinks are restored; another attempt may restore sinks that could not be."""
        job = self._job
        self._checkpointing.deliveries.add(answer.deliveries)
        if answer.attempt != job.attempt or self._phase is not _Phase.SINKS or job.state.final:
            return
        self._phase = _Phase.WORKERS
        if answer.error is None:
            job.emit(Deploy(job.attempt, job.plan, job.checkpoints.newest))
        elif answer.hopeless:
            self._lifecycle.abort(answer.error)
        else:
            self._fail_now(answer.error)

    def older_found(self, answer: OlderFound) -> None:
        """Begin an attempt from the older checkpoint that was found; without one, end the job."""
        if self._phase is not _Phase.OLDER or self._job.state.final:
            return
        if isinstance(answer.error, StoreUnavailableError):
            self._fail_now(answer.error)  # nothing is known of older checkpoints: the next attempt looks again
            return
        if answer.error is not None:
            self._lifecycle.abort(answer.error)
            return
        self._job.checkpoints.unreadable(answer.problem, answer.manifest)
        self.go_back(trouble=self._job.trouble)

    def _restore_sinks(self) -> None:
        job = self._job
        newest, committed = job.checkpoints.newest, job.checkpoints.committed
        begins_at = newest.checkpoint if newest is not None else 0
        begun = job.state is JobState.RESTARTING or self._begin_from.resumes
        retracts = committed if committed > begins_at and begun else None
        self._phase = _Phase.SINKS
        job.emit(RestoreSinks(job.attempt, newest, retracts))

    def _leave_running(self) -> None:
        """Mark the job as restarting. A stop that was requested is made again by the next attempt."""
        self._job.state = JobState.RESTARTING

    def _find_older(self, error: CorruptCheckpointError) -> None:
        """Look for an older checkpoint, since a worker can't read the newest. Workers know a savepoint that a job begins from as
        number 0.
        """
        job, newest = self._job, self._job.checkpoints.newest
        if newest is not None and error.checkpoint in (0, newest.checkpoint):
            self._phase = _Phase.OLDER
            job.trouble = error, f"a checkpoint is damaged: {job.describe(error)}"
            job.emit(Warn(f"job `{job.name}` looks for an older checkpoint: {job.describe(error)}"))
            self._leave_running()
            job.emit(FindOlder(CheckpointNumber(error.checkpoint), error.problem))

    def _fail_now(self, error: EvenflowError, worker: WorkerId | None = None) -> None:
        job, restarts = self._job, self._restarts
        job.failures.append(failure_of(error, job.now))
        delay = restarts.delay(error, job.now, progress=self._progressed) if job.config.checkpoint.saves_state else None
        cause = job.describe(error, worker)
        if delay is None and self._upgrading.heals(error):
            self.go_back(trouble=(error, cause))
            return
        if delay is not None:
            count = f"restart {restarts.in_row} of at most {restarts.config.most} in a row"
            job.emit(Warn(f"job `{job.name}`: {count}, in {delay:g} s: {cause}"))
            self.go_back(delay, (error, f"{count}: {cause}"))
            return
        first = restarts.first_cause
        job.error = first if isinstance(first, EvenflowError) else error
        if error is not job.error:  # what was lost is one thing, why the job can't go on without it another
            job.error.add_note(f"The last restart failed too: {error}")
        if job.config.checkpoint.saves_state and (why := restarts.ends(error)) is not None:
            job.error.add_note(f"The job did not start again: {why}.")
            job.emit(Warn(f"job `{job.name}` has failed and is not restarted: {why}. Its error: {cause}"))
        self._lifecycle.end(JobState.FAILED)
