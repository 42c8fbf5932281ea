"""A job's checkpoints as they lie on disk: writing and reading manifests, retention, savepoints.

Used by one thread at a time; only a savepoint is copied in a thread of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from ...engine.errors import FlowError, JobFailedError
from ...engine.plan.physical import Plan
from ...engine.protocol.ids import NO_CHECKPOINT, CheckpointNumber, WorkerId
from ...scheduler.checkpoints.manifest import Manifest
from ...scheduler.checkpoints.restore import restored_tasks, unmatched
from ...scheduler.checkpoints.restored_task import RestoredTask
from ...scheduler.checkpoints.retention import Needs, retained
from ...scheduler.checkpoints.terms import Terms
from ...state.errors import CorruptStateError
from ...state.store import CheckpointStore

SAVEPOINT = 0
"""The number under which a store that is a savepoint keeps what it has, or a checkpoint's folder that is used as one."""

_LOG = logging.getLogger(__name__)


class SupersededError(JobFailedError):
    """Another coordinator of this run of the job has begun, so that this one must do nothing more."""


def stop_here(why: SupersededError) -> NoReturn:
    """The usual end of a coordinator that is superseded: an error, wherever it was."""
    raise why


class SavedState:
    """`url`: where the job's checkpoints go; None for a job that doesn't save its state. `run`: whose they are, beside others'.

    `leave` is called when a later coordinator of this run is found to have begun, and must not return.
    """

    def __init__(self, url: str | None, kept: int, run: str, leave: Callable[[SupersededError], NoReturn] | None = None) -> None:
        self._leave, self._terms = leave if leave is not None else stop_here, Terms()
        self._store = CheckpointStore(url) if url is not None else None
        self._kept, self._run = kept, run
        self._from: tuple[Manifest, str] | None = None
        self._copying: list[CheckpointNumber] = []
        """Checkpoints of which savepoints are being made."""
        self._vain: set[int] = set()
        """Checkpoints that came to nothing since the last that is complete; a worker that is lost may write a file of one late."""
        self._needed: dict[CheckpointNumber, Needs | None] = {}
        """The files that each retained checkpoint needs, perhaps another run's; None if it can't be restored."""

    @property
    def last(self) -> CheckpointNumber:
        """The number of the newest checkpoint in the folder, perhaps of an earlier run; 0 if there is none."""
        return (
            CheckpointNumber(max([*self._store.completed(), *self._store.void()], default=0)) if self._store is not None else NO_CHECKPOINT
        )

    @property
    def term(self) -> int:
        """The term of this coordinator: how many of this run were lost before it."""
        return self._terms.term

    def take_over(self, after: int = 0) -> Manifest | None:
        """Begin the next term of this run, which is above `after`, in place of a coordinator that was lost; the checkpoint to go on from.

        What earlier ones should still save behind that does not count. Raises OSError.
        """
        if self._store is None:
            self._terms = Terms(after + 1)
            return None
        term = self._store.claim(self._run, after)  # before the look: what is complete later was saved by one that is to find this claim
        for note in self._store.begins(self._run, term):
            try:
                self._terms = Terms.from_bytes(note)
                break
            except ValueError as error:
                _LOG.warning("%s: a note of a coordinator that began before is left out: %s", self._store.url, error)
        newest = self.newest()
        self._terms = self._terms.followed_by(term, newest.checkpoint if newest is not None else 0)
        self._store.note_begin(self._run, term, self._terms.to_bytes())
        return newest

    def stay_in_charge(self) -> None:
        """Returns if no later coordinator of this run has begun: to be called before anything that the whole run sees. Raises OSError."""
        if self._store is not None and self._store.claimed(self._run, self.term + 1):
            why = f"{self._store.url}: this coordinator, of term {self.term}, was taken for lost, and another has begun"
            self._leave(SupersededError(why))

    def declare_void(self, after: int) -> None:
        """Declare the checkpoints after `after` void: no job restores them again. Raises OSError."""
        if self._store is not None:
            self._store.declare_void(after)

    def open_savepoint(self, path: str, plan: Plan, *, allow_lost: bool) -> Manifest:
        """The manifest of a savepoint (or of a checkpoint's folder). Raises FlowError if it can't be read, or state of it fits nowhere."""
        try:
            manifest = Manifest.from_bytes(CheckpointStore(path).manifest(SAVEPOINT))
        except CorruptStateError as error:
            raise FlowError(f"job `{plan.name}` can't begin from {path}: {error}") from error
        lost = unmatched(manifest, plan)
        if lost and not allow_lost:
            raise FlowError(
                f"job `{plan.name}`: the savepoint {path} has state of {', '.join(f'`{name}`' for name in lost)}, and the flow has no such "
                "operator: name it with .named(...), or say allow_lost_state=True"
            )
        self._from = manifest, path
        return manifest

    def restored(self, manifest: Manifest | None, plan: Plan) -> dict[WorkerId, RestoredTask]:
        """What each worker of `plan` restores of `manifest`, which lies here or in the savepoint that the job began from."""
        if manifest is None:
            return {}
        if self._from is not None and self._from[0] is manifest:
            return restored_tasks(manifest, plan, self._from[1], NO_CHECKPOINT)
        return restored_tasks(manifest, plan, self._store.url if self._store is not None else "", manifest.checkpoint)

    def complete(self, manifest: Manifest) -> str | None:
        """Write the manifest, then remove what is no longer kept; why it can't be written, or None.

        A coordinator that is superseded leaves, before it has written it or afterwards.
        """
        if self._store is None:
            return "the job has no folder for checkpoints"
        manifest = replace(manifest, run=self._run)
        try:
            self.stay_in_charge()
            self._store.complete(manifest.checkpoint, manifest.to_bytes())
            self.stay_in_charge()  # a coordinator that began meanwhile may not have seen this checkpoint: then it must not be committed
        except SupersededError:
            raise
        except FileExistsError as error:  # a coordinator's that was taken for lost: it stays, since it is not known who needs it
            return f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 -- a file system's library may raise anything
            self._store.withdraw(manifest.checkpoint)
            return f"{type(error).__name__}: {error}"
        self._sweep(self._store, manifest)
        self._vain.clear()
        return None

    def newest(self, below: CheckpointNumber | None = None) -> Manifest | None:
        """This run's newest complete checkpoint (numbered below `below`) whose manifest can be read."""
        if self._store is None:
            return None
        for number in map(CheckpointNumber, reversed(self._store.completed())):
            if below is None or number < below:
                manifest = self._manifest(number)
                if manifest is not None and manifest.run != self._run:
                    return None
                if manifest is not None and self._terms.counts(number, manifest.attempt):
                    return manifest
        return None

    def committables(self) -> list[Any] | None:
        """What complete checkpoints here say is to be committed, of any run; None if one of them can't be read. Raises OSError."""
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
            _LOG.warning("checkpoint %d is left out: %s", number, error)
            return None

    def discard(self, number: int) -> None:
        """Checkpoint `number` failed: its files only take room from the next."""
        if self._store is not None:
            self._vain.add(number)
            for each in self._vain:
                self._store.discard(each)

    def discard_unfinished(self, committed: int = 0) -> None:
        """As `discard`, of whatever lies behind the newest complete checkpoint: the process that began it is gone.

        Checkpoints up to `committed` were complete, though their manifests may be gone: somebody may put those back.
        """
        if self._store is None:
            return
        try:
            for number in self._store.begun(max(self.last, committed)):
                self._store.discard(number)
        except OSError as error:
            _LOG.warning("files of checkpoints that were never complete could not be removed: %s", error)

    def _sweep(self, store: CheckpointStore, newest: Manifest) -> None:
        """Remove what is no longer kept; it stays if it can't be told what that is."""
        copying = set(self._copying)
        self._needed[newest.checkpoint] = Needs.of(newest)
        try:
            complete = [*map(CheckpointNumber, store.completed())]
            needed = {number: self._needed[number] if number in self._needed else self._needs(number) for number in complete}
            readable = {number: needs for number, needs in needed.items() if needs is not None}
            kept = {*complete[-self._kept :], *retained(readable, self._kept), *copying}
            self._needed = {number: needed.get(number) for number in kept}
            store.keep({number: needs.files if needs is not None else () for number, needs in self._needed.items()}, newest.checkpoint)
        except OSError as error:
            _LOG.warning("job `%s`: checkpoints that are no longer kept could not be removed: %s", newest.job, error)

    def _needs(self, number: CheckpointNumber) -> Needs | None:
        manifest = self._manifest(number)
        return Needs.of(manifest) if manifest is not None and self._terms.counts(number, manifest.attempt) else None

    def hold(self, number: CheckpointNumber) -> None:
        """Checkpoint `number` is being copied: its files stay until `let_go`."""
        self._copying.append(number)

    def let_go(self, number: CheckpointNumber) -> None:
        """Checkpoint `number` is copied."""
        self._copying.remove(number)

    def copy(self, manifest: Manifest, path: str) -> str | None:
        """Make a savepoint in the folder `path` of a complete checkpoint that is held; why it can't be made, or None. For any thread."""
        assert self._store is not None
        try:
            target = CheckpointStore(path)
            if target.occupied:
                return f"{path} is not empty: give the savepoint a folder of its own"
            self._store.copy(manifest.checkpoint, manifest.files, target, SAVEPOINT)
            target.complete(SAVEPOINT, manifest.as_savepoint().to_bytes())
        except Exception as error:  # noqa: BLE001 -- a file system's library may raise anything, and somebody waits for the savepoint
            return f"{type(error).__name__}: {error}"
        return None
