"""A process of a job: a worker actor with what its coordinator knows of it, whether it has a task or waits for one.

Ray can't rename an actor, so a process keeps the name that it was started with, its `label`: that of its first task, or `spare-N`.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ..channels.security import Security
from .worker import Worker

NAMESPACE = "evenflow"

_WORKER: Any = ray.remote(Worker)
"""Made once: whatever Ray is given to run it keeps for good, here and in the cluster."""


@dataclass(slots=True, eq=False)
class WorkerProcess:
    """`node`: where it was put, and once it has started where it is. `join`: a call that returns when it ends."""

    label: str
    handle: Any
    node: str
    where: Any
    join: Any
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


def start_process(job: str, label: str, coordinator: Any, security: Security, cpus: float, node: str) -> WorkerProcess:
    """Start the actor `JOB/LABEL` on `node`, or on another if that is lost meanwhile. Raises ValueError if that name is taken."""
    handle: Any = _WORKER.options(
        name=f"{job}/{label}",
        namespace=NAMESPACE,
        max_concurrency=4,
        num_cpus=cpus,
        enable_task_events=False,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=True),
    ).remote(job, coordinator, security)
    return WorkerProcess(label, handle, node, handle.where.remote(), handle.join.remote())
