"""The coordinator actor: deploys a job's workers, then carries out what the job's state machine decides.

Ray's threads call in, a thread of our own keeps time; one lock lets one of them at the supervisor at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from ..engine.duration import seconds
from ..engine.errors import EvenflowError, JobError
from ..engine.plan import Plan
from ..scheduler.config import JobConfig
from ..scheduler.messages import Command, InOrder, Report
from ..scheduler.metrics import OperatorLoad, WorkerFigures
from .prometheus import MetricsServer
from .security import Security
from .socket_folder import SocketFolder
from .supervisor import JobStatus, Outcome, Progress, Supervisor
from .worker import Worker

NAMESPACE = "evenflow"
TICK = 0.05
LEAVE_TIMEOUT = 5.0
"""Seconds that workers have to leave after the end of the job; a user's function that takes longer is cut off."""

_PATIENCE = 0.2


class Coordinator:
    """One per job, an actor named `JOB/coordinator`."""

    def __init__(self, plan: Plan, config: JobConfig) -> None:
        self._plan, self._config = plan, config
        self._lock = threading.RLock()
        self._supervisor = Supervisor(plan, config, self._tell)
        self._metrics: MetricsServer | None = None
        self._security = Security.generate()
        self._workers: dict[str, Any] = {}
        self._joins: dict[Any, str] = {}
        self._numbers: dict[str, int] = {}
        self._inboxes: dict[str, InOrder[Report]] = {task.name: InOrder() for task in plan.tasks}
        self._closed = threading.Event()

    def deploy(self, me: Any) -> None:
        """Start the workers and the job; `me` is this actor's handle. Raises JobError naming the workers that didn't come up."""
        try:
            self._metrics = MetricsServer(self._plan.name, self._config.metrics_port, self.figures)
            self._deploy(me)
        except Exception as error:
            with self._lock:
                self._supervisor.failed(
                    error if isinstance(error, EvenflowError) else JobError(f"job `{self._plan.name}` did not start: {error}")
                )
            self._close()
            raise
        threading.Thread(target=self._keep_time, name=f"{self._plan.name}/clock", daemon=True).start()

    def _deploy(self, me: Any) -> None:
        deadline = time.monotonic() + seconds(self._config.start_timeout)
        tasks = self._plan.tasks
        for task in tasks:
            self._workers[task.name] = self._start_actor(task.name, me)
        across_nodes = sum(node["Alive"] for node in ray.nodes()) > 1  # type: ignore[no-untyped-call]
        deployed = [self._workers[task.name].deploy.remote(task, self._config, across_nodes=across_nodes) for task in tasks]
        names = [task.name for task in tasks]
        addresses = dict(zip(names, self._await(deployed, names, deadline, "start"), strict=True))
        connected = []
        for name, worker in self._workers.items():
            channels = tuple(c for c in self._plan.channels if name in (c.sender, c.receiver))
            peers = {c.receiver: addresses[c.receiver] for c in channels}
            connected.append(worker.connect.remote(peers, channels))
        self._await(connected, names, deadline, "connect to its peers")
        self._await([w.start.remote() for w in self._workers.values()], names, deadline, "begin")
        with self._lock:
            for name, worker in self._workers.items():
                self._joins[worker.join.remote()] = name
                self._supervisor.ready(name)

    def _start_actor(self, name: str, me: Any) -> Any:
        options = {"name": f"{self._plan.name}/{name}", "namespace": NAMESPACE, "max_concurrency": 4, "num_cpus": self._config.worker_cpus}
        return ray.remote(Worker).options(scheduling_strategy="SPREAD", **options).remote(self._plan.name, 0, me, self._security)

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

    def report(self, worker: str, number: int, report: Report) -> None:
        """Report `number` of a worker; they may arrive in any order."""
        with self._lock:
            for due in self._inboxes[worker].put(number, report):
                self._supervisor.report(worker, due)

    def progress(self, seen: int) -> Progress:
        """The job's state and what the sinks deliver from number `seen` on."""
        with self._lock:
            return self._supervisor.progress(seen)

    def outcome(self, patience: float) -> Outcome:
        """Status, figures and loads once the job has ended; without the loads after `patience` seconds, for those who watch."""
        self._closed.wait(patience)
        with self._lock:
            status = self.status()
            loads = self._supervisor.loads() if status.state.final else {}
            return Outcome(status, self.figures(), loads, self._supervisor.migrations())

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
            self._supervisor.failed(error)

    def close(self) -> None:
        """Returns when all workers are gone; the job has ended or is cancelled by this."""
        self.cancel()
        self._closed.wait(LEAVE_TIMEOUT + 5)

    def _tell(self, worker: str, command: Command) -> None:
        number = self._numbers.get(worker, 0)
        self._numbers[worker] = number + 1
        if worker in self._workers:
            self._workers[worker].command.options(num_returns=0).remote(number, command)

    def _keep_time(self) -> None:
        while not self._supervisor.core.state.final:
            self._look_after_workers()
            with self._lock:
                self._supervisor.tick()
            time.sleep(TICK)
        self._close()

    def _look_after_workers(self) -> None:
        """A worker whose join has returned while the job runs is lost."""
        done, _ = ray.wait(list(self._joins), num_returns=len(self._joins), timeout=0)
        for ref in done:
            name = self._joins.pop(ref)
            try:
                ray.get(ref, timeout=1)
                why = "it left before the job ended"
            except RayActorError as error:
                why = str(error)
            with self._lock:
                self._supervisor.lost(name, why)

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
