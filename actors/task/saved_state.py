"""A job's checkpoints on disk: writing and reading manifests, retention, savepoints.

Used by one thread at a time; only a savepoint is copied in a separate thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

from ...engine.errors import FlowError, JobFailedError, shown
from ...engine.plan.physical import Plan
from ...engine.protocol.ids import NO_CHECKPOINT, CheckpointNumber, WorkerId
from ...scheduler.protocol.manifest import Manifest
from ...scheduler.record.restoring.fitting import Allowed, check_fits
from ...scheduler.record.restoring.restore import restored_tasks
from ...scheduler.record.restoring.restored_task import RestoredTask
from ...scheduler.record.restoring.retention import Needs, retained
from ...scheduler.record.restoring.run_claim import BEATING, BEGUN, ENDED, LifeSign, RunClaim, RunEnd
from ...scheduler.record.restoring.terms import Terms
from ...state.errors import CorruptStateError, StoreError, StoreUnavailableError
from ...state.store import CheckpointStore

SAVEPOINT = 0
"""The number of the checkpoint in a store that is a savepoint, or in a checkpoint's folder that is used as one."""

_LOG = logging.getLogger(__name__)


class SupersededError(JobFailedError):
    """Another coordinator of this run of the job has begun, so that this one must do nothing more."""


class TakenOverError(SupersededError):
    """Another start of the program has taken this run of the job, or its folder: this one commits nothing more."""


def stop_here(why: SupersededError) -> NoReturn:
    """Raise the error, which usually ends a superseded coordinator."""
    raise why


def fitting_manifest(path: str, plan: Plan, allowed: Allowed) -> Manifest:
    """Read the manifest of a savepoint (or of a checkpoint's folder). Raises FlowError if `plan` can't restore it."""
    try:
        manifest = Manifest.from_bytes(CheckpointStore(path).manifest(SAVEPOINT))
    except CorruptStateError as error:
        raise FlowError(f"job `{plan.name}` can't begin from {path}: {error}") from error
    check_fits(manifest, plan, path, allowed)
    return manifest


class SavedState:
    """A job's saved state. `url`: of its checkpoints; None for a job that doesn't save its state. `claim`: its run, one of
    several in the folder.

    `leave` is called when a later coordinator of this start of the program has begun, and must not return.
    """

    def __init__(self, url: str | None, kept: int, claim: RunClaim, leave: Callable[[SupersededError], NoReturn] | None = None) -> None:
        self._leave, self._terms = leave if leave is not None else stop_here, Terms(claim.term)
        self._store = CheckpointStore(url) if url is not None else None
        self._kept, self._claim, self._run = kept, claim, claim.run
        self._from: tuple[Manifest, str] | None = None
        self._copying: list[CheckpointNumber] = []
        """Checkpoints that are being copied to savepoints."""
        self._vain: set[int] = set()
        """Checkpoints that failed since the last complete one; a lost worker may still write a file of one."""
        self._doubtful: set[CheckpointNumber] = set()
        """Checkpoints that failed because the store did not answer: their manifests may be there."""
        self._needed: dict[CheckpointNumber, Needs | None] = {}
        """The files that each retained checkpoint needs; None if it can't be restored."""
        self._others: dict[CheckpointNumber, Needs] = {}
        """The same for checkpoints that another run has added since this one began."""

    @property
    def last(self) -> CheckpointNumber:
        """The number of the newest checkpoint in the folder, perhaps of an earlier run; 0 if there is none."""
        return (
            CheckpointNumber(max([*self._store.completed(), *self._store.void()], default=0)) if self._store is not None else NO_CHECKPOINT
        )

    @property
    def term(self) -> int:
        """The term of this coordinator: the number of processes that have run the job in this folder before it."""
        return self._terms.term

    def continued(self) -> Manifest | None:
        """Return the checkpoint from which this run would continue, judged without claiming it. Raises OSError."""
        self._remember(self.term + 1)
        return self.newest()

    def begin(self) -> Manifest | None:
        """Begin in the term that the start of the program has claimed; return the checkpoint to continue, if any. Raises OSError."""
        term, newest = self._claim.term, None
        if self._store is None:
            return None
        if self._claim.resumes:
            self._remember(term)
            newest = self.newest()
            self._terms = self._terms.followed_by(term, newest.checkpoint if newest is not None else 0)
        if term:
            self._store.note(term, BEGUN, self._terms.to_bytes())
        return newest

    def take_over(self, after: int = 0) -> Manifest | None:
        """Begin the next term of this run, above `after`, replacing a lost coordinator; return the checkpoint to resume from.

        Checkpoints that earlier coordinators may still save do not count. Raises OSError, and TakenOverError if another start
        owns the folder.
        """
        term = max(after, self.term) + 1
        if self._store is None:
            self._terms = Terms(term)
            return None
        while True:  # before the search: a later checkpoint is saved by a coordinator that finds this claim
            try:
                self._store.claim(term, self._claim.of_term(term).to_bytes())
                break
            except FileExistsError:
                other = RunClaim.from_bytes(term, self._store.claim_of(term) or b"")
                if other.start != self._claim.start:
                    raise self._taken_over(other) from None
                term += 1  # of a coordinator that was lost before it was recorded elsewhere
        self._remember(term)
        newest = self.newest()
        self._terms = self._terms.followed_by(term, newest.checkpoint if newest is not None else 0)
        self._store.note(term, BEGUN, self._terms.to_bytes(), once=True)
        return newest

    def _remember(self, before: int) -> None:
        """Read where the terms of this run before term `before` began. The newest note covers all."""
        assert self._store is not None
        for term in reversed([term for term in self._store.claims() if term < before]):
            note = self._store.noted(term, BEGUN)
            if note is None:
                continue
            if RunClaim.from_bytes(term, self._store.claim_of(term) or b"").run == self._run:
                try:
                    self._terms = Terms.from_bytes(note)
                except ValueError as error:
                    _LOG.warning("%s: a note of an earlier coordinator is skipped: %s", self._store.url, error)
                    continue
            return

    def stay_in_charge(self) -> None:
        """Return if no later process has claimed the folder; to be called before every change that the whole run sees.

        Raises OSError, and TakenOverError if the claim is of another start of the program.
        """
        if self._store is None or not self._store.claimed(self.term + 1):
            return
        other = RunClaim.from_bytes(self.term + 1, self._store.claim_of(self.term + 1) or b"")
        if other.start != self._claim.start:
            raise self._taken_over(other)
        why = f"{self._store.url}: this coordinator, of term {self.term}, was considered lost, and another has begun"
        self._leave(SupersededError(why))

    def _taken_over(self, other: RunClaim) -> TakenOverError:
        assert self._store is not None
        who = f"{other.owner}" if other.owner is not None else "another process"
        return TakenOverError(f"{self._store.url}: {who}, has taken this job over: this process has lost it, and commits nothing more")

    def beat(self, sign: LifeSign) -> None:
        """Write a sign of life. Raises OSError."""
        if self._store is not None and self.term:
            self._store.note(self.term, BEATING, sign.to_bytes())

    def note_end(self, end: RunEnd) -> None:
        """Record how this process's part of the run ended. Raises OSError."""
        if self._store is not None and self.term:
            self._store.note(self.term, ENDED, end.encode())

    def declare_void(self, after: int) -> None:
        """Declare this run's checkpoints after `after` void, so that no job restores them. Raises OSError."""
        if self._store is not None:
            self._store.declare_void(max(after, self._claim.after))

    def open_savepoint(self, path: str, plan: Plan, allowed: Allowed) -> Manifest:
        """Read the manifest of a savepoint (or of a checkpoint's folder). Raises FlowError if it can't be read, or doesn't fit."""
        manifest = fitting_manifest(path, plan, allowed)
        self._from = manifest, path
        return manifest

    def restored(self, manifest: Manifest | None, plan: Plan) -> dict[WorkerId, RestoredTask]:
        """Return the state that each worker of `plan` restores from `manifest`, which is here or in the job's savepoint."""
        if manifest is None:
            return {}
        if self._from is not None and self._from[0] is manifest:
            return restored_tasks(manifest, plan, self._from[1], NO_CHECKPOINT)
        check_fits(manifest, plan, f"checkpoint {manifest.checkpoint}", self._claim.allowed)
        return restored_tasks(manifest, plan, self._store.url if self._store is not None else "", manifest.checkpoint)

    def complete(self, manifest: Manifest) -> str | None:
        """Write the manifest, then remove checkpoints that are no longer kept; return why it can't be written, or None.

        A coordinator that is superseded leaves, before or after writing it.
        """
        if self._store is None:
            return "the job has no folder for checkpoints"
        manifest = replace(manifest, run=self._run)
        number, data = manifest.checkpoint, manifest.to_bytes()
        try:
            self.stay_in_charge()
            self._write(number, data)
            self.stay_in_charge()  # a coordinator that began meanwhile may not know this checkpoint, which then must not be committed
        except SupersededError:
            raise
        except FileExistsError as error:  # of a coordinator that was considered lost: it stays, because another may need it
            return shown(error)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the job must hear of it
            self._doubtful.add(number)
            with suppress(OSError):
                self.settle()
            return str(error) if isinstance(error, StoreError) else shown(error)
        self._sweep(self._store, manifest)
        self._vain.clear()
        return None

    def _write(self, number: CheckpointNumber, data: bytes) -> None:
        """Write a manifest. It counts as written even if only the reply was lost."""
        assert self._store is not None
        try:
            self._store.complete(number, data)
        except StoreUnavailableError:
            with suppress(OSError, CorruptStateError):
                if self._store.manifest(number) == data:
                    return
            raise

    def settle(self) -> None:
        """Remove manifests of failed checkpoints that may have been written, before the job is restored from an older one.

        A later coordinator may have begun from one: then it stays. Raises OSError.
        """
        for number in sorted(self._doubtful):
            assert self._store is not None
            self.stay_in_charge()
            self._store.withdraw(number)
            self._doubtful.discard(number)

    def newest(self, below: CheckpointNumber | None = None) -> Manifest | None:
        """Return this run's newest complete checkpoint (below `below`) whose manifest can be read."""
        if self._store is None:
            return None
        for number in map(CheckpointNumber, reversed(self._own(self._store.completed()))):
            if below is None or number < below:
                manifest = self._manifest(number)
                if manifest is not None and manifest.run == self._run and self._terms.counts(number, manifest.attempt):
                    return manifest
        return None

    def reached(self) -> CheckpointNumber:
        """Return this run's newest checkpoint that sinks may have committed, by manifests, even damaged ones. Raises OSError."""
        for number in map(CheckpointNumber, reversed(self._own(self._store.completed() if self._store is not None else []))):
            manifest = self._manifest(number)
            if manifest is None or (manifest.run == self._run and self._terms.counts(number, manifest.attempt)):
                return number
        return NO_CHECKPOINT

    def _own(self, checkpoints: Iterable[int]) -> list[int]:
        """Return the checkpoints newer than the start of this run. Another run may have added some before it found this run's
        claim.
        """
        return [number for number in checkpoints if number > self._claim.after]

    def committables(self) -> list[Any] | None:
        """Return the committables of all complete checkpoints here, of any run; None if a manifest can't be read.

        Raises OSError.
        """
        found: list[Any] = []
        for number in self._store.completed() if self._store is not None else []:
            manifest = self._manifest(number)
            if manifest is None:
                return None
            found += [item for items in manifest.committables.values() for item in items]
        return found

    def _manifest(self, number: int) -> Manifest | None:
        assert self._store is not None
        try:
            return Manifest.from_bytes(self._store.manifest(number))
        except CorruptStateError as error:
            _LOG.warning("checkpoint %d is skipped: %s", number, error)
            return None

    def discard(self, number: int) -> None:
        """Remove the files of checkpoint `number`, which failed. Nothing is removed while the store doesn't answer."""
        if self._store is None:
            return
        try:
            self.stay_in_charge()  # a later coordinator may have reused the number
        except OSError as error:
            _LOG.warning("files of checkpoint %d, which failed, stay: %s", number, error)
        else:
            self._vain.add(number)
            for each in self._vain:
                self._store.discard(each)

    def discard_unfinished(self, committed: int = 0) -> None:
        """Discard everything after the newest complete checkpoint: the process that began it was lost.

        Checkpoints up to `committed` were complete, though their manifests may be missing: a user may restore those.
        """
        if self._store is None:
            return
        try:
            for number in self._store.begun(max(self.last, committed)):
                self._store.discard(number)
        except OSError as error:
            _LOG.warning("files of checkpoints that were never complete could not be removed: %s", error)

    def _sweep(self, store: CheckpointStore, newest: Manifest) -> None:
        """Remove the files of this run that are no longer kept, or nothing if that is unknown."""
        copying = set(self._copying)
        self._needed[newest.checkpoint] = Needs.of(newest)
        try:
            listed = store.listing()
            there = [*map(CheckpointNumber, self._own(store.completed(listed)))]
            found = {number: self._needed[number] if number in self._needed else self._needs(number) for number in there}
            complete = [number for number in there if number not in self._others]
            needed = {number: found[number] for number in complete}
            readable = {number: needs for number, needs in needed.items() if needs is not None}
            kept = {*complete[-self._kept :], *retained(readable, self._kept), *copying}
            self._needed = {number: needed.get(number) for number in kept}
            every = {**self._needed, **self._others}
            files: dict[int, Iterable[str]] = {number: needs.files if needs is not None else () for number, needs in every.items()}
            store.keep(files, newest.checkpoint, self._claim.after, listed)
        except OSError as error:
            _LOG.warning("job `%s`: checkpoints that are no longer kept could not be removed: %s", newest.job, error)

    def _needs(self, number: CheckpointNumber) -> Needs | None:
        if number in self._others:
            return None
        manifest = self._manifest(number)
        if manifest is not None and manifest.run != self._run:
            self._others[number] = Needs.of(manifest)
            return None
        return Needs.of(manifest) if manifest is not None and self._terms.counts(number, manifest.attempt) else None

    def hold(self, number: CheckpointNumber) -> None:
        """Keep the files of checkpoint `number`, which is being copied, until `let_go`."""
        self._copying.append(number)

    def let_go(self, number: CheckpointNumber) -> None:
        """Release checkpoint `number`, which was copied."""
        self._copying.remove(number)

    def copy(self, manifest: Manifest, path: str, *, again: bool = False) -> str | None:
        """Copy a held, complete checkpoint to a savepoint in the folder `path`; return why it fails, or None. For any thread.

        `again`: this start of the program may have begun the same savepoint already, and then replaces it.
        """
        assert self._store is not None
        try:
            target = CheckpointStore(path)
            if not (target.reserve(self._claim.start.encode()) if again else not target.names()):
                return f"{path} is not empty, it has {', '.join(target.names()[:3])}: give the savepoint its own folder"
            self._store.copy(manifest.checkpoint, manifest.files, target, SAVEPOINT)
            target.complete(SAVEPOINT, manifest.as_savepoint().to_bytes())
        except Exception as error:  # noqa: BLE001 -- a file system's library may raise anything, and somebody waits for the savepoint
            return shown(error)
        return None
