"""The worker processes of a driver: it starts those of its jobs' first workers, in parallel with the coordinator, and keeps them
for its next job.

Starting a process takes seconds of processor time. Those that a coordinator starts, for scaling and to replace lost ones, end
with it. Invariant: a process is lent to one job, or idle, or ended.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.client import ray as ray_client

from ...engine.plan.physical import Plan
from ...engine.plan.resources import names_besides_cpus
from ...engine.protocol.ids import WorkerId
from ...engine.time.duration import seconds
from ...scheduler.configs.worker import WorkerConfig
from ...scheduler.policies.nodes.placement import place
from ..processes.placement import cluster_nodes
from ..processes.process import WorkerActor, start_process

REST_PATIENCE = 0.5
"""Seconds that a process which is ending its last run has to be ready for the next job, before that starts another."""

LOOK_SECONDS = 1.0
"""Seconds between two checks for processes that have waited long enough."""

WATCHER = "evenflow-kept-processes"
"""The name of the thread that ends them in time."""


@dataclass(frozen=True, slots=True)
class _Idle:
    """An idle process. `rested`: a call that returns when it has ended its last run. `until`: its end by the monotonic clock."""

    process: WorkerActor
    rested: Any
    until: float


class DriverWorkers:
    """The processes of one driver. Its methods may be called by any thread of a process that is connected to Ray."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []
        self._watched, self._closed = False, False
        self._cluster = ""
        atexit.register(self._close)

    def lend(self, plan: Plan, config: WorkerConfig) -> dict[WorkerId, WorkerActor]:
        """Lend a process to each worker of the plan without resources of its own: an idle one, if such are kept, or a new one.

        Lends none if CPUs are reserved for them: the coordinator waits for these, and reports if there are none. Nor for a driver
        that is a Ray Client: it is not on the cluster, and knows too little of it.
        """
        if config.reserved or ray_client.is_connected():  # type: ignore[no-untyped-call]
            return {}
        workers = [task.name for task in plan.tasks if task.stage not in plan.resources]
        with self._lock:
            self._look()
            there = cluster_nodes((), names_besides_cpus(plan.resources.values()))
            nodes = place(there, [{}] * len(workers), config.placement)
            lent = self._take(plan.name, dict(zip(workers, nodes, strict=True))) if seconds(config.keep) else {}
        try:
            for worker, node in zip(workers, nodes, strict=True):
                if worker not in lent:
                    lent[worker] = start_process(plan.name, worker, {}, node)
        except BaseException:  # including Ctrl-C: no job will return these
            self.take_back(lent.values(), config)
            raise
        return lent

    def take_back(self, processes: Iterable[WorkerActor], config: WorkerConfig) -> None:
        """Keep the processes of a finished job for a while, or end them."""
        if not seconds(config.keep):
            for process in processes:
                ray.kill(process.handle)
            return
        with self._lock:
            until = time.monotonic() + seconds(config.keep)
            self._idle += [_Idle(replace(process, new=False), process.handle.rest.remote(), until) for process in processes]
            self._look_later()

    def idle(self) -> tuple[str, ...]:
        """Return the names, in Ray, of the processes that wait for a job."""
        with self._lock:
            self._look()
            return tuple(idle.process.name for idle in self._idle)

    def _take(self, job: str, wanted: Mapping[WorkerId, str]) -> dict[WorkerId, WorkerActor]:
        """Take idle processes for these workers, each on its node, preferably the one with the worker's name."""
        if self._idle:
            ray.wait([idle.rested for idle in self._idle], num_returns=len(self._idle), timeout=REST_PATIENCE)
        ready = [idle for idle in self._idle if _has_rested(idle)]
        taken: dict[WorkerId, WorkerActor] = {}
        for same_name in (True, False):
            for worker, node in wanted.items():
                fits = (i for i in ready if i.process.node == node and (not same_name or i.process.name == f"{job}/{worker}"))
                if worker not in taken and (found := next(fits, None)) is not None:
                    taken[worker] = found.process
                    ready.remove(found)
                    self._idle.remove(found)
        return taken

    def _look_later(self) -> None:
        """Start a thread, unless there is one, that ends processes which have waited long enough."""
        if self._idle and not self._watched and not self._closed:
            timer = threading.Timer(LOOK_SECONDS, self._expire)
            timer.name, timer.daemon, self._watched = WATCHER, True, True
            timer.start()

    def _close(self) -> None:
        """Stop, because this process is ending and Ray ends the others: a later call to Ray would start another cluster."""
        with self._lock:
            self._closed = True

    def _expire(self) -> None:
        with self._lock:
            self._watched = False
            if ray.is_initialized() and not self._closed:
                self._look()
                self._look_later()

    def _look(self) -> None:
        """End processes whose time is over, and drop those that were lost."""
        context = ray.get_runtime_context()
        cluster = f"{context.gcs_address} {context.get_job_id()}"
        if cluster != self._cluster:
            self._cluster, self._idle = cluster, []
        now = time.monotonic()
        for idle in [idle for idle in self._idle if idle.until <= now or _is_lost(idle)]:
            self._idle.remove(idle)
            ray.kill(idle.process.handle)


def _has_rested(idle: _Idle) -> bool:
    return bool(ray.wait([idle.rested], timeout=0)[0])


def _is_lost(idle: _Idle) -> bool:
    """Return True if the process was lost, or could not end its last run."""
    if not _has_rested(idle):
        return False
    try:
        ray.get(idle.rested)
    except RayError:
        return True
    return False
