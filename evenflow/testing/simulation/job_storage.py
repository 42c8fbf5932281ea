"""The storage port of a simulated coordinator: each effect takes several steps, between which any process may act or be lost.

Invariant: it does the same as `actors/job/job_storage.py`, in the same order: the number of a checkpoint is noted before it is committed,
and state that the whole run sees changes only while no later coordinator has begun.
"""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, assert_never

import msgpack

from ...engine.errors import JobFailedError
from ...engine.protocol.ids import NO_CHECKPOINT, CheckpointNumber
from ...engine.sink import Sink
from ...scheduler.protocol.effects import (
    Commit,
    CopySavepoint,
    Discard,
    FindOlder,
    RememberCode,
    RememberSettings,
    RememberStart,
    RememberStop,
    RestoreSinks,
    Save,
    StorageEffect,
)
from ...scheduler.protocol.manifest import Manifest
from ...scheduler.protocol.storage_answers import (
    Committed,
    Delivery,
    ManifestSaved,
    OlderFound,
    SavepointCopied,
    SinksRestored,
    StorageAnswer,
)
from ...scheduler.record.restoring.terms import Terms
from ...state.errors import EvenflowError, StoreUnavailableError
from .checkpoint_writer import SimulatedSavedState
from .ledger import Ledger
from .network import SimulationError
from .storage import MemoryStorage

Steps = Iterator[StorageAnswer | None]
"""The steps of an effect: None between two steps; the answer, if there is one, comes last."""

QueuedEffect = Save | Commit | RestoreSinks | FindOlder | Discard | RememberStart | RememberStop | RememberSettings | RememberCode
"""The effects that are carried out one after another."""


class SimulatedStorage:
    """The storage of a coordinator of the newest of `terms`. `sinks`: by operator name. `resumes`: True if it continues another start's
    run.

    `superseded`: True once it has found that another coordinator has begun; it has ended then.
    """

    def __init__(self, storage: MemoryStorage, ledger: Ledger, sinks: Mapping[str, Sink], terms: Terms, *, resumes: bool = False) -> None:
        self._resumes = resumes
        self._doubtful: set[CheckpointNumber] = set()
        self._storage, self._ledger, self._sinks, self._terms = storage, ledger, sinks, terms
        self._queue: deque[QueuedEffect] = deque()
        self._steps: Steps | None = None
        self._copies: deque[Steps] = deque()
        """The savepoints that are being copied, as in a thread of their own."""
        self._committed = 0
        self.superseded = False

    @property
    def files(self) -> SimulatedSavedState:
        """The files of complete checkpoints."""
        return SimulatedSavedState(self._storage)

    @property
    def waits(self) -> bool:
        """True if an effect waits to be carried out."""
        return bool(self._queue) and not self.superseded

    @property
    def saves(self) -> bool:
        """True if a manifest is being written, or is the next to be written."""
        return bool(self._queue) and isinstance(self._queue[0], Save)

    @property
    def remembers_settings(self) -> bool:
        """True if changed settings wait to be remembered."""
        return any(isinstance(effect, RememberSettings) for effect in self._queue)

    @property
    def copies(self) -> bool:
        """True if a savepoint is being copied."""
        return bool(self._copies) and not self.superseded

    def put(self, effect: StorageEffect) -> None:
        """Queue an effect, or begin to copy a savepoint."""
        if isinstance(effect, CopySavepoint):
            self._copies.append(self._copy(effect))
        else:
            self._queue.append(effect)

    def copy(self, answer: Callable[[StorageAnswer], None]) -> None:
        """Copy the next file of a savepoint."""
        copied = next(self._copies[0])
        if copied is not None:
            self._copies.popleft()
            answer(copied)

    def step(self, answer: Callable[[StorageAnswer], None]) -> None:
        """Carry out the next step."""
        if self._steps is None:
            self._steps = self._perform(self._queue[0])
        try:
            answered = next(self._steps)
        except StopIteration:
            answered = None
        else:
            if answered is None:
                return
        self._queue.popleft()
        self._steps = None
        if answered is not None and not self.superseded:
            answer(answered)

    def _perform(self, effect: QueuedEffect) -> Steps:  # noqa: C901 -- a line for each kind
        match effect:
            case Save():
                return self._save(effect.manifest)
            case Commit():
                return self._commit(effect)
            case RestoreSinks():
                return self._restore_sinks(effect)
            case FindOlder():
                return self._find_older(effect)
            case Discard():
                with suppress(OSError):
                    if self._in_charge():
                        self._storage.discard(effect.checkpoint)
                return iter(())
            case RememberStart():
                return iter(())
            case RememberStop():
                self._storage.stop = effect.order
                return iter(())
            case RememberCode():
                self._storage.code = effect
                return iter(())
            case RememberSettings():
                self._storage.remember_settings(msgpack.unpackb(msgpack.packb(asdict(effect.changed))), self._terms.term)
                return iter(())
            case _:
                assert_never(effect)

    def _copy(self, wanted: CopySavepoint) -> Steps:
        problem = None
        try:
            copy = self._storage.begin_savepoint(wanted.path)
            for file in wanted.manifest.files:
                yield None
                copy[posixpath.basename(file.path)] = self._storage.chunks(file)
            yield None
            self._storage.savepoints[wanted.path] = wanted.manifest.as_savepoint(), copy
        except (OSError, EvenflowError) as error:
            problem = str(error)
            self._storage.failed_savepoints.add(wanted.path)
        yield SavepointCopied(wanted.manifest.checkpoint, problem)

    def _find_older(self, wanted: FindOlder) -> Steps:
        try:
            older = self._storage.newest(self._terms, wanted.checkpoint)
        except StoreUnavailableError as error:
            yield OlderFound(wanted.checkpoint, wanted.problem, error=error)
        else:
            yield OlderFound(wanted.checkpoint, wanted.problem, older)

    def _save(self, manifest: Manifest) -> Steps:
        try:
            if not self._in_charge():
                return
            yield None
            self._write(manifest)
            yield None
            if not self._in_charge():
                return
        except FileExistsError as error:
            yield ManifestSaved(manifest.checkpoint, str(error))
        except OSError as error:
            self._doubtful.add(manifest.checkpoint)
            with suppress(OSError):
                self._settle()
            yield ManifestSaved(manifest.checkpoint, str(error))
        else:
            with suppress(OSError):
                self._storage.sweep(self._terms)
            yield ManifestSaved(manifest.checkpoint)

    def _write(self, manifest: Manifest) -> None:
        try:
            self._storage.complete(manifest)
        except StoreUnavailableError:
            if not self._storage.has(manifest):
                raise

    def _settle(self) -> None:
        for number in sorted(self._doubtful):
            if not self._in_charge():
                return
            self._storage.withdraw(number)
            self._doubtful.discard(number)

    def _commit(self, commit: Commit) -> Steps:
        self._storage.note_committed(commit.checkpoint)
        yield None
        try:
            if not self._in_charge():
                return
        except OSError as error:
            yield Committed(commit.checkpoint, error=JobFailedError(str(error)))
            return
        yield None
        if self._storage.refuses_commit():
            yield Committed(commit.checkpoint, error=JobFailedError("a sink could not commit"))
            return
        try:
            deliveries = self._commit_sinks(commit.checkpoint, commit.committables)
        except OSError as error:
            yield Committed(commit.checkpoint, error=JobFailedError(str(error)))
            return
        if self._storage.refuses_commit():
            yield Committed(commit.checkpoint, error=JobFailedError("a sink has committed, and does not know it"))
            return
        yield None
        yield Committed(commit.checkpoint, deliveries)

    def _commit_sinks(self, checkpoint: int, committables: Mapping[str, list[Any]]) -> tuple[Delivery, ...]:
        """Commit the sinks. Raises SimulationError if the checkpoint is earlier than one before it."""
        if checkpoint < self._committed:
            raise SimulationError(f"checkpoint {checkpoint} is committed behind checkpoint {self._committed}")
        if not self._storage.completed(checkpoint) and self._storage.saves:
            raise SimulationError(f"checkpoint {checkpoint} is committed before its manifest is written")
        self._committed = checkpoint
        self._storage.show(checkpoint, self._terms.term)
        self._ledger.commit(checkpoint, committables)
        return tuple(
            (name, payload) for name, sink in self._sinks.items() for payload in sink.commit(checkpoint, committables.get(name, []))
        )

    def _restore_sinks(self, wanted: RestoreSinks) -> Steps:
        deliveries: list[Delivery] = []
        try:
            yield from self._restored(wanted, deliveries)
        except OSError as error:
            yield SinksRestored(wanted.attempt, tuple(deliveries), JobFailedError(str(error)))
            return
        if not self.superseded:
            self._resumes = False
            self._storage.sweep_prepared(wanted.attempt)
            yield SinksRestored(wanted.attempt, tuple(deliveries))

    def _restored(self, wanted: RestoreSinks, deliveries: list[Delivery]) -> Steps:
        at = wanted.manifest.checkpoint if wanted.manifest is not None else NO_CHECKPOINT
        if not self._in_charge():
            return
        self._settle()
        if wanted.retracts is not None or self._resumes:
            yield None
            if wanted.retracts is not None:
                self._storage.declare_void(at)
            self._committed = at
            self._ledger.take_back(at)
            deliveries += [(name, payload) for name, sink in self._sinks.items() for payload in sink.retract(at)]
        if wanted.manifest is not None:
            yield None
            self._storage.note_committed(at)
            if not self._in_charge():
                return
            yield None
            if self._storage.refuses_commit():
                raise OSError("a sink could not commit")
            deliveries += self._commit_sinks(at, wanted.manifest.committables)
            if self._storage.refuses_commit():
                raise OSError("a sink has committed, and does not know it")

    def _in_charge(self) -> bool:
        self.superseded = self.superseded or self._storage.claimed(self._terms.term + 1)
        return not self.superseded
