"""A worker's process: an actor that its driver or its coordinator has started, the coordinator's knowledge of it, and why it ended.

Ray can't rename an actor, so a process keeps the name that it was started with: `JOB/WORKER`, or `JOB/spare-N`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import ActorAlreadyExistsError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ...engine.errors import ClusterError
from ...engine.plan.resources import CPU, GPU, MEMORY
from ...scheduler.policies.nodes.placement import Need
from .worker import Service, Worker

NAMESPACE = "evenflow"

LEAVE_TIMEOUT = 5.0
"""Seconds that workers have to leave after the end of the job; a user's function that takes longer is cut off."""

STORAGE_PATIENCE = 10.0
"""Seconds that storage has, once the job has ended, to carry out pending effects."""

_MOST_NAMES = 1000
"""The number of concurrent processes of one name that indicates an error."""

_WORKER: Any = ray.remote(Worker)
"""Created once, because Ray keeps every actor class that it is given for ever, here and in the cluster."""


UNEXPECTED = "a function of yours called os._exit, a library crashed, or the system killed it, perhaps because memory ran out"

IMPORTS = (
    "; what a flow's functions import must be on the Python path of all workers: install it there, "
    "or begin with ray.init(runtime_env={'working_dir': ...})"
)

_EXIT_CODE = re.compile(r"exit(?:ed with)? code[ =:]+(-?\d+)")
_ABOUT_THE_ACTOR = re.compile(r"\s*(The actor (died|experienced) .*|class_name|actor_id|pid|name|namespace|ip)(: .*)?")


@dataclass(frozen=True, slots=True)
class WorkerActor:
    """An actor of class `Worker` with its name in Ray. `node`: where it was placed. `need`: what Ray reserves for it. `new`: it may not
    have begun yet.
    """

    name: str
    handle: Any
    node: str
    need: Need
    new: bool = True


@dataclass(slots=True, eq=False)
class WorkerProcess:
    """A process that serves a coordinator, with its name in Ray. `node`: where it was placed, and once it has started where it
    is.

    `join`: a call that returns when it ends. `lent`: it belongs to the driver, which takes it back when the job is over. `new`:
    it was lent before it had begun, and no attempt has used it yet. `need`: what Ray reserves for it.
    """

    name: str
    handle: Any
    node: str
    need: Need
    token: str
    where: Any
    join: Any
    lent: bool
    new: bool
    begun: float = field(default_factory=time.monotonic)
    started: bool = False

    def look(self) -> bool:
        """Return True if it has started; `node` is then reported by the process."""
        if not self.started and ray.wait([self.where], timeout=0)[0]:
            with suppress(RayError):  # it was lost before it could report
                self.node, self.started = ray.get(self.where), True
        return self.started

    @property
    def lost(self) -> bool:
        """True if it has ended."""
        return bool(ray.wait([self.join], timeout=0)[0])

    def end(self) -> None:
        """End it at once."""
        ray.kill(self.handle)


def start_process(job: str, label: str, need: Need, node: str, environment: Mapping[str, Any] | None = None) -> WorkerActor:
    """Start the actor `JOB/LABEL` on exactly this `node`. Raises ClusterError if there are a thousand of it.

    If the node is lost meanwhile, its calls raise ActorUnschedulableError, or RayActorError if Ray still considered it alive.
    With a soft affinity Ray would place the actor on another node; but then it places one that reserves no resources on any node
    at all. `environment`: its `runtime_env`, None for that of this process.

    While an actor has the name, the new one is `JOB/LABEL~2`, and so on: the previous one may end slowly, or work for another
    job.
    """
    for number in range(1, _MOST_NAMES):
        name = f"{job}/{label}" if number == 1 else f"{job}/{label}~{number}"
        options = _WORKER.options(
            name=name,
            namespace=NAMESPACE,
            max_concurrency=4,
            num_cpus=need.get(CPU, 0.0),
            num_gpus=need.get(GPU, 0.0),
            memory=int(need.get(MEMORY, 0.0)) or None,
            resources={name: amount for name, amount in need.items() if name not in (CPU, GPU, MEMORY)},
            enable_task_events=False,
            runtime_env=None if environment is None else dict(environment),
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        with suppress(ActorAlreadyExistsError):
            return WorkerActor(name, options.remote(job), node, need)
    raise ClusterError(f"job `{job}`: {_MOST_NAMES} processes have the name {label}")


def engage(process: WorkerActor, service: Service, *, lent: bool) -> WorkerProcess:
    """Let a process serve this coordinator."""
    process.handle.serve.options(num_returns=0).remote(service)
    where, join = process.handle.where.remote(service.token), process.handle.join.remote(service.token)
    return WorkerProcess(process.name, process.handle, process.node, process.need, service.token, where, join, lent, lent and process.new)


def why_ended(error: RayActorError) -> str:
    """Return the cause, without Ray's description of the actor, its advice, and tracebacks that only passed the error on."""
    text = str(error).strip()
    if error.actor_init_failed:
        last = text.splitlines()[-1]
        return f"its process could not start: {last}{IMPORTS if last.startswith(('ModuleNotFoundError', 'ImportError')) else ''}"
    if "Worker exit type: SYSTEM_ERROR" in text:
        code = _EXIT_CODE.search(text)
        return f"its process ended unexpectedly{f' with exit code {code[1]}' if code is not None else ''}: {UNEXPECTED}"
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _ABOUT_THE_ACTOR.fullmatch(line)]
    return lines[0] if lines else text.splitlines()[0]
