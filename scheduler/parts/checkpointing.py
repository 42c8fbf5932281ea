"""The part of a job that takes checkpoints: when they begin, how they complete, and what the sinks commit.

Invariants: the sinks' output is committed exactly once, in the order of the checkpoints, and only once the manifest is written.
One commit is under way at a time, and no checkpoint begins meanwhile. While a manifest is being written the job restores nothing:
only the answer tells which checkpoint is the newest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from ...engine.errors import JobFailedError, JobNotRunningError, RequestError
from ...engine.protocol.effects import Finished, Prepared
from ...engine.protocol.ids import NO_CHECKPOINT, CheckpointNumber, WorkerId
from ...state.errors import EvenflowError
from ..configs.checkpoint import CheckpointConfig
from ..load.standstill import PendingCommit, PendingSave
from ..protocol.effects import Commit, CopySavepoint, Discard, JobState, Save, StopOrder, Tell, Warn
from ..protocol.manifest import Manifest
from ..protocol.messages import BeginCheckpoint, CheckpointFailed
from ..protocol.reports import CheckpointReport, CheckpointState
from ..protocol.storage_answers import Committed, ManifestSaved, SavepointCopied
from ..record.checkpoints import Deliveries
from ..record.job_record import JobRecord
from ..record.savepoints import Savepoints

ENDED_BEFORE = "the stream ended before it was complete"


class Lifecycle(Protocol):
    """The lifecycle of a job, as its parts see it."""

    def fail(self, error: EvenflowError) -> None:
        """Handle a failure: restore the newest checkpoint, or end, as the restart strategy says."""

    def abort(self, error: EvenflowError) -> None:
        """End with this error: to start again would not help."""

    def go_back(self) -> None:
        """Begin another attempt from the newest checkpoint."""

    def end(self, state: JobState) -> None:
        """Come to a final state."""

    def stop(self, order: StopOrder) -> None:
        """Stop as soon as the job can; rows that were read are processed and committed."""

    @property
    def running_seconds(self) -> float:
        """Seconds since all workers started, up to the job's end; 0.0 before that."""


class Checkpointing:
    """The checkpoints of one job. `deliveries`: payloads of the sinks for the driver."""

    def __init__(self, job: JobRecord, lifecycle: Lifecycle, deliveries: Deliveries) -> None:
        self._job, self._lifecycle, self.deliveries = job, lifecycle, deliveries
        self.savepoints = Savepoints()
        self._next_at: float | None = None
        self._interval_began: float | None = None
        self._newest_ended: float | None = None
        """The end of the newest checkpoint of this attempt, from which the pause counts."""
        self._requested: str | None = None
        """The reason for a requested checkpoint that has not begun."""
        self._whole = 0
        self._manifest: Manifest | None = None
        self._committing: CheckpointNumber | None = None
        self._commit_begun = 0.0
        self._commit_sinks: tuple[str, ...] = ()
        self._last = 0
        """The checkpoint behind which nothing comes, once it is being committed."""
        self._stop = NO_CHECKPOINT
        """The checkpoint at whose barrier the job stops, once it has begun."""
        self._passed = False
        """True once that barrier has passed every worker."""
        self._ends_with: CheckpointNumber | None = None
        """The checkpoint whose copy is all that the end of the job waits for."""

    @property
    def saving(self) -> bool:
        """True while a manifest is being written."""
        return self._manifest is not None

    @property
    def ending(self) -> bool:
        """True if every worker has sent its last element or barrier, so that only saving and committing are left."""
        return (self._job.all_finished or self._passed) and not self._job.state.final

    @property
    def under_way(self) -> bool:
        """True if a checkpoint has begun and its manifest is not written. The commit that follows does not count."""
        return self._job.checkpoints.pending is not None

    @property
    def free(self) -> bool:
        """True if a checkpoint may begin: neither a checkpoint nor a commit is under way."""
        return not self.under_way and self._committing is None

    @property
    def pending_save(self) -> PendingSave | None:
        """The checkpoint under way, and the workers that it waits for."""
        job, pending = self._job, self._job.checkpoints.pending
        if pending is None:
            return None
        return PendingSave(pending.number, job.now - pending.begun, tuple(job.checkpoints.waits_for(job.workers)), pending.saving)

    @property
    def pending_commit(self) -> PendingCommit | None:
        """The commit under way."""
        if self._committing is None:
            return None
        return PendingCommit(self._committing, self._job.now - self._commit_begun, self._commit_sinks)

    @property
    def due(self) -> bool:
        """True if a checkpoint is to begin now."""
        by_time = self._next_at is not None and self._job.now >= self._next_at
        wanted = by_time or self._requested is not None
        allowed = self._job.state is JobState.RUNNING and not self._job.stop_wanted and not self._job.holds_checkpoints
        return allowed and self.free and wanted

    def started(self) -> None:
        """Start the interval: all workers of an attempt have started."""
        self._newest_ended = None
        self._begin_interval()

    def reschedule(self, before: CheckpointConfig) -> None:
        """Begin the next checkpoint when the present settings say, in place of those `before`. A changed interval counts from where
        the previous one began, the first one from now.
        """
        if before.interval is None:
            self._begin_interval()
        else:
            self._next_at = self._due_at()

    def _begin_interval(self) -> None:
        self._interval_began = self._job.now
        self._next_at = self._due_at()

    def _due_at(self) -> float | None:
        """Return the time at which the next checkpoint is due; None without an interval, or before the job runs."""
        config, began = self._job.config.checkpoint, self._interval_began
        if began is None or config.interval_s is None:
            return None
        due = began + config.interval_s
        return due if self._newest_ended is None else max(due, self._newest_ended + config.pause_s)

    def reset(self) -> None:
        """Void the checkpoint under way, since the job restores an earlier one. A late answer about a commit changes nothing."""
        pending, self._committing, self._manifest = self._job.checkpoints.pending, None, None
        self._stop, self._passed, self._ends_with = NO_CHECKPOINT, False, None
        self._job.checkpoints.reset(self._job.now)
        if pending is not None and self._job.config.checkpoint.saves_state:
            self._discard(pending.number, "the job was restored from its last checkpoint")

    def request(self, reason: str, *, whole: bool = False) -> CheckpointNumber:
        """Request a checkpoint, which begins as soon as none is under way. Return its number. `whole`: save the whole state in
        new files.

        Raises JobNotRunningError if the job is not running, RequestError for the whole state of a job that doesn't save its
        state.
        """
        job = self._job
        if job.state is not JobState.RUNNING:
            raise JobNotRunningError(f"job `{job.name}` is {job.state}: a checkpoint can only be taken while it runs")
        if whole and not job.config.checkpoint.saves_state:
            raise RequestError("a savepoint needs CheckpointConfig(dir=...), through which it is taken")
        self._requested = reason
        number = CheckpointNumber(job.checkpoints.last + 1)
        self._whole = number if whole else self._whole
        return number

    def begin_if_due(self) -> bool:
        """Begin a checkpoint if it is due and nothing is being moved. Return True if it was begun."""
        if not self.due or self._job.in_step or not self._job.reading:
            return False
        self._begin(self._requested or "the interval is over")
        return True

    def begin_last(self) -> bool:
        """Begin the checkpoint at whose barrier the job stops, unless a checkpoint or a commit is under way. Return True if it
        was begun.
        """
        if not self.free:
            return False
        self._stop = self._begin("the job stops", last=True)
        return True

    def _begin(self, reason: str, *, last: bool = False) -> CheckpointNumber:
        job = self._job
        number = job.checkpoints.begin(job.now, reason)
        self._requested = None
        newest = job.checkpoints.newest
        whole = number == self._whole or (last and self._copies_last)
        base = newest.checkpoint if newest is not None and not whole else NO_CHECKPOINT
        job.emit(*(Tell(worker, BeginCheckpoint(number, base, last)) for worker in sorted(job.reading)))
        return number

    def note(self, worker: WorkerId, report: Prepared | CheckpointFailed | Finished) -> None:
        """Note that a worker has prepared a checkpoint, could not save its state, or has sent its last element."""
        checkpoints = self._job.checkpoints
        if isinstance(report, Prepared):
            checkpoints.prepared(worker, report)
        elif isinstance(report, CheckpointFailed):
            checkpoints.failed(worker, report.checkpoint, report.problem, report.committables)
        else:
            checkpoints.finish(worker, report)

    def advance(self) -> None:
        """Complete the pending checkpoint once it has passed all workers."""
        job = self._job
        pending = job.checkpoints.pending
        if pending is None or not job.checkpoints.passed(job.workers):
            return
        self._passed = pending.number == self._stop
        if pending.problem is not None:
            self._give_up(pending.problem)
        elif job.config.checkpoint.saves_state:
            self._save()
        else:
            self._complete(None)

    def finish(self) -> None:
        """Begin the last checkpoint, or the only commit, since every worker has finished."""
        job = self._job
        if job.config.checkpoint.saves_state:
            if (dropped := job.checkpoints.drop(job.now, ENDED_BEFORE)) is not None:
                self._discard(dropped, ENDED_BEFORE)
            job.checkpoints.begin_last(job.now)
            self._save()
        else:
            job.checkpoints.last = CheckpointNumber(job.checkpoints.last + 1)
            self._commit(Commit(job.checkpoints.last, job.checkpoints.take_all(), job.checkpoints.completed, last=True))

    @property
    def may_finish(self) -> bool:
        """True if every worker has finished, and no checkpoint or commit that was begun before is left."""
        pending = self._job.checkpoints.pending
        return self._job.all_finished and not self.saving and self._committing is None and (pending is None or not pending.last)

    def saved(self, answer: ManifestSaved) -> None:
        """Note that the manifest is written, or can't be. A job that has ended meanwhile commits nothing of it."""
        manifest = self._manifest
        if manifest is None or manifest.checkpoint != answer.checkpoint or self._job.state.final:
            return
        self._manifest = None
        if answer.problem is None:
            self._complete(manifest)
        else:
            self._give_up(answer.problem)

    def committed(self, answer: Committed) -> None:
        """Note that the sinks have committed, or one can't. An answer from before a restore only brings its deliveries."""
        self.deliveries.add(answer.deliveries)
        if self._committing != answer.checkpoint or self._job.state.final:
            return
        self._committing = None
        if answer.error is not None:
            self._lifecycle.fail(answer.error)
        elif answer.checkpoint == self._last:
            if self.savepoints.due(answer.checkpoint) is None:
                self._lifecycle.end(JobState.FINISHED)
            else:
                self._ends_with = answer.checkpoint
        elif answer.checkpoint == self._stop:
            self._close_run()

    def copied(self, answer: SavepointCopied) -> None:
        """Note that a savepoint is taken, or can't be; a job that stopped with it ends."""
        job = self._job
        self.savepoints.finish(answer.checkpoint, answer.problem)
        if self._ends_with == answer.checkpoint and not job.state.final:
            if answer.problem is not None:
                job.emit(Warn(f"job `{job.name}` stops without its savepoint, but with a last checkpoint in its folder: {answer.problem}"))
            self._lifecycle.end(JobState.FINISHED)

    @property
    def _copies_last(self) -> bool:
        """True if the job stops with a savepoint."""
        return self._job.stop_asked is not None and self._job.stop_asked.savepoint is not None

    def tick(self) -> None:
        """Give up a checkpoint that takes too long, restore the job if it never passes every worker, or begin the next."""
        job = self._job
        pending, timeout = job.checkpoints.pending, job.config.checkpoint.timeout_s
        if pending is not None and pending.number == self._stop and not pending.saving:
            return  # what was read is processed, however long that takes: without this checkpoint the job can't stop
        if pending is not None and job.now - pending.begun > timeout:
            if pending.saving:
                job.checkpoints.explain(f"its manifest has not been written within {timeout:g} s; its folder does not answer")
                return
            waiting = ", ".join(job.checkpoints.waits_for(job.workers))
            if pending.problem is None:
                pending.problem = f"it took longer than {timeout:g} s (CheckpointConfig(timeout=...) sets the bound), for {waiting}"
            if job.now - pending.begun > 2 * timeout:
                problem = f"checkpoint {pending.number} has not passed {waiting} within {2 * timeout:g} s"
                self._lifecycle.fail(JobFailedError(f"job `{job.name}`: {problem}, twice CheckpointConfig(timeout=...)"))
                return
        self.begin_if_due()

    def reports(self) -> list[CheckpointReport]:
        """Return the reports of the newest checkpoints, oldest first."""
        reports = self._job.checkpoints.reports(self._job.workers)
        return [replace(one, state=CheckpointState.COMMITTING, seconds=None) if one.number == self._committing else one for one in reports]

    def _close_run(self) -> None:
        """Save the same state once more, without sink output, now that the sinks have committed all rows before the barrier.

        A run that continues from there commits and delivers nothing a second time.
        """
        job = self._job
        number = job.checkpoints.begin_closing(job.now, job.plan)
        if job.stop_asked is not None and job.stop_asked.savepoint is not None:
            self.savepoints.add(number, job.stop_asked.savepoint)
        self._save()

    def _save(self) -> None:
        job = self._job
        self._manifest = job.checkpoints.manifest(job.plan, job.attempt, job.now, job.migrations.tables, self.deliveries.pending)
        job.emit(Save(self._manifest))

    def _complete(self, manifest: Manifest | None) -> None:
        job = self._job
        assert job.checkpoints.pending is not None
        number, last = job.checkpoints.pending.number, job.checkpoints.pending.last
        committables = job.checkpoints.end(job.now, manifest)
        if manifest is not None and (path := self.savepoints.due(number)) is not None:
            job.emit(CopySavepoint(path, manifest, last=last))
        self._plan_next()
        last = last or (number == self._stop and manifest is None)
        self._commit(Commit(number, committables, job.checkpoints.completed, last=last))

    def _commit(self, commit: Commit) -> None:
        self._committing = self._job.checkpoints.committed = commit.checkpoint
        self._commit_begun, self._commit_sinks = self._job.now, tuple(sink for sink, items in commit.committables.items() if items)
        self._last = commit.checkpoint if commit.last else 0
        self._job.emit(commit)

    def _give_up(self, problem: str) -> None:
        job = self._job
        assert job.checkpoints.pending is not None
        number = job.checkpoints.pending.number
        if job.checkpoints.pending.last or number == self._stop:
            self._lifecycle.fail(JobFailedError(f"job `{job.name}`: its last checkpoint, {number}, can't be saved: {problem}"))
            return
        job.checkpoints.give_up(job.now, problem)
        if job.config.checkpoint.saves_state:
            self._discard(number, problem)
        self._plan_next()
        failures = job.checkpoints.failures
        if failures > job.config.checkpoint.tolerable_failures:
            error: EvenflowError = JobFailedError(
                f"job `{job.name}`: {failures} checkpoints in a row have failed; the last, {number}: {problem}"
            )
            self._lifecycle.abort(error)

    def _discard(self, number: CheckpointNumber, problem: str) -> None:
        self.savepoints.finish(number, problem)
        self._job.emit(Discard(number))

    def _plan_next(self) -> None:
        self._newest_ended = self._job.now
        self._begin_interval()
