"""Starting jobs on Ray, and finding running ones: the driver's side of the coordinator."""

from __future__ import annotations

import os
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from ..engine.duration import seconds
from ..engine.errors import EvenflowError, JobError
from ..engine.plan import Plan
from ..scheduler.config import JobConfig
from ..scheduler.job import JobState
from ..scheduler.metrics import WorkerFigures
from .coordinator import LEAVE_TIMEOUT, NAMESPACE, Coordinator
from .supervisor import JobStatus, Progress

CALL_TIMEOUT = 30.0


def start_cluster() -> None:
    """Connect to Ray: the cluster that this process or RAY_ADDRESS knows, else one on this machine, which ends with this process.

    Workers of a cluster that we start run at the normal niceness, not at Ray's 15.
    """
    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(namespace=NAMESPACE, log_to_driver=True, logging_level="WARNING", configure_logging=True)


def start_job(plan: Plan, config: JobConfig) -> RayJob:
    """Start a plan on the cluster. Raises JobError if a job of that name runs, or the workers don't come up."""
    start_cluster()
    name = f"{plan.name}/coordinator"
    try:
        coordinator = (
            ray.remote(Coordinator)
            .options(name=name, namespace=NAMESPACE, max_concurrency=16, num_cpus=0)
            .remote(plan, config)
        )
    except ValueError as error:
        raise JobError(f"a job `{plan.name}` is running: stop it with ef.connect({plan.name!r}).stop(), or give the flow another name") from error
    job = RayJob(plan.name, coordinator)
    try:
        job.call("deploy", coordinator, timeout=seconds(config.start_timeout) + CALL_TIMEOUT)
    except BaseException:
        job.close()
        raise
    return job


def find_job(name: str) -> RayJob:
    """The running job of that name. Raises JobError if there is none, naming those that run."""
    start_cluster()
    try:
        return RayJob(name, ray.get_actor(f"{name}/coordinator", namespace=NAMESPACE))
    except ValueError as error:
        actors = ray.util.list_named_actors(all_namespaces=True)
        running = [a["name"].removesuffix("/coordinator") for a in actors if a["namespace"] == NAMESPACE and a["name"].endswith("/coordinator")]
        raise JobError(f"no job `{name}` runs on this cluster; running: {', '.join(running) or 'none'}") from error


class RayJob:
    """A job on Ray, by its coordinator."""

    def __init__(self, name: str, coordinator: Any) -> None:
        self._name, self._coordinator = name, coordinator
        self._last: tuple[JobStatus, list[WorkerFigures]] | None = None

    def progress(self, seen: int) -> Progress:
        progress: Progress = self.call("progress", seen)
        return progress

    def status(self) -> JobStatus:
        status: JobStatus = self._last[0] if self._last is not None else self.call("status")
        return status

    def figures(self) -> list[WorkerFigures]:
        figures: list[WorkerFigures] = self._last[1] if self._last is not None else self.call("figures")
        return figures

    def stop(self) -> None:
        if self._last is None:
            self.call("stop")

    def cancel(self) -> None:
        if self._last is None:
            self.call("cancel")

    def fail(self, error: EvenflowError) -> None:
        if self._last is None:
            self.call("fail", error)

    def close(self) -> None:
        """End the job's actors; its last status and figures stay."""
        if self._last is not None:
            return
        try:
            self.call("close", timeout=LEAVE_TIMEOUT + CALL_TIMEOUT)
            self._last = self.call("status"), self.call("figures")
        except JobError:
            self._last = JobStatus(self._name, JobState.FAILED, None, (), 0, 0.0), []
        ray.kill(self._coordinator)

    def call(self, method: str, *args: Any, timeout: float = CALL_TIMEOUT) -> Any:
        """Call the coordinator. Raises its own errors, or JobError if it is gone or doesn't answer."""
        try:
            return ray.get(getattr(self._coordinator, method).remote(*args), timeout=timeout)
        except GetTimeoutError as error:
            raise JobError(f"job `{self._name}`: the coordinator did not answer `{method}` within {timeout:g} s") from error
        except RayActorError as error:
            raise JobError(f"job `{self._name}`: its coordinator is gone: {error}") from error
        except RayTaskError as error:
            if isinstance(error.cause, EvenflowError):
                raise error.cause from None
            raise
