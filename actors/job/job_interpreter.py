"""The interpreter of a job: passes events to its state machine, and turns the effects into calls on the runtime's ports.

Invariant: effects are carried out in the order in which they were decided, even if carrying one out causes another event.

A fair lock serialises access to the state machine, so that a busy job still answers requests. `clock()`: seconds since the epoch;
never goes back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar, assert_never, cast

from ...engine.errors import ClusterError
from ...engine.protocol.ids import Attempt, WorkerId
from ...scheduler.job.core import JobCore
from ...scheduler.protocol.effects import (
    AskForRoom,
    Commit,
    CopySavepoint,
    Deploy,
    Discard,
    Effect,
    Ended,
    FindOlder,
    JobState,
    LeaveNode,
    RememberCode,
    RememberSettings,
    RememberStart,
    RememberStop,
    Reserve,
    RestoreSinks,
    Retire,
    Save,
    Spawn,
    Tell,
    UseNodes,
    Warn,
)
from ...scheduler.protocol.messages import Report
from ...scheduler.protocol.requests import AnyRequest, ChangeRequest, Request, ShowStatus, ShowView
from ...scheduler.protocol.storage_answers import StorageAnswer
from ...state.errors import EvenflowError
from .fair_lock import FairLock
from .job_ports import Storage, Workers

A = TypeVar("A")

_LOG = logging.getLogger(__name__)

VIEW_SECONDS = 1.0
"""The greatest age of the list of nodes in a view; a request for a change has the present one."""


class JobInterpreter:
    """The interpreter of one job. Its methods may be called by any thread, and by the ports while they carry out an effect."""

    def __init__(self, core: JobCore, workers: Workers, storage: Storage, clock: Callable[[], float]) -> None:
        self.core, self._workers, self._storage, self._clock = core, workers, storage, clock
        self.lock = FairLock()
        self._busy = False
        self._observer: Callable[[JobState, float], None] | None = None
        self._observed: JobState | None = None

    def observe(self, observer: Callable[[JobState, float], None]) -> None:
        """Call `observer(state, now)` at each change of the job's state, under the lock."""
        self._observer = observer

    def begin(self) -> None:
        """Start the job."""
        self._event(self.core.begin)

    def ready(self, worker: WorkerId, attempt: Attempt) -> None:
        """Handle a worker's start in this attempt."""
        self._event(self.core.ready, worker, attempt)

    def report(self, worker: WorkerId, attempt: Attempt, report: Report) -> None:
        """Handle a worker's report, in the order in which it sent them. Those of a finished attempt are dropped."""
        with self.lock:
            if attempt == self.core.attempt:
                self._event(self.core.report, worker, report)

    def lost(self, worker: WorkerId, why: str) -> None:
        """Handle the end of a worker's process."""
        self._event(self.core.lost, worker, why)

    def not_deployed(self, attempt: Attempt, error: EvenflowError) -> None:
        """Handle the failed deployment of an attempt."""
        self._event(self.core.not_deployed, attempt, error)

    def not_spawned(self, workers: tuple[WorkerId, ...], attempt: Attempt, problem: str) -> None:
        """Handle the failed start of joining workers."""
        self._event(self.core.not_spawned, workers, attempt, problem)

    def stored(self, answer: StorageAnswer) -> None:
        """Handle the answer of storage."""
        self._event(self.core.stored, answer)

    def tick(self) -> None:
        """Let time pass; to be called a few times per second."""
        with self.lock:
            view = self._workers.view(oldest=self.core.age_of_nodes)
            self._event(lambda now: self.core.tick(now, view))

    def ask(self, request: Request[A]) -> A:
        """Answer a request. Raises RequestError if it is invalid, JobBusyError or JobNotRunningError if it is impossible now."""
        with self.lock:
            view = None
            if isinstance(request, (ChangeRequest, ShowView)):
                view = self._workers.view(oldest=VIEW_SECONDS if isinstance(request, ShowView) else 0.0)
            if isinstance(request, (ShowStatus, ShowView)):
                self.core.note_long_calls(self._workers.long_calls())
            try:
                return cast(A, self.core.answer(cast(AnyRequest, request), self._clock(), view))
            finally:
                self._note_state()
                self._carry_out_all()

    def _event(self, happens: Callable[..., None], *what: Any) -> None:
        with self.lock:
            happens(*what, self._clock())
            self._note_state()
            self._carry_out_all()

    def _note_state(self) -> None:
        """Report the state to the observer if it has changed. Each event is followed by this, so no state is too short to be seen."""
        if self._observer is not None and self.core.state is not self._observed:
            self._observed = self.core.state
            self._observer(self.core.state, self._clock())

    def _carry_out_all(self) -> None:
        """Carry out what is decided and not done yet."""
        if self._busy:
            return  # an outer call is already carrying out effects, and will also carry out the new ones
        self._busy = True
        try:
            while effects := self.core.effects():
                for effect in effects:
                    self._do(effect)
        finally:
            self._busy = False

    def _do(self, effect: Effect) -> None:  # noqa: C901 -- a line for each kind
        match effect:
            case Tell():
                self._workers.tell(effect.worker, effect.command)
            case Save() | Commit() | RestoreSinks() | FindOlder() | Discard() | CopySavepoint():
                self._storage.put(effect)
            case RememberStart() | RememberStop() | RememberSettings() | RememberCode():
                self._storage.put(effect)
            case Deploy():
                self._workers.deploy(effect)
            case Spawn():
                self._workers.spawn(effect)
            case Retire():
                self._workers.retire(effect.workers)
            case UseNodes():
                self._workers.use_nodes(effect.avoid, effect.prefer)
            case Reserve():
                try:
                    self._workers.reserve(effect.workers, hurry=effect.hurry)
                except ClusterError as error:
                    self.core.not_reserved(str(error), self._clock())
            case AskForRoom():
                self._workers.ask_for_room(effect.nodes)
            case LeaveNode():
                self._workers.leave_node()
            case Warn():
                _LOG.warning("%s", effect.text)
            case Ended():
                pass  # the runtime sees the state
            case _:
                assert_never(effect)
