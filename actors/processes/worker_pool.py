"""The processes of a job: one for each worker that has a task, and the spares.

Invariant: a process is in one place: with a worker's name, among the spares, or passed to the caller who must end it. This module
alone decides which nodes the job may use. Every method may be called by any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from ...engine.plan.resources import CPU, NO_RESOURCES, Resources, names_besides_cpus
from ...engine.protocol.ids import WorkerId, stage_of
from ...scheduler.configs.job import JobConfig
from ...scheduler.policies.nodes.placement import ClusterNode, Need, NoRoomError, WorkerPlace, place
from ..job.fair_lock import FairLock
from .cluster_watch import NodesInChange
from .placement import RoomPatience, RoomRequest, cluster_nodes, lack_of_memory
from .process import WorkerActor, WorkerProcess, engage, start_process
from .spares import UNASKED_AFTER, Spares
from .worker import END_PATIENCE, Service

PING_PATIENCE = 2.0
"""Seconds that a worker has to answer before an attempt replaces its process."""

REST_PATIENCE = END_PATIENCE + 1.0
"""Seconds that a process has to end its last run, when the job is over."""

_AGAIN = 0.1
"""Seconds between two attempts to get a process."""


class WorkerPool:
    """The processes for the coordinator of `service`.

    `workers`: how many it begins with that a spare can replace. `resources`: of the stages whose workers need others than the job's
    other workers; spares are for those only that don't. `lent`: started by the driver. `warm(process)` lets a new spare get ready.
    """

    def __init__(
        self,
        service: Service,
        config: JobConfig,
        workers: int,
        resources: Mapping[str, Resources],
        lock: FairLock,
        lent: Mapping[WorkerId, WorkerActor],
        warm: Callable[[WorkerProcess], None],
    ) -> None:
        self._service, self._config, self._lock, self._warm = service, config, lock, warm
        self._resources, self._usual = resources, NO_RESOURCES.amounts(config.worker.reserved)
        self._others = names_besides_cpus(resources.values())
        self._processes = {worker: engage(process, service, lent=True) for worker, process in lent.items()}
        self._avoided: frozenset[str] = frozenset()
        self._preferred: frozenset[str] = frozenset()
        self._within: frozenset[str] | None = None
        self.environments: Mapping[WorkerId, Mapping[str, Any]] = {}
        """The environments of the processes of workers that have one of their own, as Ray's `runtime_env`."""
        self.in_change = NodesInChange()
        """Nodes that Ray drains or starts."""
        self._room = RoomRequest(service.job)
        if self._reserves:
            self._room.withdraw_earlier()
        spares = config.worker.spares_of(workers, restarts=config.checkpoint.saves_state)
        self._asked = config.worker.warm_spares is not None
        self.spares = Spares[WorkerProcess](spares, self._start_spare, 0.0 if self._asked else UNASKED_AFTER)

    @property
    def processes(self) -> Mapping[WorkerId, WorkerProcess]:
        """The processes with a task, by the worker's name."""
        with self._lock:
            return dict(self._processes)

    def handle(self, worker: WorkerId) -> Any:
        """Return the worker's actor; None if it has no process."""
        process = self._processes.get(worker)
        return None if process is None else process.handle

    def has_room(self, workers: Sequence[WorkerId]) -> bool:
        """Return True if there is room now for the workers that have neither a process nor a spare."""
        with self._lock:
            missing = [worker for worker in workers if worker not in self._processes]
            usual = [worker for worker in missing if self._is_usual(worker)]
            spared = set(usual[: len(self.spares.processes)])
            try:
                self._plan([self._need(worker) for worker in missing if worker not in spared])
            except NoRoomError:
                return False
            return True

    def acquire(
        self, workers: Sequence[WorkerId], patience: RoomPatience, check: Callable[[], None], grow: Callable[[], None] = lambda: None
    ) -> None:
        """Acquire a process for each of the workers without one: a spare, or a new one on the node chosen by the job's strategy.

        Without room it asks Ray's autoscaler, if there is one, for it. Raises NoRoomError if there is none when `patience` is over,
        and the error of `check` if the workers are no longer needed. Calls `grow` whenever it has found no room: it may use new nodes.
        """
        missing = [worker for worker in workers if worker not in self._processes]
        try:
            while missing:
                try:
                    with self._lock:
                        check()
                        self._acquire(missing)
                except NoRoomError:
                    with self._lock:
                        self._room.ask(self._need(worker) for worker in missing)
                    if patience.is_over():
                        raise
                    grow()
                if missing:
                    time.sleep(_AGAIN)
        finally:
            with self._lock:
                self._room.withdraw()

    def let_go(self, workers: Iterable[WorkerId]) -> list[WorkerProcess]:
        """Detach these workers from their processes, and return the processes; the caller ends them."""
        with self._lock:
            return [self._processes.pop(worker) for worker in workers if worker in self._processes]

    def end_unusable(self, wanted: Collection[WorkerId]) -> list[WorkerId]:
        """End processes that don't answer, are on a forbidden node, or whose worker is not wanted; return the workers.

        One that was lent a moment ago has not started yet, and is not checked.
        """
        there = self.processes
        usable = {name: process for name, process in there.items() if name in wanted and self.allowed(process.node)}
        pings = {name: process.handle.ping.remote() for name, process in usable.items() if not process.new}
        for process in usable.values():
            process.new = False
        if pings:
            ray.wait(list(pings.values()), num_returns=len(pings), timeout=PING_PATIENCE)
        unusable = [name for name in there if name not in usable or (name in pings and not _answered(pings[name]))]
        for process in self.let_go(unusable):
            process.end()
        return unusable

    def allowed(self, node: str) -> bool:
        """Return True if the job may use the node."""
        return node not in self._avoided and node not in self.in_change.draining and (self._within is None or node in self._within)

    def confine(self, nodes: Collection[str] | None) -> None:
        """Confine the workers to these nodes, None for all."""
        with self._lock:
            self._within = None if nodes is None else frozenset(nodes)

    def avoid(self, nodes: Collection[str]) -> None:
        """Start no process on these nodes, and end spares there."""
        self._avoided = frozenset(nodes)

    def prefer(self, nodes: Collection[str]) -> None:
        """Start new processes on these nodes only; if there are none, where the job's strategy says."""
        self._preferred = frozenset(nodes)

    def nodes(self) -> list[ClusterNode]:
        """List the nodes that are alive, with the job's processes on them."""
        with self._lock:
            return cluster_nodes(self._all(), self._others)

    def ask(self, nodes: int) -> None:
        """Ask Ray's autoscaler, if there is one, for `nodes` free nodes as large as the job's largest; not if workers reserve nothing.

        0 withdraws the request.
        """
        with self._lock:
            largest = max((node.cpus for node in self.nodes() if node.workers), default=0.0)
            if self._usual and (largest or not nodes):
                self._room.ask([{CPU: largest}] * nodes)

    def waits_for_room(self) -> bool:
        """Return True while Ray's autoscaler is asked for room."""
        return self._room.waits

    def reserve(self, workers: Sequence[WorkerId], *, hurry: bool) -> None:
        """Start spares beyond the configured ones for these workers to go on with, and end others. Those with resources of their own
        start later. `hurry`: start them together, otherwise one after the other.

        Raises NoRoomError if there is no room for all. In a hurry Ray's autoscaler, if there is one, has then been asked for it.
        """
        with self._lock:
            needs = [self._need(worker) for worker in workers]
            try:
                self._plan(needs)
            except NoRoomError:
                if hurry:
                    self._room.ask(needs)
                raise
            self.spares.want(sum(map(self._is_usual, workers)), together=hurry)

    def reserved(self) -> bool:
        """Return True if all spares have started."""
        with self._lock:
            return self.spares.complete

    def places(self) -> dict[WorkerId, WorkerPlace]:
        """Return the place of each worker, planned if its process is still starting."""
        with self._lock:
            for process in self._processes.values():
                process.look()
            return {worker: WorkerPlace(process.name, process.node) for worker, process in self._processes.items()}

    def started(self) -> set[WorkerId]:
        """Return the workers whose processes have started."""
        with self._lock:
            return {worker for worker, process in self._processes.items() if process.look()}

    def tick(self) -> None:
        """Keep the spares ready, and return room that was asked for."""
        with self._lock:
            self._room.look()
            self.spares.tick(self.allowed)

    def close(self) -> None:
        """End all processes except lent ones, which end their runs and are taken back by the driver."""
        with self._lock:
            self.spares.close()
            self._room.withdraw()
        processes = self.let_go(list(self._processes))
        resting = {process.handle.rest.remote(): process for process in processes if process.lent}
        rested, _ = ray.wait(list(resting), num_returns=len(resting), timeout=REST_PATIENCE) if resting else ([], [])
        kept = [resting[ref] for ref in rested if _answered(ref)]
        for process in processes:
            if process not in kept:
                process.end()

    def _acquire(self, missing: list[WorkerId]) -> None:
        """Acquire processes, removing their workers from `missing`. Raises NoRoomError."""
        for worker in list(filter(self._is_usual, missing)):
            if (spare := self.spares.take(self._chosen)) is None:
                break
            self._processes[worker] = spare
            missing.remove(worker)
        needs = [self._need(worker) for worker in missing]
        for need, node in zip(needs, self._plan(needs), strict=True):
            self._processes[missing[0]] = self._start(missing[0], need, node)
            missing.pop(0)

    def _plan(self, needs: Sequence[Need]) -> tuple[str, ...]:
        if not needs:
            return ()
        nodes = self.nodes()
        avoid = [node.name for node in nodes if not self._chosen(node.name)]
        return place(nodes, needs, self._config.worker.placement, avoid)

    @property
    def _reserves(self) -> bool:
        """True if Ray reserves something for workers."""
        return bool(self._usual or self._resources)

    def _is_usual(self, worker: WorkerId) -> bool:
        """Return True if the worker needs what most workers need, and spares have."""
        return stage_of(worker) not in self._resources and worker not in self.environments

    def _need(self, worker: WorkerId) -> Need:
        return self._resources.get(stage_of(worker), NO_RESOURCES).amounts(self._config.worker.reserved)

    def _chosen(self, node: str) -> bool:
        return self.allowed(node) and (not self._preferred or node in self._preferred)

    def _all(self) -> list[WorkerProcess]:
        return [*self._processes.values(), *self.spares.processes]

    def _start(self, label: str, need: Need, node: str) -> WorkerProcess:
        environment = self.environments.get(WorkerId(label))
        return engage(start_process(self._service.job, label, need, node, environment), self._service, lent=False)

    def _start_spare(self, label: str) -> WorkerProcess | None:
        if not self._asked and lack_of_memory(0) is not None:
            return None
        try:
            (node,) = self._plan([self._usual])
        except NoRoomError:
            return None
        process = self._start(label, self._usual, node)
        self._warm(process)
        return process


def _answered(ref: Any) -> bool:
    """Return True if a worker has answered that it can be used."""
    try:
        ray.get(ref, timeout=0)
    except RayError:
        return False
    return True
