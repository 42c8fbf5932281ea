"""The coordinator: one job on Ray, behind its actor (`coordinator_actor.py`).

Ray's threads call it, and its own thread keeps time; the interpreter carries out the job's decisions.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import ray

from ...engine.errors import JobFailedError, JobLostError, JobNotRunningError, shown
from ...engine.plan.physical import Plan
from ...engine.protocol.ids import WorkerId
from ...engine.sink import Sink
from ...engine.source import Source
from ...engine.time.duration import seconds
from ...scheduler.configs.job import JobConfig
from ...scheduler.job.core import JobCore
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.requests import HISTORIES, Cancel, ChangeSettings, Fail, Request, ShowFigures, ShowProgress, ShowStatus
from ...scheduler.protocol.status import JobOutcome, JobStatus, Progress
from ...scheduler.protocol.storage_answers import StorageFailed
from ...scheduler.record.restoring.run_claim import RunClaim
from ...state.errors import EvenflowError
from ..attempt_log import note_step
from ..channels.security import Security
from ..channels.socket_folder import SocketFolder
from ..clocks import JobClock
from ..job.cluster_memory import ClusterMemory
from ..job.first_manifest import Savepoint
from ..job.heartbeat import Heartbeat
from ..job.job_interpreter import JobInterpreter
from ..job.job_storage import JobStorage, plan_sinks, plan_sources
from ..job.prometheus import MetricsServer
from ..job.storage_thread import StorageThread
from ..process_log import set_log_level
from ..task.saved_state import SupersededError
from .cluster_watch import NodesInChange, watch_cluster
from .packed_call import unpack_call
from .placement import lack_of_memory
from .process import LEAVE_TIMEOUT, STORAGE_PATIENCE, WorkerActor
from .ray_workers import RayWorkers
from .take_over import TakeOver
from .worker import Service

_LOG = logging.getLogger(__name__)

TICK = 0.05
NEWS_PATIENCE = 0.5
"""Seconds for which the driver's poll waits for news. Between two polls it checks if a source has failed."""

STATUS_PATIENCE, BACK_PATIENCE = 1.0, 10.0
"""Seconds that a request waits for a coordinator that takes over: for the status, and for requests that need a running job."""

LINGER_SECONDS = 60.0
"""Seconds for which the coordinator of a finished detached job stays: watchers poll every ten seconds."""

WATCHERS_PATIENCE = 0.5
"""Seconds for which the coordinator of a watched job stays after its owner has closed it, so that watchers learn the outcome."""


class Coordinator:
    """The coordinator of one job, in the process of its actor.

    `claim`: this start's claim of a run of the job. `savepoint`: the one that the job begins from, if any. `lent`: the driver's
    processes for workers; the others are this actor's and end with it. `detached`: there is no driver, so this actor stops the
    sinks and ends itself when the job is over. `movable`: Ray starts this actor again, on any node.
    """

    def __init__(
        self,
        plan: Plan,
        config: JobConfig,
        claim: RunClaim,
        savepoint: Savepoint | None,
        lent: Mapping[WorkerId, WorkerActor],
        detached: bool,
        movable: bool,
    ) -> None:
        self._plan, self._config, self._lent, self._detached, self._movable = plan, config, lent, detached, movable
        self._me: Any = None
        """This actor's handle, once the job has processes."""
        self._metrics: MetricsServer | None = None
        self._heartbeat: Heartbeat | None = None
        self._problems: tuple[str, ...] = ()
        """Problems of optional services, such as metrics."""
        self._security = Security.generate(claim.start)
        self._closed = threading.Event()
        self._beginning, self._over = threading.Lock(), False
        """Guards the start: a job that was given up before its start was carried out does not start."""
        self._watched_at = -LINGER_SECONDS
        self._incarnation = uuid.uuid4().hex
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray's own, about a method that it calls itself
            again = ray.get_runtime_context().was_current_actor_reconstructed
        self._memory = ClusterMemory(claim.start)
        self._refused: EvenflowError | None = None
        """The reason why the job can't begin: an error of an actor's `__init__` would arrive as a text of Ray's."""
        self._take_over: TakeOver | None = None
        """The take-over from a lost coordinator; None once this one has begun."""
        if again:
            self._lent = {worker: replace(process, new=False) for worker, process in lent.items()}
            me = ray.get_runtime_context().current_actor
            self._take_over = TakeOver(plan.name, partial(self._come_back, claim, savepoint, me), self._lose)
            self._take_over.start()
            return
        try:
            self._make(claim, savepoint, again=False)
        except EvenflowError as error:
            self._refuse(error)

    def _waiting(self, patience: float) -> TakeOver | None:
        """Wait up to `patience` seconds for the take-over. Return it if it is still in progress, else None."""
        if (waiting := self._take_over) is not None:
            waiting.wait(patience)
        return self._take_over

    def _come_back(self, claim: RunClaim, savepoint: Savepoint | None, me: Any) -> None:
        set_log_level(self._config.log_level)
        note_step(self._plan.name, None, "coordinator there")
        self._make(claim, savepoint, again=True)
        self._start(me)

    def _make(self, claim: RunClaim, savepoint: Savepoint | None, *, again: bool) -> None:
        plan, config = self._plan, self._config
        self._saved = JobStorage(plan, config, savepoint=savepoint, claim=claim, memory=self._memory, leave=_leave_at_once)
        core = JobCore(plan, config, self._saved.restore_point(takes_over=again))
        self._workers = RayWorkers(plan, config, self._saved)
        self._storage = StorageThread(plan.name, self._saved, lambda answer: self._interpreter.stored(answer))
        self._clock = JobClock()
        self._made = JobInterpreter(core, self._workers, self._storage, self._clock)
        set_log_level(core.record.config.log_level)

    @property
    def _interpreter(self) -> JobInterpreter:
        """The job's interpreter. Raises the reason why the job can't begin, if there is one."""
        if self._refused is not None:
            raise self._refused
        return self._made

    def _lose(self, error: Exception) -> None:
        """Give the job up: its coordinator was lost, and this one can't take over.

        Removes what the lost one left on this machine.
        """
        SocketFolder(self._security.job).remove()
        _LOG.error("job `%s`: its coordinator was lost, and another can't begin in its place", self._plan.name, exc_info=error)
        why = f"job `{self._plan.name}`: its coordinator was lost, and another can't begin in its place: {shown(error)}"
        self._refuse(JobLostError(why))

    def _refuse(self, why: EvenflowError) -> None:
        """Answer every request with this error. Without a driver, end this actor once watchers have received it."""
        self._refused, self._take_over = why, None
        self._closed.set()
        if self._detached:
            me = ray.get_runtime_context().current_actor
            threading.Thread(target=self._leave, args=(me,), name=f"{self._plan.name}/leave", daemon=True).start()

    def deploy(self, me: Any) -> None:
        """Start the workers and the job; `me` is this actor's handle. Raises ClusterError naming the workers that didn't start.

        A job that has ended meanwhile, because its first workers failed, counts as started; its outcome has the error.
        """
        if self._take_over is not None:
            return  # the previous coordinator was lost while it deployed
        core = self._interpreter.core
        with self._beginning:
            if self._over:
                raise JobNotRunningError(f"job `{self._plan.name}` was given up before its coordinator could start it")
            if self._me is None:
                self._start(me)
        deadline = time.monotonic() + 2 * seconds(self._config.worker.start_timeout)
        while core.state is JobState.STARTING:
            if time.monotonic() > deadline:
                raise JobFailedError(
                    f"job `{self._plan.name}` waits for its sinks: they were not ready within {self._config.worker.start_timeout}"
                )
            time.sleep(TICK / 5)
        if self._workers.not_started is not None:
            self._closed.wait(LEAVE_TIMEOUT + STORAGE_PATIENCE)
            raise self._workers.not_started

    def _start(self, me: Any) -> None:
        self._workers.attend(self._interpreter, Service(self._incarnation, self._plan.name, me, self._security), self._lent)
        self._me, self._take_over = me, None
        self._heartbeat = Heartbeat(self._plan.name, self._saved, lambda why: self._interpreter.stored(StorageFailed(why)))
        if (lack := lack_of_memory(len(self._plan.tasks))) is not None:
            self._problems += (lack,)
        self._serve_metrics()
        self._interpreter.begin()
        pool, over = self._workers.pool, lambda: self._interpreter.core.state.final
        watch_cluster(self._plan.name, self._note_nodes, pool.waits_for_room, over)
        threading.Thread(target=self._keep_time, name=f"{self._plan.name}/clock", daemon=True).start()

    def _note_nodes(self, found: NodesInChange) -> None:
        """Let workers, and this actor, leave the nodes that Ray drains. It stays if it has begun on one: Ray had no other for it."""
        here = ray.get_runtime_context().get_node_id()
        with self._interpreter.lock:
            if self._movable and here not in found.draining:
                self._workers.home = here
            self._workers.pool.in_change = found

    def _serve_metrics(self) -> None:
        """Serve metrics if possible: a job does not depend on it."""
        name, node = self._plan.name, ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        try:
            self._metrics = server = MetricsServer(name, self._config.metrics, self._interpreter, node)
            problems, warned = server.problems, server.warning
            self._interpreter.observe(self._note_state)
        except Exception as error:  # noqa: BLE001 -- the server is a library's, whatever it raises
            problems, warned = [f"metrics can't be served: {shown(error)}"], None
        for text in (*problems, *([] if warned is None else [warned])):
            _LOG.warning("job `%s`: %s", name, text)
        self._problems += tuple(problems)

    def _note_state(self, state: JobState, now: float) -> None:
        """Pass a change of the job's state to metrics and traces."""
        if self._metrics is not None:
            self._optional(self._metrics.collector.note_state, state, now)

    def _optional(self, report: Callable[..., None], *values: Any) -> None:
        """Report to metrics and traces; an error of theirs is recorded once."""
        try:
            report(*values)
        except Exception as error:  # noqa: BLE001 -- also what a library for traces raises
            problem = f"metrics or traces are incomplete: {shown(error)}"
            if problem not in self._problems:
                _LOG.warning("job `%s`: %s", self._plan.name, problem, exc_info=True)
                self._problems += (problem,)

    def waits_for(self) -> str:
        """Describe what the job's start waits for."""
        names = [task.name for task in self._plan.tasks]
        started = self._workers.pool.started() if self._me is not None else set()
        if missing := [name for name in names if name not in started]:
            return f"the processes of {', '.join(missing)}: {len(names) - len(missing)} of {len(names)} run"
        return "its workers and sinks to become ready"

    def report(self, packed: bytes) -> None:
        """Handle a worker's numbered report. Those of attempts of a lost coordinator are dropped."""
        if self._take_over is not None or self._refused is not None:
            return
        self._workers.received(*unpack_call(packed))

    def ask(self, request: Request[Any]) -> Any:
        """Answer a request. Raises RequestError if it is impossible, JobBusyError or JobNotRunningError if it is impossible now."""
        if isinstance(request, ShowProgress):
            return self._progress(request)
        if (waiting := self._waiting(STATUS_PATIENCE if isinstance(request, ShowStatus) else BACK_PATIENCE)) is not None:
            answer = waiting.ask(request)
            if waiting.given_up:
                self._closed.set()
            return answer
        if isinstance(request, ShowStatus):
            return self._status()
        answer = self._interpreter.ask(request)
        if isinstance(request, ChangeSettings):
            set_log_level(self._interpreter.core.record.config.log_level)
        return answer

    def outcome(self, patience: float) -> JobOutcome:
        """Return everything that remains of a job that has ended; only status and figures after `patience` seconds, for watchers."""
        if patience:
            self._watched_at = time.monotonic()
        self._closed.wait(patience)
        if (waiting := self._waiting(patience)) is not None:
            return JobOutcome(waiting.ask(ShowStatus()))
        with self._interpreter.lock:
            status, figures = self._status(), self._interpreter.ask(ShowFigures())
            if not status.state.final:
                return JobOutcome(status, figures)
            core = self._interpreter.core
            return JobOutcome(status, figures, core.record.loads(), {question: self.ask(question) for question in HISTORIES})

    def _progress(self, request: ShowProgress) -> Progress:
        """Wait a while for a delivery or the end, so that the driver needn't poll. Repeat all deliveries for another incarnation."""
        known, until = request.incarnation == self._incarnation, time.monotonic() + NEWS_PATIENCE
        if (waiting := self._waiting(NEWS_PATIENCE)) is not None:
            return Progress(waiting.state, None, (), self._incarnation)
        while True:
            progress = self._interpreter.ask(ShowProgress(request.seen if known else 0))
            if progress.deliveries or progress.state.final or not known or time.monotonic() >= until:
                return replace(progress, incarnation=self._incarnation)
            time.sleep(TICK)

    def _status(self) -> JobStatus:
        with self._interpreter.lock:
            status = self._interpreter.ask(ShowStatus())
            if self._me is None:
                return status
            url = self._metrics.url if self._metrics is not None else None
            problems = (*status.problems, *self._problems)
            places, spares = self._workers.pool.places(), self._workers.pool.spares.ready
            return replace(status, metrics_url=url, places=places, spares=spares, problems=problems)

    def close(self) -> None:
        """End the job, cancelling it if necessary; returns when all workers have ended."""
        if self._take_over is not None:
            self._take_over.give_up()
        elif self._refused is None:
            with self._beginning:
                self._over = True
            self.ask(Cancel())
            if self._me is None:
                self._close()
            self._closed.wait(LEAVE_TIMEOUT + STORAGE_PATIENCE + 5)
            if time.monotonic() - self._watched_at < LINGER_SECONDS:
                time.sleep(WATCHERS_PATIENCE)
        self._memory.forget()

    def lingers(self, patience: float) -> bool:
        """Return True if this actor remains only to report the outcome of its job. Waits until a job that has ended is closed."""
        ending = self._take_over is None and self._refused is None and self._interpreter.core.state.final
        return self._detached and self._closed.wait(patience if ending else 0)

    def _keep_time(self) -> None:
        while not self._interpreter.core.state.final:
            try:
                self._workers.look_after()
                self._interpreter.tick()
            except Exception as error:  # noqa: BLE001 -- a job whose clock stands still would neither go on nor end
                _LOG.exception("job `%s`: its coordinator met an unexpected error", self._plan.name)
                self._interpreter.ask(Fail(JobFailedError(f"job `{self._plan.name}`: its coordinator failed: {shown(error)}")))
            if self._metrics is not None:
                self._optional(self._metrics.collector.update, self._clock())
            restarting = self._interpreter.core.state is JobState.RESTARTING  # the delay before the next attempt may end any moment
            self._workers.wait(TICK / 5 if restarting else TICK)
        self._close()
        if self._detached:
            self._leave(self._me)

    def _leave(self, me: Any) -> None:
        """Do a driver's work at the end of a job, give clients time to read the final state, and exit."""
        connectors: list[Source | Sink] = [*plan_sources(self._plan).values(), *plan_sinks(self._plan).values()]
        for connector in connectors:
            connector.stop()
        time.sleep(LINGER_SECONDS)
        self._memory.forget()
        ray.kill(me)

    def _close(self) -> None:
        """Let storage finish its pending effects, and end the job's processes on this machine."""
        if not self._storage.close(STORAGE_PATIENCE):
            _LOG.warning("job `%s` has ended, but its storage or a sink is still busy after %g s", self._plan.name, STORAGE_PATIENCE)
        if self._heartbeat is not None:
            self._heartbeat.close()
        with suppress(OSError, SupersededError):  # if the folder can't be reached, no other coordinator can have begun
            self._saved.stay_in_charge()
        self._saved.note_end(self._interpreter.core.end_note)
        self._workers.close()
        with self._interpreter.lock:
            metrics, self._metrics = self._metrics, None
        if metrics is not None:
            self._optional(metrics.close, self._interpreter.core.state)
        SocketFolder(self._security.job).remove()
        self._closed.set()


def _leave_at_once(why: SupersededError) -> NoReturn:
    """Exit: this process was considered lost, and another coordinator now owns the resources that it would close or remove."""
    _LOG.warning("%s", why)
    os._exit(1)
