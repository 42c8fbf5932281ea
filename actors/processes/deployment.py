"""Deployment of workers: each gets a process, its task, its channels for records, and begins.

Invariant: no step begins before all workers have finished the previous one, so that no worker sends to one that isn't there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import ActorUnschedulableError, RayActorError, RayError

from ...engine.errors import ClusterError, JobFailedError, JobLostError
from ...engine.hopeless import hopeless
from ...engine.plan.channel_spec import ChannelSpec
from ...engine.plan.physical import Plan
from ...engine.protocol.ids import Attempt, WorkerId
from ...engine.time.duration import seconds
from ...scheduler.configs.job import JobConfig
from ...scheduler.policies.nodes.placement import NoRoomError
from ...scheduler.record.restoring.restored_task import RestoredTask
from ...state.errors import EvenflowError
from ..channels.address import Address
from .placement import RoomPatience
from .process import why_ended
from .worker import Service
from .worker_pool import WorkerPool

_PATIENCE = 0.2

Check = Callable[[], None]


class Deployment:
    """The deployment of a job's workers. `addresses`: of the workers of this attempt.

    Each step takes a `check` that raises if the workers are no longer needed.
    """

    def __init__(self, service: Service, config: JobConfig, pool: WorkerPool) -> None:
        self._job, self._token, self._config, self._pool = service.job, service.token, config, pool
        self.addresses: dict[WorkerId, Address] = {}
        self._operators: dict[str, str] = {}
        self._across_nodes = False

    def deadline(self) -> float:
        """Return the time by which workers that start now must have started."""
        return time.monotonic() + seconds(self._config.worker.start_timeout)

    def begin_attempt(self, workers: Sequence[WorkerId], check: Check) -> None:
        """Begin to deploy all workers again.

        Workers of a cluster with one node listen on loopback only, and the job is confined to it for now; unless they have no room
        there, because the autoscaler may then start nodes for them.
        """
        check()
        nodes = _nodes()
        self._across_nodes = len(nodes) > 1 or not self._pool.has_room(workers)
        self._pool.confine(None if self._across_nodes else nodes)
        self.addresses = {}

    def reach_others(self, deadline: float, check: Check) -> None:
        """Let the running workers listen to workers on other nodes, if the cluster has grown to more than one node."""
        if self._across_nodes or len(_nodes()) < 2:
            return
        names = list(self.addresses.keys() & self._pool.processes.keys())
        listening = [worker.listen.remote() for worker in self._handles(names).values()]
        self.addresses |= dict(zip(names, self._await(listening, names, deadline, "listen to other nodes", check), strict=True))
        self._across_nodes = True
        self._pool.confine(None)

    def acquire(self, names: Sequence[WorkerId], deadline: float, check: Check) -> None:
        """Acquire a process for each worker without one, waiting for room. Raises ClusterError if there is none by the deadline."""
        try:
            self._pool.acquire(names, RoomPatience(deadline, deadline - time.monotonic()), check)
        except NoRoomError as error:
            missing = ", ".join(name for name in names if name not in self._pool.processes)
            raise ClusterError(
                f"job `{self._job}`: {missing} did not start within {self._config.worker.start_timeout}; is there room in the cluster "
                f"(`ray status`)? There is {error}. Use fewer workers (parallelism), let them reserve less (WorkerConfig(cpus=0) reserves "
                "nothing), or wait longer for an autoscaler's nodes (start_timeout)"
            ) from error

    def bring_up(
        self,
        attempt: Attempt,
        plan: Plan,
        names: Sequence[WorkerId],
        restored: Mapping[WorkerId, RestoredTask],
        deadline: float,
        check: Check,
    ) -> None:
        """Create tasks and channels in these workers' processes. Raises ClusterError for those that don't start in time."""
        tasks = {task.name: task for task in plan.tasks}
        self._operators |= {name: task.operators for name, task in tasks.items()}
        token, config = self._token, self._config.of_run(self._job)

        def deploy(name: WorkerId, worker: Any) -> Any:
            return worker.deploy.remote(token, attempt, tasks[name], config, restored.get(name), across_nodes=self._across_nodes)

        self.addresses |= self._deployed(deploy, names, deadline, check)
        connected, around = [], _channels_around(names, plan)
        for name, worker in self._handles(names).items():
            channels = tuple(around[name])
            connected.append(worker.connect.remote(token, attempt, {c.receiver: self.addresses[c.receiver] for c in channels}, channels))
        self._await(connected, names, deadline, "connect to its neighbours", check)

    def start(self, attempt: Attempt, names: Sequence[WorkerId], deadline: float, check: Check) -> None:
        """Let the workers begin to work."""
        self._await(
            [worker.start.remote(self._token, attempt) for worker in self._handles(names).values()], names, deadline, "begin", check
        )

    def _deployed(
        self, deploy: Callable[[WorkerId, Any], Any], names: Sequence[WorkerId], deadline: float, check: Check
    ) -> dict[WorkerId, Address]:
        """Return the workers' addresses. One whose node was lost before its process could start gets another process."""
        deployed = {name: deploy(name, worker) for name, worker in self._handles(names).items()}
        while True:
            try:
                return dict(zip(deployed, self._await(list(deployed.values()), list(deployed), deadline, "start", check), strict=True))
            except (ActorUnschedulableError, JobFailedError) as error:
                lost = [name for name, ref in deployed.items() if self._lost_its_node(name, ref)]
                if not lost and isinstance(error, JobFailedError):
                    raise
                if time.monotonic() > deadline:
                    raise ClusterError(f"job `{self._job}`: {error}") from None
                for process in self._pool.let_go(lost):
                    process.end()
                time.sleep(_PATIENCE)  # Ray reports nodes a moment late
                self.acquire(lost, deadline, check)
                deployed |= {name: deploy(name, worker) for name, worker in self._handles(lost).items()}

    def _lost_its_node(self, name: WorkerId, ref: Any) -> bool:
        """Return True if the worker can't answer because its node was lost, even if Ray placed it there without knowing that."""
        if _fails(ref, ActorUnschedulableError):
            return True
        process = self._pool.processes.get(name)
        return process is not None and _fails(ref, RayActorError) and process.node not in _nodes()

    def _handles(self, names: Sequence[WorkerId]) -> dict[WorkerId, Any]:
        there = self._pool.processes
        gone = [name for name in names if name not in there]
        if gone:
            raise JobLostError(f"job `{self._job}`: the process of {', '.join(gone)} was ended before it began")
        return {name: there[name].handle for name in names}

    def _await(self, refs: Sequence[Any], names: Sequence[WorkerId], deadline: float, what: str, check: Check) -> list[Any]:
        """Return the workers' answers. Raises ClusterError for those that don't answer by the deadline, and as soon as the job
        has ended.

        Raises ActorUnschedulableError if the node of a process was lost before it could start.
        """
        waiting: list[Any] = list(refs)
        try:
            while waiting:
                done, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=_PATIENCE)
                ray.get(done)
                check()
                if waiting and time.monotonic() > deadline:
                    missing = ", ".join(name for name, ref in zip(names, refs, strict=True) if ref in waiting)
                    raise ClusterError(
                        f"job `{self._job}`: {missing} did not {what} within {self._config.worker.start_timeout}; "
                        "is there room in the cluster (`ray status`)? WorkerConfig(start_timeout=...) sets the bound"
                    )
            return list(ray.get(list(refs)))
        except ActorUnschedulableError:
            raise
        except RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, EvenflowError):
                raise cause from None
            why = why_ended(error) if isinstance(error, RayActorError) else str(error)
            lost = [name for name, ref in zip(names, refs, strict=True) if _fails(ref, RayActorError)]
            runs = [f"worker {name}, which runs {self._operators[name]}," for name in lost if name in self._operators]
            workers = " and ".join(runs) or "a worker"
            failure = JobFailedError(f"job `{self._job}`: {workers} did not {what}: {why}")
            failure.remedy = None if cause is None else hopeless(cause)
            raise failure from None


def _fails(ref: Any, kind: type[RayError]) -> bool:
    """Return True if the worker's answer failed with an error of this kind."""
    try:
        ray.get(ref, timeout=0)
    except kind:
        return True
    except (RayError, TimeoutError):
        return False
    return False


def _channels_around(workers: Sequence[WorkerId], plan: Plan) -> dict[WorkerId, list[ChannelSpec]]:
    """Return the channels that begin or end at each of these workers."""
    found: dict[WorkerId, list[ChannelSpec]] = {worker: [] for worker in workers}
    for channel in plan.channels:
        for end in (channel.sender, channel.receiver):
            if end in found:
                found[end].append(channel)
    return found


def _nodes() -> list[str]:
    """List the nodes that are alive."""
    return [node["NodeID"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
