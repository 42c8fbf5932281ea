"""A worker's process: an actor that its driver or its coordinator has started, and what the coordinator that it serves knows of it.

Ray can't rename an actor, so a process keeps the name that it was started with: `JOB/WORKER`, or `JOB/spare-N`.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import ActorAlreadyExistsError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ...engine.errors import ClusterError
from .worker import Service, Worker

NAMESPACE = "evenflow"

_MOST_NAMES = 1000
"""How many processes of one name there may be at a time before something must be wrong."""

_WORKER: Any = ray.remote(Worker)
"""Made once: whatever Ray is given to run it keeps for good, here and in the cluster."""


@dataclass(frozen=True, slots=True)
class WorkerActor:
    """An actor of class `Worker` with its name in Ray. `node`: where it was put. `new`: it may not have begun yet."""

    name: str
    handle: Any
    node: str
    new: bool = True


@dataclass(slots=True, eq=False)
class WorkerProcess:
    """One that serves a coordinator, with its name in Ray. `node`: where it was put, and once it has started where it is.

    `join`: a call that returns when it ends. `lent`: it is the driver's, who takes it back when the job is over. `new`: it was lent before
    it had begun, and no attempt has used it yet.
    """

    name: str
    handle: Any
    node: str
    token: str
    where: Any
    join: Any
    lent: bool
    new: bool
    begun: float = field(default_factory=time.monotonic)
    started: bool = False

    def look(self) -> bool:
        """Whether it has started; from then on `node` is by its own words."""
        if not self.started and ray.wait([self.where], timeout=0)[0]:
            with suppress(RayError):  # it was lost before it could tell
                self.node, self.started = ray.get(self.where), True
        return self.started

    @property
    def lost(self) -> bool:
        """Whether it has ended."""
        return bool(ray.wait([self.join], timeout=0)[0])

    def end(self) -> None:
        """End it at once."""
        ray.kill(self.handle)


def start_process(job: str, label: str, cpus: float, node: str) -> WorkerActor:
    """Start the actor `JOB/LABEL` on `node` and nowhere else. Raises ClusterError if there are a thousand of it.

    If the node is lost meanwhile its calls raise ActorUnschedulableError, or RayActorError if Ray still took it for alive. With a soft
    affinity Ray would put the actor on another node; but then it puts one that sets nothing aside on any node at all.

    While an actor has the name, the new one is `JOB/LABEL~2`, and so on: the one before may end slowly, or work for another job now.
    """
    for number in range(1, _MOST_NAMES):
        name = f"{job}/{label}" if number == 1 else f"{job}/{label}~{number}"
        options = _WORKER.options(
            name=name,
            namespace=NAMESPACE,
            max_concurrency=4,
            num_cpus=cpus,
            enable_task_events=False,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        with suppress(ActorAlreadyExistsError):
            return WorkerActor(name, options.remote(job), node)
    raise ClusterError(f"job `{job}`: {_MOST_NAMES} processes have the name {label}")


def engage(process: WorkerActor, service: Service, *, lent: bool) -> WorkerProcess:
    """Let a process serve this coordinator."""
    process.handle.serve.options(num_returns=0).remote(service)
    where, join = process.handle.where.remote(service.token), process.handle.join.remote(service.token)
    return WorkerProcess(process.name, process.handle, process.node, service.token, where, join, lent, lent and process.new)
