"""The checkpoints of a job: the one under way, the workers that prepared it, and the outcomes of earlier ones, without I/O.

Invariant: a checkpoint is complete when every worker has prepared it or had finished before its barrier. Later output of a worker
belongs to the next checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...engine.plan.physical import Plan
from ...engine.protocol.effects import Finished, Prepared
from ...engine.protocol.ids import Attempt, CheckpointNumber, WorkerId, index_of, stage_of
from ...engine.protocol.routing import RoutingTable
from ...state.files import StateFile
from ...state.store import path_from_sibling
from ..protocol.manifest import Manifest, TaskEntry
from ..protocol.reports import CheckpointReport, CheckpointState
from ..protocol.restore_point import RestorePoint
from ..protocol.storage_answers import Delivery

HISTORY = 100
"""Checkpoints that are remembered."""


@dataclass(slots=True)
class PendingCheckpoint:
    """A checkpoint that is under way. `problem`: why it can't be completed; it still has to pass every worker before the next.

    `saving`: its manifest is being written; `kept_up_by`: why that takes so long. `last`: no other follows,
    since every worker has finished.
    """

    number: CheckpointNumber
    begun: float
    reason: str
    prepared: dict[WorkerId, TaskEntry] = field(default_factory=dict)
    problem: str | None = None
    saving: bool = False
    last: bool = False
    kept_up_by: str | None = None


class Checkpoints:
    """The checkpoints of one job. Their numbers rise over all attempts."""

    def __init__(self, begin: RestorePoint | None = None) -> None:
        begin = begin if begin is not None else RestorePoint()
        self.pending: PendingCheckpoint | None = None
        self.committed = max(begin.committed, begin.manifest.checkpoint if begin.manifest is not None else 0)
        """The newest that sinks may have committed, perhaps for a process that is gone."""
        self.last = max(begin.last, self.committed)
        self.completed = begin.completed
        self.failures = 0
        """Failed ones since the last that was complete."""
        self.newest = begin.manifest
        self.in_folder = None if begin.from_savepoint else begin.manifest
        """The newest if it is certain to be in the job's own folder; None for one of a savepoint."""
        self.history: list[CheckpointReport] = []
        self._finished: dict[WorkerId, TaskEntry] = {}
        self._committables: dict[str, list[Any]] = {}
        self._later: dict[str, list[Any]] = {}

    @property
    def finished(self) -> frozenset[WorkerId]:
        """Workers that have sent their last element in this attempt."""
        return frozenset(self._finished)

    def begin(self, now: float, reason: str) -> CheckpointNumber:
        """Begin a checkpoint. Return its number."""
        self.last = CheckpointNumber(self.last + 1)
        self.pending = PendingCheckpoint(self.last, now, reason)
        return self.last

    def begin_last(self, now: float) -> None:
        """Begin the last checkpoint, after the last element of every worker."""
        self.begin(now, "the stream has ended")
        assert self.pending is not None
        self.pending.last = True
        _collect(self._committables, self._later)
        self._later = {}

    def begin_closing(self, now: float, plan: Plan) -> CheckpointNumber:
        """Begin the checkpoint after the barrier at which the job stopped: it has the state and the files of the newest one.

        Return its number.
        """
        newest = self.newest
        assert newest is not None
        self.begin(now, "the job has stopped")
        assert self.pending is not None
        self.pending.last = True
        for stage in plan.stages:
            for worker, entry in zip(stage.workers, newest.tasks[stage.name], strict=True):
                self.pending.prepared[worker] = replace(entry, files=_beside(entry, newest.checkpoint))
        return self.pending.number

    def prepared(self, worker: WorkerId, report: Prepared) -> None:
        """Note that a worker has prepared the pending checkpoint."""
        _collect(self._committables, report.committables)
        if self.pending is not None and report.checkpoint == self.pending.number:
            files = (*self._before(self.pending, worker, report.base), *report.files)
            self.pending.prepared[worker] = TaskEntry(report.position, report.watermark, files, own_times=report.own_times)

    def _before(self, pending: PendingCheckpoint, worker: WorkerId, base: CheckpointNumber) -> tuple[StateFile, ...]:
        """Return the files of checkpoint `base`, on which a worker's saved changes build."""
        if not base:
            return ()
        if self.newest is None or self.newest.checkpoint != base:
            pending.problem = pending.problem or f"{worker} has saved its changes since checkpoint {base}, which is not the newest"
            return ()
        return _beside(self.newest.tasks[stage_of(worker)][index_of(worker)], base)

    def failed(self, worker: WorkerId, checkpoint: CheckpointNumber, problem: str, committables: Mapping[str, list[Any]]) -> None:
        """Note that a worker could not save its state; its sinks' prepared output goes with the next checkpoint."""
        _collect(self._committables, committables)
        if self.pending is not None and checkpoint == self.pending.number:
            self.pending.prepared[worker] = TaskEntry()
            self.pending.problem = self.pending.problem or f"{worker}: {problem}"

    def finish(self, worker: WorkerId, report: Finished) -> None:
        """Note that a worker has sent its last element."""
        passed = self.pending is not None and worker in self.pending.prepared
        _collect(self._later if passed else self._committables, report.committables)
        self._finished[worker] = TaskEntry(report.position, finished=True)

    def passed(self, workers: Iterable[WorkerId]) -> bool:
        """Return True if the pending checkpoint has passed all of them."""
        pending = self.pending
        return pending is not None and not pending.saving and all(w in pending.prepared or w in self._finished for w in workers)

    def waits_for(self, workers: Iterable[WorkerId]) -> list[WorkerId]:
        """Return those of `workers` that the pending checkpoint has not passed."""
        prepared = self.pending.prepared if self.pending is not None else {}
        return [worker for worker in workers if worker not in prepared and worker not in self._finished]

    def explain(self, problem: str) -> None:
        """Note why writing the manifest of the pending checkpoint takes so long."""
        if self.pending is not None:
            self.pending.kept_up_by = problem

    def manifest(
        self,
        plan: Plan,
        attempt: Attempt,
        created: float,
        tables: Mapping[str, RoutingTable],
        undelivered: tuple[Delivery, ...] = (),
    ) -> Manifest:
        """Return the manifest of the pending checkpoint, which has passed all workers and is to be saved now."""
        assert self.pending is not None
        self.pending.saving = True
        entries = {**self._finished, **self.pending.prepared}
        return Manifest(
            plan.name,
            self.pending.number,
            attempt,
            created,
            plan.key_groups,
            {stage.name: tuple(chained.name for chained in stage.chain) for stage in plan.stages},
            {stage.name: tuple(entries[worker] for worker in stage.workers) for stage in plan.stages},
            dict(tables),
            {name: list(items) for name, items in self._committables.items()},
            undelivered,
            state=plan.state,
        )

    def end(self, now: float, manifest: Manifest | None) -> dict[str, list[Any]]:
        """Complete the pending checkpoint, with a manifest if the job saves its state. Return the output to commit with it."""
        pending = self._close(now, CheckpointState.COMPLETE, manifest)
        self.completed += 1
        self.failures = 0
        self.newest = manifest if manifest is not None else self.newest
        self.in_folder = self.newest if manifest is not None else self.in_folder
        assert pending is not None
        return self.take()

    def give_up(self, now: float, problem: str) -> None:
        """Fail the pending checkpoint; the sinks' prepared output goes with the next."""
        self._close(now, CheckpointState.FAILED, None, problem)
        self.failures += 1
        _collect(self._committables, self._later)
        self._later = {}

    def drop(self, now: float, problem: str) -> CheckpointNumber | None:
        """Drop the pending checkpoint, since another follows at once. Return its number. The sinks' prepared output goes with the
        next.
        """
        pending = self._close(now, CheckpointState.FAILED, None, problem)
        return pending.number if pending is not None else None

    def take(self) -> dict[str, list[Any]]:
        """Return the output to commit now. Output that workers wrote after the barrier, before they finished, is for the next
        commit.
        """
        committables, self._committables, self._later = self._committables, self._later, {}
        return committables

    def take_all(self) -> dict[str, list[Any]]:
        """Return the output to commit when all workers have finished; a pending checkpoint becomes part of it."""
        self.pending = None
        _collect(self._committables, self._later)
        self._later = {}
        return self.take()

    def retire(self, workers: Iterable[WorkerId]) -> None:
        """Forget workers that have left the job; their sinks' prepared output stays."""
        for worker in workers:
            self._finished.pop(worker, None)

    def reset(self, now: float) -> None:
        """Void the pending checkpoint, and the output that was prepared and not committed, for a new attempt."""
        if self.pending is not None:
            self._close(now, CheckpointState.FAILED, None, "the job was restored from its last checkpoint")
        self._finished, self._committables, self._later = {}, {}, {}

    def unreadable(self, problem: str, older: Manifest | None) -> None:
        """Replace the newest checkpoint, which can't be read, by `older`, or by none."""
        assert self.newest is not None
        number, self.newest, self.in_folder = self.newest.checkpoint, older, None
        self.history = [
            replace(report, state=CheckpointState.UNREADABLE, problem=problem) if report.number == number else report
            for report in self.history
        ]

    def _close(self, now: float, state: CheckpointState, manifest: Manifest | None, problem: str | None = None) -> PendingCheckpoint | None:
        pending, self.pending = self.pending, None
        if pending is not None:
            files, own = (manifest.files, manifest.own_files) if manifest is not None else ([], [])
            size, saved, keys = sum(file.size for file in files), sum(file.size for file in own), sum(file.keys for file in own)
            closed = replace(_report(pending, state, problem), seconds=now - pending.begun)
            self.history.append(replace(closed, state_bytes=size, keys=keys, saved_bytes=saved))
            del self.history[:-HISTORY]
        return pending

    def reports(self, workers: Iterable[WorkerId] = ()) -> list[CheckpointReport]:
        """Return the reports, oldest first, the pending one last; `workers` are all that it must pass."""
        if self.pending is None:
            return list(self.history)
        state = CheckpointState.SAVING if self.pending.saving else CheckpointState.PENDING
        pending = _report(self.pending, state, self.pending.problem or self.pending.kept_up_by)
        return [*self.history, replace(pending, waits_for=tuple(self.waits_for(workers)))]


def _report(pending: PendingCheckpoint, state: CheckpointState, problem: str | None) -> CheckpointReport:
    return CheckpointReport(number=pending.number, state=state, reason=pending.reason, began_at=pending.begun, problem=problem)


def _beside(entry: TaskEntry, checkpoint: CheckpointNumber) -> tuple[StateFile, ...]:
    """Return the files of a worker's part of `checkpoint`, as later checkpoints refer to them."""
    return tuple(replace(file, path=path_from_sibling(file.path, checkpoint)) for file in entry.files)


def _collect(into: dict[str, list[Any]], committables: Mapping[str, list[Any]]) -> None:
    for sink, items in committables.items():
        into.setdefault(sink, []).extend(items)


class Deliveries:
    """Payloads of the sinks for the driver, numbered from 0 in the order of their commits, kept until the driver has them.

    `pending`: payloads that the driver may not have received.

    >>> deliveries = Deliveries([("to_list", 1)])
    >>> deliveries.add([("to_list", 2)])
    >>> deliveries.after(1)
    (('to_list', 2),)
    """

    def __init__(self, pending: Iterable[Delivery] = ()) -> None:
        self._pending = list(pending)
        self._dropped = 0

    @property
    def pending(self) -> tuple[Delivery, ...]:
        return tuple(self._pending)

    def add(self, deliveries: Iterable[Delivery]) -> None:
        """Add the payloads of a commit."""
        self._pending += deliveries

    def after(self, seen: int) -> tuple[Delivery, ...]:
        """Return the payloads from number `seen` on; earlier ones are dropped, since the driver has them."""
        drop = seen - self._dropped
        if drop > 0:
            del self._pending[:drop]
            self._dropped = seen
        return tuple(self._pending)
