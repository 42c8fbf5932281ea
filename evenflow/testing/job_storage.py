"""The storage port of a simulated coordinator: each effect takes several steps, and between two steps any process may act or be lost.

Invariant: it does what `actors/job/job_storage.py` does, in the same order: the number of a checkpoint is noted before it is committed, and
what the whole run sees is done only while no later coordinator has begun.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, assert_never

from ..engine.errors import JobFailedError
from ..engine.protocol.ids import NO_CHECKPOINT
from ..engine.sink import Sink
from ..scheduler.checkpoints.manifest import Manifest
from ..scheduler.checkpoints.storage_answers import (
    Committed,
    Delivery,
    OlderFound,
    Saved,
    SavepointCopied,
    SinksRestored,
    StorageAnswer,
)
from ..scheduler.checkpoints.terms import Terms
from ..scheduler.job.effects import Commit, CopySavepoint, Discard, FindOlder, RememberStart, RestoreSinks, Save, StorageEffect
from .ledger import Ledger
from .network import SimulationError
from .storage import Storage

Steps = Iterator[StorageAnswer | None]
"""None between two steps; the answer, if there is one, comes last."""


class SimulatedStorage:
    """Of one coordinator, of the term that is the newest of `terms`. `sinks` by operator name.

    `superseded`: it has found that another coordinator has begun, so it is gone.
    """

    def __init__(self, storage: Storage, ledger: Ledger, sinks: Mapping[str, Sink], terms: Terms) -> None:
        self._storage, self._ledger, self._sinks, self._terms = storage, ledger, sinks, terms
        self._queue: deque[StorageEffect] = deque()
        self._steps: Steps | None = None
        self._committed = 0
        self.superseded = False

    @property
    def waits(self) -> bool:
        """Whether there is something to be carried out."""
        return bool(self._queue) and not self.superseded

    @property
    def saves(self) -> bool:
        """Whether a manifest is being written, or to be written next."""
        return bool(self._queue) and isinstance(self._queue[0], Save)

    def put(self, effect: StorageEffect) -> None:
        """Carry it out behind those before it."""
        self._queue.append(effect)

    def step(self, answer: Callable[[StorageAnswer], None]) -> None:
        """Carry the next step out."""
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

    def _perform(self, effect: StorageEffect) -> Steps:
        match effect:
            case Save():
                return self._save(effect.manifest)
            case Commit():
                return self._commit(effect)
            case RestoreSinks():
                return self._restore_sinks(effect)
            case FindOlder():
                older = self._storage.newest(self._terms, effect.checkpoint)
                return iter((OlderFound(effect.checkpoint, effect.problem, older),))
            case Discard():
                self._storage.discard(effect.checkpoint)
                return iter(())
            case CopySavepoint():
                return iter((SavepointCopied(effect.manifest.checkpoint),))
            case RememberStart():
                return iter(())
            case _:
                assert_never(effect)

    def _save(self, manifest: Manifest) -> Steps:
        if not self._in_charge():
            return
        yield None
        try:
            self._storage.complete(manifest)
        except OSError as error:
            yield Saved(manifest.checkpoint, str(error))
            return
        yield None
        if self._in_charge():
            self._storage.sweep(self._terms)
            yield Saved(manifest.checkpoint)

    def _commit(self, commit: Commit) -> Steps:
        self._storage.note_committed(commit.checkpoint)
        yield None
        if not self._in_charge():
            return
        yield None
        if self._storage.refuses_commit():
            yield Committed(commit.checkpoint, error=JobFailedError("a sink could not commit"))
            return
        deliveries = self._commit_sinks(commit.checkpoint, commit.committables)
        if self._storage.refuses_commit():
            yield Committed(commit.checkpoint, error=JobFailedError("a sink has committed, and does not know it"))
            return
        yield None
        yield Committed(commit.checkpoint, deliveries)

    def _commit_sinks(self, checkpoint: int, committables: Mapping[str, list[Any]]) -> tuple[Delivery, ...]:
        """Raises SimulationError if the checkpoint is earlier than one before it."""
        if checkpoint < self._committed:
            raise SimulationError(f"checkpoint {checkpoint} is committed behind checkpoint {self._committed}")
        if not self._storage.completed(checkpoint) and self._storage.saves:
            raise SimulationError(f"checkpoint {checkpoint} is committed before its manifest is written")
        self._committed = checkpoint
        self._ledger.commit(checkpoint, committables)
        return tuple(
            (name, payload) for name, sink in self._sinks.items() for payload in sink.commit(checkpoint, committables.get(name, []))
        )

    def _restore_sinks(self, wanted: RestoreSinks) -> Steps:
        at = wanted.manifest.checkpoint if wanted.manifest is not None else NO_CHECKPOINT
        deliveries: list[Delivery] = []
        if not self._in_charge():
            return
        if wanted.retracts is not None:
            yield None
            try:
                self._storage.declare_void(at)
            except OSError as error:
                yield SinksRestored(wanted.attempt, error=JobFailedError(str(error)))
                return
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
                yield SinksRestored(wanted.attempt, tuple(deliveries), JobFailedError("a sink could not commit"))
                return
            deliveries += self._commit_sinks(at, wanted.manifest.committables)
            if self._storage.refuses_commit():
                yield SinksRestored(wanted.attempt, tuple(deliveries), JobFailedError("a sink has committed, and does not know it"))
                return
        yield SinksRestored(wanted.attempt, tuple(deliveries))

    def _in_charge(self) -> bool:
        self.superseded = self.superseded or self._storage.claimed(self._terms.term + 1)
        return not self.superseded
