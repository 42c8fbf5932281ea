"""Carries out a job's storage effects: manifests, the sinks' commits and retractions, savepoints. It makes no decisions.

Invariant: the number of a checkpoint is recorded before the first sink commits it, and changes that the whole run sees are made
only while no later coordinator has begun.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, NoReturn, assert_never

from ...engine.errors import JobFailedError, shown
from ...engine.operators.rows.read import Read
from ...engine.operators.rows.write import Write
from ...engine.plan.physical import Plan
from ...engine.protocol.ids import NO_CHECKPOINT, CheckpointNumber, WorkerId
from ...engine.sink import Sink
from ...engine.source import Source
from ...scheduler.configs.job import JobConfig
from ...scheduler.protocol.changed_settings import ChangedSettings
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
    StopOrder,
    StorageEffect,
)
from ...scheduler.protocol.manifest import Manifest
from ...scheduler.protocol.restore_point import RestorePoint
from ...scheduler.protocol.storage_answers import (
    Committed,
    Delivery,
    ManifestSaved,
    OlderFound,
    SavepointCopied,
    SinksRestored,
    StorageAnswer,
)
from ...scheduler.record.restoring.restored_task import RestoredTask
from ...scheduler.record.restoring.run_claim import LifeSign, RunClaim, RunEnd
from ...scheduler.record.restoring.terms import first_attempt
from ...state.errors import EvenflowError
from ...state.redacted_output import cleared
from ..attempt_log import note_step
from ..task.saved_state import SavedState, SupersededError
from .first_manifest import FirstManifest, Savepoint
from .retraction import retract
from .run_memory import RunMemory

_LOG = logging.getLogger(__name__)


class JobStorage:
    """The storage of one job, used by one thread at a time. `memory`: facts for a later coordinator that checkpoints don't
    contain.
    """

    def __init__(
        self,
        plan: Plan,
        config: JobConfig,
        *,
        savepoint: Savepoint | None = None,
        claim: RunClaim | None = None,
        memory: RunMemory | None = None,
        leave: Callable[[SupersededError], NoReturn] | None = None,
    ) -> None:
        """Create it. `claim`: of this run. `leave` is called once another coordinator has replaced this one, and must not return."""
        self._plan, self._config = plan, config
        self._memory = memory if memory is not None else RunMemory()
        self._claim = claim if claim is not None else RunClaim(secrets.token_hex(8))
        self._saved = SavedState(config.checkpoint.url(plan.name), config.checkpoint.kept, self._claim, leave)
        self._first = FirstManifest(self._saved, savepoint)
        self._sinks = plan_sinks(plan)
        self._taken_over = False
        self._resumes = self._claim.resumes
        """True until the sinks are where this start of the program resumes."""

    def restore_point(self, *, takes_over: bool = False) -> RestorePoint:
        """Return the point where the job begins. Raises FlowError for an incompatible savepoint, OSError if the folder can't be
        read.
        """
        if not takes_over:
            newest, last = self._saved.begin(), self._saved.last
            if not self._claim.resumes:
                return RestorePoint(self._first.manifest(self._plan), from_savepoint=True, last=last)
            attempt = first_attempt(self._saved.term)
            self._saved.discard_unfinished()
            return RestorePoint(newest, last=last, resumes=True, committed=self._saved.reached(), attempt=attempt)
        newest = self._saved.take_over(max(self._memory.record.term, self._claim.term))
        self._memory.keep(replace(self._memory.record, term=self._saved.term))
        manifest = newest if newest is not None else self._first.manifest(self._plan)
        known = self._memory.record
        self._saved.discard_unfinished(known.committed)
        return RestorePoint(
            manifest,
            from_savepoint=newest is None,
            last=self._saved.last,
            takes_over=True,
            committed=CheckpointNumber(known.committed),
            attempt=first_attempt(self._saved.term),
            completed=known.completed,
            running_since=known.running_since,
            stop=StopOrder(**known.stop) if known.stop else None,
            code=known.code,
            settings=ChangedSettings(**known.settings),
        )

    def restored(self, manifest: Manifest | None, plan: Plan) -> dict[WorkerId, RestoredTask]:
        """Return the state that each worker of `plan` restores from `manifest`. May be called by any thread."""
        return self._saved.restored(manifest, plan)

    def stay_in_charge(self) -> None:
        """Return if no later coordinator of this run has begun.

        Raises OSError, and TakenOverError if another start of the program has taken over.
        """
        self._saved.stay_in_charge()

    @property
    def claimed(self) -> bool:
        """True if this run has claimed its folder."""
        return self._claim.term > 0

    def beat(self, sign: LifeSign) -> None:
        """Write a sign of life, if no later process has claimed the folder: see `stay_in_charge`. May be called by any thread."""
        self._saved.stay_in_charge()
        self._saved.beat(sign)

    def note_end(self, end: RunEnd) -> None:
        """Record how the job ended. A failure is logged as a warning: the next start then waits for signs of life."""
        try:
            self._saved.note_end(end)
        except OSError as error:
            _LOG.warning("job `%s` has ended, which could not be recorded: %s", self._plan.name, error)

    def perform(self, effect: StorageEffect, later: Callable[[StorageAnswer], None]) -> StorageAnswer | None:  # noqa: C901 -- a line for each kind
        """Carry out an effect and return its answer, if any. `later` is called with the answer of work in a separate thread."""
        match effect:
            case Save():
                return ManifestSaved(effect.manifest.checkpoint, self._saved.complete(effect.manifest))
            case Commit():
                return self._commit(effect)
            case RestoreSinks():
                return self._restore_sinks(effect)
            case FindOlder():
                return self._find_older(effect)
            case Discard():
                self._saved.discard(effect.checkpoint)
            case CopySavepoint():
                self._saved.hold(effect.manifest.checkpoint)
                threading.Thread(target=self._copy, args=(effect, later), name=f"{self._plan.name}/savepoint", daemon=True).start()
            case RememberStart():
                self._remember("when it began to run", running_since=effect.since)
            case RememberStop():
                self._remember("that it is to stop", stop=asdict(effect.order))
            case RememberCode():
                self._remember("its new code", code=effect)
            case RememberSettings():
                self._remember("its changed settings", settings=asdict(effect.changed))
            case _:
                assert_never(effect)
        return None

    def _commit(self, commit: Commit) -> Committed:
        try:
            deliveries = self._commit_sinks(commit.checkpoint, commit.committables, commit.completed)
        except SupersededError:
            raise
        except Exception as error:  # noqa: BLE001 -- a sink is the user's or a library's: whatever it raises fails the job
            return Committed(commit.checkpoint, error=_own(error))
        if commit.last:
            self._sweep()
        return Committed(commit.checkpoint, tuple(deliveries))

    def _commit_sinks(self, checkpoint: CheckpointNumber, committables: Any, completed: int | None = None) -> list[Delivery]:
        """Commit to the sinks. Raises EvenflowError naming the sink that can't commit."""
        who, deliveries = f"job `{self._plan.name}`", list[Delivery]()
        try:
            record = self._memory.record
            completed = record.completed if completed is None else completed
            self._memory.keep(replace(record, committed=max(record.committed, checkpoint), completed=completed))
            self._saved.stay_in_charge()
            for name, sink in self._sinks.items():
                who = f"sink `{name}`"
                deliveries += [(name, payload) for payload in sink.commit(checkpoint, committables.get(name, []))]
        except EvenflowError:
            raise
        except BaseException as error:
            raise JobFailedError(f"{who} could not commit checkpoint {checkpoint}: {shown(error)}") from error
        return deliveries

    def _restore_sinks(self, wanted: RestoreSinks) -> SinksRestored:
        deliveries: list[Delivery] = []
        at = wanted.manifest.checkpoint if wanted.manifest is not None else NO_CHECKPOINT
        note_step(self._plan.name, wanted.attempt, "begun")
        try:
            self._saved.stay_in_charge()
            self._saved.settle()
            if wanted.retracts is None and self._resumes:  # the newest manifest may have been deleted while no process was running
                deliveries += [(name, each) for name, sink in self._sinks.items() if sink.retractable for each in sink.retract(at)]
            if wanted.retracts is not None:
                allowed = self._config.checkpoint.allow_duplicates
                try:
                    deliveries += retract(self._plan.name, at, wanted.retracts, self._sinks, self._saved, allow_duplicates=allowed)
                except SupersededError:
                    raise
                except JobFailedError as error:
                    return SinksRestored(wanted.attempt, error=error, hopeless=True)
            if wanted.manifest is not None:
                deliveries += self._commit_sinks(at, wanted.manifest.committables)
        except SupersededError:
            raise
        except Exception as error:  # noqa: BLE001 -- as in a commit
            return SinksRestored(wanted.attempt, tuple(deliveries), _own(error))
        self._resumes = False
        self._sweep()
        self._take_over()
        return SinksRestored(wanted.attempt, tuple(deliveries))

    def _find_older(self, wanted: FindOlder) -> OlderFound:
        try:
            manifest = self._first.instead_of(wanted.checkpoint, wanted.problem, self._plan)
        except Exception as error:  # noqa: BLE001 -- a file system's library may raise anything
            return OlderFound(wanted.checkpoint, wanted.problem, error=_own(error))
        return OlderFound(wanted.checkpoint, wanted.problem, manifest)

    def _copy(self, wanted: CopySavepoint, later: Callable[[StorageAnswer], None]) -> None:
        checkpoint = wanted.manifest.checkpoint
        try:
            problem = self._saved.copy(wanted.manifest, wanted.path, again=wanted.last)
        finally:
            self._saved.let_go(checkpoint)
        later(SavepointCopied(checkpoint, problem))

    def _remember(self, what: str, **fields: Any) -> None:
        try:
            self._memory.keep(replace(self._memory.record, **fields))
        except Exception as error:  # noqa: BLE001 -- only a coordinator that takes this one's place would miss it
            _LOG.warning("job `%s`: %s could not be recorded: %s", self._plan.name, what, error)

    def _sweep(self) -> None:
        self._tidy(lambda sink: sink.sweep(), "output that no job will commit")

    def _take_over(self) -> None:
        if not self._taken_over:
            self._taken_over = True
            job = f"{self._plan.name} {self._config.checkpoint.url(self._plan.name) or ''}"
            self._tidy(lambda sink: sink.take_over(job, self._saved.committables), "output of killed runs")

    def _tidy(self, remove: Callable[[Sink], None], what: str) -> None:
        for name, sink in self._sinks.items():
            try:
                remove(sink)
            except Exception as error:  # noqa: BLE001 -- as in a commit; nothing depends on what is left
                _LOG.warning("job `%s`: sink `%s` could not remove %s: %s", self._plan.name, name, what, error)


def plan_sources(plan: Plan) -> dict[str, Source]:
    """Return the sources of a plan by operator name."""
    return {c.name: c.operator.source for stage in plan.stages for c in stage.chain if isinstance(c.operator, Read)}


def plan_sinks(plan: Plan) -> dict[str, Sink]:
    """Return the sinks of a plan by operator name."""
    return {c.name: c.operator.sink for stage in plan.stages for c in stage.chain if isinstance(c.operator, Write)}


def _own(raised: Exception) -> EvenflowError:
    error = cleared(raised)
    return error if isinstance(error, EvenflowError) else JobFailedError(shown(error))
