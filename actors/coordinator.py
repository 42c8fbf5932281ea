"""The coordinator actor: deploys a job's workers, then carries out what the job's state machine decides.

Ray's threads call in, a thread of our own keeps time; one lock lets one of them at the supervisor at a time.
"""

from __future__ import annotations

import threading
import time
import uuid
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from ..engine.duration import seconds
from ..engine.errors import EvenflowError, JobError
from ..engine.plan import Plan
from ..scheduler.config import JobConfig
from ..scheduler.job import Redeploy, Retire, Spawn
from ..scheduler.messages import Attach, Command, InOrder, Report
from ..scheduler.metrics import OperatorLoad, WorkerFigures
from .address import Address
from .pings import Pings
from .prometheus import MetricsServer
from .security import Security
from .socket_folder import SocketFolder
from .supervisor import JobStatus, Outcome, Progress, Savepoint, Supervisor
from .worker import Worker

NAMESPACE = "evenflow"
TICK = 0.05
LEAVE_TIMEOUT = 5.0
"""Seconds that workers have to leave after the end of the job; a user's function that takes longer is cut off."""

PING_PATIENCE = 2.0
"""Seconds that a worker has to answer before an attempt does without it."""

_PATIENCE = 0.2


class Coordinator:
    """One per job, an actor named `JOB/coordinator`. `run`: names this run of it. `savepoint`: where a job begins that goes on from one."""

    def __init__(self, plan: Plan, config: JobConfig, run: str, savepoint: Savepoint | None = None) -> None:
        self._plan, self._config = plan, config
        self._lock = threading.RLock()
        self._redeploy: tuple[float, Redeploy] | None = None
        self._addresses: dict[str, Address] = {}
        self._metrics: MetricsServer | None = None
        self._security = Security.generate(run)
        self._workers: dict[str, Any] = {}
        self._joins: dict[Any, str] = {}
        self._pings = Pings(seconds(config.heartbeat_timeout))
        self._numbers: dict[str, int] = {}
        self._inboxes: dict[str, InOrder[Report]] = {}
        self._closed = threading.Event()
        self._incarnation = uuid.uuid4().hex
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray's own, about a method that it calls itself
            again = ray.get_runtime_context().was_current_actor_reconstructed
        self._supervisor = Supervisor(plan, config, self._tell, self._carry, savepoint=savepoint, run=run, resume=again)
        if again:
            self._me = ray.get_runtime_context().current_actor
            self._supervisor.redeploy()
            threading.Thread(target=self._begin_again, name=f"{plan.name}/clock", daemon=True).start()

    def deploy(self, me: Any) -> None:
        """Start the workers and the job; `me` is this actor's handle. Raises JobError naming the workers that didn't come up."""
        self._me = me
        try:
            self._open_metrics()
            self._deploy(self._supervisor.first())
        except Exception as error:
            with self._lock:
                self._supervisor.abort(
                    error if isinstance(error, EvenflowError) else JobError(f"job `{self._plan.name}` did not start: {error}")
                )
            self._close()
            raise
        threading.Thread(target=self._keep_time, name=f"{self._plan.name}/clock", daemon=True).start()

    def _begin_again(self) -> None:
        """The process of this actor was lost, and Ray made a new one: the workers are gone with the old one."""
        self._open_metrics()
        self._keep_time()

    def _open_metrics(self) -> None:
        self._metrics = MetricsServer(self._plan.name, self._config.metrics_port, self.figures)

    def _deploy(self, wanted: Redeploy) -> None:
        """Bring every task of the plan up in attempt `wanted.attempt`, in the processes there are and new ones for those that are gone."""
        deadline = time.monotonic() + seconds(self._config.start_timeout)
        tasks, attempt = wanted.plan.tasks, wanted.attempt
        names = [task.name for task in tasks]
        with self._lock:
            if not self._supervisor.recommit(wanted):
                return
        restored = self._supervisor.saved.restored(wanted.manifest, wanted.plan)
        self._end_unusable(frozenset(names))
        for name in names:
            if name not in self._workers:
                self._workers[name] = self._start_actor(name, deadline)
        across_nodes = sum(node["Alive"] for node in ray.nodes()) > 1  # type: ignore[no-untyped-call]
        deployed = [
            self._workers[t.name].deploy.remote(attempt, t, self._config, restored.get(t.name), across_nodes=across_nodes) for t in tasks
        ]
        addresses = self._addresses = dict(zip(names, self._await(deployed, names, deadline, "start"), strict=True))
        connected = []
        for name in names:
            channels = tuple(c for c in wanted.plan.channels if name in (c.sender, c.receiver))
            peers = {c.receiver: addresses[c.receiver] for c in channels}
            connected.append(self._workers[name].connect.remote(peers, channels))
        self._await(connected, names, deadline, "connect to its peers")
        with self._lock:
            if attempt != self._supervisor.core.attempt:
                return
            self._numbers, self._inboxes = {}, {}
        self._await([self._workers[name].start.remote() for name in names], names, deadline, "begin")
        watched = set(self._joins.values())
        with self._lock:
            for name in names:
                if name not in watched:
                    self._joins[self._workers[name].join.remote()] = name
                self._supervisor.ready(name, attempt)

    def _end_unusable(self, wanted: frozenset[str]) -> None:
        """End the workers that don't answer, and those that the plan has no task for any more."""
        pings = {name: worker.ping.remote() for name, worker in self._workers.items() if name in wanted}
        ray.wait(list(pings.values()), num_returns=max(1, len(pings)), timeout=PING_PATIENCE) if pings else None
        for name in list(self._workers):
            if name not in wanted or not _answered(pings[name]):
                self._forget(name)

    def _forget(self, name: str) -> None:
        """End a worker's process and let go of it."""
        ray.kill(self._workers.pop(name))
        self._joins = {ref: other for ref, other in self._joins.items() if other != name}
        self._pings.forget(name)

    def _start_actor(self, name: str, deadline: float) -> Any:
        """A new process for the worker. Ray takes a moment to free the name of one that was lost."""
        options = {"name": f"{self._plan.name}/{name}", "namespace": NAMESPACE, "max_concurrency": 4, "num_cpus": self._config.worker_cpus}
        make = ray.remote(Worker).options(scheduling_strategy="SPREAD", **options)
        while True:
            try:
                return make.remote(self._plan.name, self._me, self._security)
            except ValueError as error:
                if time.monotonic() > deadline:
                    raise JobError(f"job `{self._plan.name}`: the name of worker {name} is still taken: {error}") from error
                time.sleep(_PATIENCE)

    def _carry(self, wanted: Redeploy | Spawn | Retire) -> None:
        """Called under the lock: what takes time is done elsewhere."""
        if isinstance(wanted, Redeploy):
            self._redeploy = (time.monotonic() + wanted.delay, wanted)
        elif isinstance(wanted, Spawn):
            attempt = self._supervisor.core.attempt
            for name in wanted.workers:
                self._numbers.pop(name, None)
                self._inboxes.pop(name, None)
            threading.Thread(target=self._spawn, args=(wanted, attempt), name=f"{self._plan.name}/spawn", daemon=True).start()
        else:
            joins = [ref for ref, name in self._joins.items() if name in wanted.workers]
            self._joins = {ref: name for ref, name in self._joins.items() if name not in wanted.workers}
            workers = [self._workers.pop(name) for name in wanted.workers if name in self._workers]
            for name in wanted.workers:
                self._pings.forget(name)
            threading.Thread(target=self._retire, args=(workers, joins), name=f"{self._plan.name}/retire", daemon=True).start()

    def _spawn(self, wanted: Spawn, attempt: int) -> None:
        """Start workers beside those that run, and tell the job when they have."""
        try:
            started = self._join(wanted, attempt)
        except Exception as error:  # noqa: BLE001 -- the job runs on without them, and says why
            with self._lock:
                self._supervisor.not_spawned(str(error))
            return
        with self._lock:
            if attempt == self._supervisor.core.attempt:
                self._joins.update(started)
                for name in wanted.workers:
                    self._supervisor.ready(name, attempt)

    def _join(self, wanted: Spawn, attempt: int) -> dict[Any, str]:
        """Their `join` calls, by which their ends are noticed."""
        deadline = time.monotonic() + seconds(self._config.start_timeout)
        tasks = {task.name: task for task in wanted.plan.tasks}
        names = list(wanted.workers)
        workers = {name: self._start_actor(name, deadline) for name in names}
        with self._lock:
            self._workers.update(workers)
        across_nodes = sum(node["Alive"] for node in ray.nodes()) > 1  # type: ignore[no-untyped-call]
        deployed = [workers[n].deploy.remote(attempt, tasks[n], self._config, None, across_nodes=across_nodes) for n in names]
        self._addresses.update(zip(names, self._await(deployed, names, deadline, "start"), strict=True))
        connected = []
        for name in names:
            channels = tuple(c for c in wanted.plan.channels if name in (c.sender, c.receiver))
            connected.append(workers[name].connect.remote({c.receiver: self._addresses[c.receiver] for c in channels}, channels))
        self._await(connected, names, deadline, "connect to its peers")
        self._await([workers[name].start.remote() for name in names], names, deadline, "begin")
        return {workers[name].join.remote(): name for name in names}

    def _retire(self, workers: Sequence[Any], joins: list[Any]) -> None:
        """End workers that have left; they get a moment to close what they have."""
        if joins:
            ray.wait(joins, num_returns=len(joins), timeout=LEAVE_TIMEOUT)
        for worker in workers:
            ray.kill(worker)

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
                    self._supervisor.failed(error if isinstance(error, EvenflowError) else JobError(f"{type(error).__name__}: {error}"))

    def _await(self, refs: Sequence[Any], names: Sequence[str], deadline: float, what: str) -> list[Any]:
        """What the workers answer. Raises JobError for those that don't by the deadline, and as soon as the job has ended."""
        waiting: list[Any] = list(refs)
        try:
            while waiting:
                done, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=_PATIENCE)
                ray.get(done)
                if self._supervisor.core.state.final:
                    raise self._supervisor.core.error or JobError(f"job `{self._plan.name}` was cancelled while it started")
                if waiting and time.monotonic() > deadline:
                    missing = ", ".join(name for name, ref in zip(names, refs, strict=True) if ref in waiting)
                    raise JobError(
                        f"job `{self._plan.name}`: {missing} did not {what} within {self._config.start_timeout}; "
                        "is there room in the cluster (`ray status`)? JobConfig(start_timeout=...) sets the bound"
                    )
            return list(ray.get(list(refs)))
        except RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, EvenflowError):
                raise cause from None
            raise JobError(f"job `{self._plan.name}`: a worker did not {what}: {error}") from error

    def report(self, worker: str, attempt: int, number: int, report: Report) -> None:
        """Report `number` of a worker in `attempt`; they may arrive in any order. Those of an attempt that is over are dropped."""
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
            return replace(self._supervisor.status(), metrics_url=self._metrics.url if self._metrics is not None else None)

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

    def _tell(self, worker: str, command: Command) -> None:
        number = self._numbers.get(worker, 0)
        self._numbers[worker] = number + 1
        if worker in self._workers:
            if isinstance(command, Attach):
                command = replace(command, addresses={c.receiver: self._addresses[c.receiver] for c in command.connect})
            self._workers[worker].command.options(num_returns=0).remote(self._supervisor.core.attempt, number, command)

    def _keep_time(self) -> None:
        while not self._supervisor.core.state.final:
            self._deploy_due()
            self._look_after_workers()
            with self._lock:
                self._supervisor.tick()
            time.sleep(TICK)
        self._close()

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
                    lost[name] = str(error)
            lost |= self._pings.silent(self._workers)
            for name, why in lost.items():
                if self._redeploy is None:  # an attempt that has yet to begin makes a new process for it: it is one accident, not several
                    self._supervisor.lost(name, why)
                if name in self._workers:
                    self._forget(name)

    def _close(self) -> None:
        """Wait until the workers have left, end those that don't, and take down what the job has on this machine."""
        if self._joins:
            ray.wait(list(self._joins), num_returns=len(self._joins), timeout=LEAVE_TIMEOUT)
        for worker in self._workers.values():
            ray.kill(worker)
        with self._lock:
            metrics, self._metrics = self._metrics, None
        if metrics is not None:
            metrics.close()
        SocketFolder(self._security.job).remove()
        self._closed.set()


def _answered(ref: Any) -> bool:
    """Whether a worker says that it can be used."""
    try:
        ray.get(ref, timeout=0)
    except RayError:
        return False
    return True
