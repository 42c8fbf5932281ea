"""The coordinator actor: deploys a job's workers, then carries out what the job's state machine decides.

Ray's threads call in, a thread of our own keeps time; one lock lets one of them at the supervisor at a time.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

import ray
from ray.exceptions import RayActorError

from ..engine.errors import JobFailedError
from ..engine.plan.physical import Plan
from ..engine.sink import Sink
from ..engine.source import Source
from ..engine.time.duration import seconds
from ..scheduler.config import JobConfig
from ..scheduler.job_effects import JobState, Redeploy, Retire, Spawn
from ..scheduler.messages import Attach, Command, InOrder, Report
from ..scheduler.metrics import OperatorLoad, WorkerFigures
from ..state.errors import EvenflowError
from .beginning import Savepoint
from .cluster_memory import ClusterMemory
from .deployment import Deployment
from .ended import why_ended
from .pings import Pings
from .placement import ROOM_PATIENCE
from .process import WorkerProcess
from .prometheus import MetricsServer
from .saved_state import SupersededError
from .security import Security
from .sent import received
from .socket_folder import SocketFolder
from .staff import Staff
from .supervisor import JobStatus, Outcome, Progress, Supervisor, plan_sinks, plan_sources
from .titles import entitle

_LOG = logging.getLogger(__name__)

TICK = 0.05
TRY_AGAIN = 1.0
"""Seconds that a coordinator waits before it has itself made anew once more."""

LEAVE_TIMEOUT = 5.0
"""Seconds that workers have to leave after the end of the job; a user's function that takes longer is cut off."""

LINGER_SECONDS = 60.0
"""How long the coordinator of a detached job stays when that is over: who watches asks every ten seconds."""


class Coordinator:
    """One per job, an actor named `JOB/coordinator`. `run`: names this run of it. `savepoint`: where a job begins that goes on from one.

    `detached`: nobody else ends this actor, nor the sinks, when the job is over.
    """

    def __init__(self, plan: Plan, config: JobConfig, run: str, savepoint: Savepoint | None = None, detached: bool = False) -> None:
        self._plan, self._config, self._detached = plan, config, detached
        self._lock = threading.RLock()
        self._redeploy: tuple[float, Redeploy] | None = None
        self._metrics: MetricsServer | None = None
        self._security = Security.generate(run)
        self._joins: dict[Any, str] = {}
        self._pings = Pings(seconds(config.worker.heartbeat_timeout))
        self._spawning: Spawn | None = None
        self._tasks: Any = None
        self._numbers: dict[str, int] = {}
        self._inboxes: dict[str, InOrder[Report]] = {}
        self._closed = threading.Event()
        entitle(self, plan.name, "coordinator")
        self._incarnation = uuid.uuid4().hex
        self._staff = Staff(plan.name, config, self._security, self._lock, self._warm)
        self._deployment = Deployment(plan.name, config, self._staff, self._check_running)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray's own, about a method that it calls itself
            again = ray.get_runtime_context().was_current_actor_reconstructed
        self._memory = ClusterMemory(run)
        self._made: Supervisor | EvenflowError
        try:
            self._made = Supervisor(
                plan, config, self._tell, self._carry,
                savepoint=savepoint, run=run, resume=again, memory=self._memory, cluster=self._staff, leave=_leave_at_once,
            )  # fmt: skip
        except EvenflowError as error:
            if again:
                raise
            self._made = error
        except OSError as error:
            if again:
                _try_again(error)
            raise
        if again:
            self._staff.coordinator = ray.get_runtime_context().current_actor
            self._supervisor.redeploy()
            threading.Thread(target=self._begin_again, name=f"{plan.name}/clock", daemon=True).start()

    @property
    def _supervisor(self) -> Supervisor:
        """Raises why the job can't begin, if it can't: what an actor's `__init__` raises would arrive as a text of Ray's."""
        if isinstance(self._made, EvenflowError):
            raise self._made
        return self._made

    def deploy(self, me: Any) -> None:
        """Start the workers and the job; `me` is this actor's handle. Raises JobError naming the workers that didn't come up.

        A job that has ended meanwhile, by what its first workers met, has started: its outcome tells.
        """
        self._staff.coordinator, first = me, self._supervisor.first()
        try:
            self._open_metrics()
            self._deploy(first)
        except Exception as error:
            with self._lock:
                ends = self._supervisor.not_started(error)
            if ends:
                self._close()
                raise
        threading.Thread(target=self._keep_time, name=f"{self._plan.name}/clock", daemon=True).start()

    def _begin_again(self) -> None:
        """The process of this actor was lost, and Ray made a new one: the workers are gone with the old one."""
        self._open_metrics()
        self._keep_time()

    def _open_metrics(self) -> None:
        self._metrics = MetricsServer(self._plan.name, self._config.metrics.port, self.figures)

    def _deploy(self, wanted: Redeploy) -> None:
        """Bring every task of the plan up in attempt `wanted.attempt`, in the processes there are and others for those that are gone."""
        deployment, staff, attempt = self._deployment, self._staff, wanted.attempt
        deadline = deployment.deadline()
        names = [task.name for task in wanted.plan.tasks]
        with self._lock:
            if not self._supervisor.recommit(wanted):
                return
        restored = self._supervisor.saved.restored(wanted.manifest, wanted.plan)
        deployment.begin_attempt()
        self._forget(staff.end_unusable(frozenset(names)))
        deployment.hire(names, deadline)
        deployment.bring_up(attempt, wanted.plan, names, restored, deadline)
        with self._lock:
            if attempt != self._supervisor.core.attempt:
                return
            self._numbers, self._inboxes = {}, {}
        deployment.start(attempt, names, deadline)
        with self._lock:
            self._watch(names)
            for name in names:
                self._supervisor.ready(name, attempt)

    def _watch(self, names: Sequence[str]) -> None:
        """From now on the end of these is a loss."""
        processes = self._staff.processes
        self._joins.update({processes[name].join: name for name in names if name in processes})

    def _forget(self, names: Sequence[str]) -> None:
        """These processes are nobody's loss any more."""
        self._joins = {ref: name for ref, name in self._joins.items() if name not in names}
        for name in names:
            self._pings.forget(name)

    def _warm(self, spare: WorkerProcess) -> None:
        """Let a spare load now what a task of the job needs."""
        if self._tasks is None:
            self._tasks = ray.put([task for task in self._plan.tasks if task.index == 0])
        spare.handle.warm.remote(self._tasks)

    def _carry(self, wanted: Redeploy | Spawn | Retire) -> None:
        """Called under the lock: what takes time is done elsewhere."""
        if isinstance(wanted, Redeploy):
            self._redeploy = (time.monotonic() + wanted.delay, wanted)
        elif isinstance(wanted, Spawn):
            attempt, self._spawning = self._supervisor.core.attempt, wanted
            for name in wanted.workers:
                self._numbers.pop(name, None)
                self._inboxes.pop(name, None)
            threading.Thread(target=self._spawn, args=(wanted, attempt), name=f"{self._plan.name}/spawn", daemon=True).start()
        else:
            joins = [ref for ref, name in self._joins.items() if name in wanted.workers]
            self._forget(wanted.workers)
            processes = self._staff.let_go(wanted.workers)
            threading.Thread(target=self._retire, args=(processes, joins), name=f"{self._plan.name}/retire", daemon=True).start()

    def _spawn(self, wanted: Spawn, attempt: int) -> None:
        """Start workers beside those that run, and tell the job when they have."""
        deployment, names = self._deployment, wanted.workers

        def check() -> None:
            if self._spawning is not wanted or attempt != self._supervisor.core.attempt:
                raise JobFailedError("the job went back to its last checkpoint")

        try:
            deadline = deployment.deadline()
            deployment.reach_others(deadline)
            self._staff.hire(names, deadline, min(deadline, time.monotonic() + ROOM_PATIENCE), check)
            deployment.bring_up(attempt, wanted.plan, names, {}, deadline)
            deployment.start(attempt, names, deadline)
        except Exception as error:  # noqa: BLE001 -- the job runs on without them, and says why
            with self._lock:
                if self._spawning is wanted and attempt == self._supervisor.core.attempt:
                    self._supervisor.not_spawned(str(error))
            return
        with self._lock:
            if attempt == self._supervisor.core.attempt:
                self._watch(names)
                for name in names:
                    self._supervisor.ready(name, attempt)

    def _check_running(self) -> None:
        """Raises JobError if the job has ended otherwise than by itself, which a short stream may before all know that they have begun."""
        core = self._supervisor.core
        if core.state.final and core.state is not JobState.FINISHED:
            raise core.error or JobFailedError(f"job `{self._plan.name}` was cancelled while it started")

    def _retire(self, processes: Sequence[WorkerProcess], joins: list[Any]) -> None:
        """End workers that have left; they get a moment to close what they have."""
        if joins:
            ray.wait(joins, num_returns=len(joins), timeout=LEAVE_TIMEOUT)
        for process in processes:
            process.end()

    def _deploy_due(self) -> None:
        """Carry out the newest redeployment once its delay is over."""
        with self._lock:
            if self._redeploy is None or time.monotonic() < self._redeploy[0]:
                return
            wanted, self._redeploy = self._redeploy[1], None
        try:
            self._deploy(wanted)
        except Exception as error:  # noqa: BLE001 -- whatever goes wrong with an attempt, the next one or the job's end follows
            with self._lock:
                if wanted.attempt == self._supervisor.core.attempt:
                    self._supervisor.failed(
                        error if isinstance(error, EvenflowError) else JobFailedError(f"{type(error).__name__}: {error}")
                    )

    def report(self, packed: bytes) -> None:
        """A worker, its attempt, and a numbered report; these may arrive in any order. Those of an attempt that is over are dropped."""
        worker, attempt, number, report = received(packed)
        with self._lock:
            if attempt == self._supervisor.core.attempt:
                for due in self._inboxes.setdefault(worker, InOrder()).put(number, report):
                    if attempt == self._supervisor.core.attempt:
                        self._supervisor.report(worker, due)

    def progress(self, seen: int, incarnation: str) -> Progress:
        """The job's state and what the sinks deliver from number `seen` of `incarnation` on; all of it, if that was another."""
        with self._lock:
            return replace(self._supervisor.progress(seen if incarnation == self._incarnation else 0), incarnation=self._incarnation)

    def outcome(self, patience: float) -> Outcome:
        """All that stays once the job has ended; status and figures alone after `patience` seconds, for those who watch."""
        self._closed.wait(patience)
        with self._lock:
            status = self.status()
            if not status.state.final:
                return Outcome(status, self.figures())
            return Outcome(status, self.figures(), self._supervisor.loads(), self._supervisor.answers())

    def status(self) -> JobStatus:
        """What `job.status()` shows."""
        with self._lock:
            status, url = self._supervisor.status(), self._metrics.url if self._metrics is not None else None
            return replace(status, metrics_url=url, places=self._staff.places(), spares=self._staff.spares.ready)

    def figures(self) -> list[WorkerFigures]:
        """What `job.metrics()` shows."""
        with self._lock:
            return self._supervisor.figures()

    def load(self, operator: str, windows: int) -> OperatorLoad:
        """What `job.load()` shows."""
        with self._lock:
            return self._supervisor.load(operator, windows)

    def ask(self, question: str, *arguments: Any) -> Any:
        """A method of the supervisor: what `Job` offers beyond status, figures and load."""
        with self._lock:
            return getattr(self._supervisor, question)(*arguments)

    def stop(self) -> None:
        """Let the sources end."""
        with self._lock:
            self._supervisor.stop()

    def cancel(self) -> None:
        """End at once."""
        with self._lock:
            self._supervisor.cancel()

    def fail(self, error: EvenflowError) -> None:
        """Something outside the workers failed."""
        with self._lock:
            self._supervisor.abort(error)

    def close(self) -> None:
        """Returns when all workers are gone; the job has ended or is cancelled by this."""
        self.cancel()
        self._closed.wait(LEAVE_TIMEOUT + 5)
        self._memory.forget()

    def _tell(self, worker: str, command: Command) -> None:
        number = self._numbers.get(worker, 0)
        self._numbers[worker] = number + 1
        handle = self._staff.handle(worker)
        if handle is not None:
            if isinstance(command, Attach):
                addresses = self._deployment.addresses
                command = replace(command, addresses={c.receiver: addresses[c.receiver] for c in command.connect})
            handle.command.options(num_returns=0).remote(self._supervisor.core.attempt, number, command)

    def _keep_time(self) -> None:
        while not self._supervisor.core.state.final:
            self._deploy_due()
            self._look_after_workers()
            if self._supervisor.core.state is JobState.RUNNING:  # while workers start, a spare would only be in their way
                self._staff.tick()
            with self._lock:
                self._supervisor.tick()
            time.sleep(TICK)
        with self._lock, suppress(OSError):  # where the folder is out of reach, nobody can have begun
            self._supervisor.saved.stay_in_charge()
        self._close()
        if self._detached:
            self._leave()

    def lingers(self) -> bool:
        """Whether the job is over, and this actor there only to tell how it ended."""
        return self._detached and self._closed.is_set()

    def _leave(self) -> None:
        """Do what a driver does when its job is over, let those who watch hear of it, and go."""
        connectors: list[Source | Sink] = [*plan_sources(self._plan).values(), *plan_sinks(self._plan).values()]
        for connector in connectors:
            connector.stop()
        time.sleep(LINGER_SECONDS)
        self._memory.forget()
        ray.kill(self._staff.coordinator)

    def _look_after_workers(self) -> None:
        """A worker whose join has returned while the job runs is lost, and so is one that doesn't answer for `heartbeat_timeout`."""
        with self._lock:  # a worker that leaves is told so and taken out of `_joins` at one time
            done, _ = ray.wait(list(self._joins), num_returns=len(self._joins), timeout=0) if self._joins else ([], [])
            lost = {}
            for ref in done:
                name = self._joins.pop(ref)
                try:
                    ray.get(ref, timeout=1)
                    lost[name] = "it left before the job ended"
                except RayActorError as error:
                    lost[name] = why_ended(error)
            watched = set(self._joins.values())  # one that starts is not silent yet
            lost |= self._pings.silent({name: process.handle for name, process in self._staff.processes.items() if name in watched})
            for name, why in lost.items():
                if self._redeploy is None:  # an attempt that has yet to begin makes a new process for it: it is one accident, not several
                    self._supervisor.lost(name, why)
                self._forget([name])
                for process in self._staff.let_go([name]):
                    process.end()

    def _close(self) -> None:
        """Wait until the workers have left, end those that don't, and take down what the job has on this machine."""
        if self._joins:
            ray.wait(list(self._joins), num_returns=len(self._joins), timeout=LEAVE_TIMEOUT)
        self._staff.close()
        with self._lock:
            metrics, self._metrics = self._metrics, None
        if metrics is not None:
            metrics.close()
        SocketFolder(self._security.job).remove()
        self._closed.set()


def _leave_at_once(why: SupersededError) -> NoReturn:
    """This process was taken for lost, and Ray made another coordinator: what is left here to be closed or removed is that one's now."""
    _LOG.warning("%s", why)
    os._exit(1)


def _try_again(why: OSError) -> NoReturn:
    """The folder of the checkpoints is full or out of reach: Ray makes this actor anew as long as its process is lost, not if it raises."""
    _LOG.warning("the coordinator can't go on where the one before it was lost, and tries again: %s", why)
    time.sleep(TRY_AGAIN)
    os._exit(1)
