"""The workers of a job on Ray, as its interpreter needs them: deployed, spawned and retired in threads, commanded by actor calls,
and watched.

Invariant: one deployment is in progress at a time, and it gives up as soon as a later attempt is wanted or the job has ended.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import ray
from ray.exceptions import RayActorError

from ...engine.errors import JobFailedError
from ...engine.plan.physical import Plan
from ...engine.protocol.ids import Attempt, WorkerId, attempt_name
from ...engine.time.duration import seconds
from ...scheduler.configs.job import JobConfig
from ...scheduler.load.long_call import LongCall
from ...scheduler.parts.node_scaling import AUTOSCALER_PATIENCE
from ...scheduler.policies.nodes.placement import ClusterNode, ClusterView
from ...scheduler.protocol.effects import Deploy, JobState, Spawn
from ...scheduler.protocol.messages import LAST_ELEMENTS_SECONDS, Announce, Attach, Command, InOrder, Report
from ...state.errors import EvenflowError
from ..attempt_log import note_step
from ..job.job_interpreter import JobInterpreter
from ..job.job_storage import JobStorage
from .deployment import Deployment
from .pings import Pings
from .placement import RoomPatience
from .process import LEAVE_TIMEOUT, WorkerActor, WorkerProcess, why_ended
from .worker import Service
from .worker_pool import WorkerPool

_LOG = logging.getLogger(__name__)

RETIRE_TIMEOUT = 2 * LAST_ELEMENTS_SECONDS + 10.0
"""Seconds that workers have to leave a job that goes on, which would wait for ever for elements of theirs that were lost."""


class RayWorkers:
    """The workers of one job; there are none before `attend`. The interpreter's lock guards all attributes."""

    def __init__(self, plan: Plan, config: JobConfig, storage: JobStorage) -> None:
        self._plan, self._config, self._storage = plan, config, storage
        self._joins: dict[Any, WorkerId] = {}
        self._pings = Pings(seconds(config.worker.heartbeat_timeout))
        self._numbers: dict[WorkerId, int] = {}
        self._inboxes: dict[WorkerId, InOrder[Report]] = {}
        self._tasks: Any = None
        self._nodes: tuple[ClusterNode, ...] = ()
        self._seen_at, self._attended = -math.inf, False
        self._halted = 0
        """The attempt for which the runs of earlier ones have been ended."""
        self._wanted: SimpleQueue[Deploy | None] = SimpleQueue()
        self.not_started: EvenflowError | None = None
        """The reason why the first attempt could not be deployed."""
        self.home: str | None = None
        """The node of this process, if Ray would start it again on another."""

    def attend(self, interpreter: JobInterpreter, service: Service, lent: Mapping[WorkerId, WorkerActor]) -> None:
        """Serve the job of this interpreter; workers serve and report to the coordinator of `service`. `lent`: existing
        processes.
        """
        self._interpreter, self._token = interpreter, service.token
        usual = [task for task in self._plan.tasks if task.stage not in self._plan.resources and task.environment is None]
        self.pool = WorkerPool(service, self._config, len(usual), self._plan.resources, interpreter.lock, lent, self._warm)
        self._deployment = Deployment(service, self._config, self.pool)
        self._attended = True
        threading.Thread(target=self._deploy_wanted, name=f"{self._plan.name}/deploy", daemon=True).start()

    def tell(self, worker: WorkerId, command: Command) -> None:
        if not self._attended:  # a job that is given up before it could start has no worker
            return
        number = self._numbers.get(worker, 0)
        self._numbers[worker] = number + 1
        handle = self.pool.handle(worker)
        if handle is not None:
            addresses = self._deployment.addresses
            if isinstance(command, Attach):
                command = replace(command, addresses={c.receiver: addresses[c.receiver] for c in command.connect})
            elif isinstance(command, Announce) and command.peers:
                command = replace(command, addresses={peer: addresses[peer] for peer in command.peers})
            handle.command.options(num_returns=0).remote(self._token, self._interpreter.core.attempt, number, command)

    def deploy(self, wanted: Deploy) -> None:
        self._wanted.put(wanted)

    def spawn(self, wanted: Spawn) -> None:
        for name in wanted.workers:
            self._numbers.pop(name, None)
            self._inboxes.pop(name, None)
        threading.Thread(target=self._spawn, args=(wanted,), name=f"{self._plan.name}/spawn", daemon=True).start()

    def retire(self, workers: tuple[WorkerId, ...]) -> None:
        gone = frozenset(workers)
        joins = [ref for ref, name in self._joins.items() if name in gone]
        self._forget(workers)
        processes = self.pool.let_go(workers)
        threading.Thread(target=_end, args=(processes, joins), name=f"{self._plan.name}/retire", daemon=True).start()

    def use_nodes(self, avoid: frozenset[str], prefer: frozenset[str]) -> None:
        self.pool.avoid(avoid)
        self.pool.prefer(prefer)

    def reserve(self, workers: Sequence[WorkerId], *, hurry: bool) -> None:
        self.pool.reserve(workers, hurry=hurry)

    def ask_for_room(self, nodes: int) -> None:
        self.pool.ask(nodes)

    def leave_node(self) -> None:
        """End this process without a word, as if it was lost: only then does Ray start an actor again."""
        _LOG.warning(
            "job `%s`: its coordinator leaves a node that Ray drains; the job continues from its newest checkpoint", self._plan.name
        )
        os._exit(1)

    def view(self, *, oldest: float | None) -> ClusterView:
        """Return the present places and spares, and nodes at most `oldest` seconds old; nothing before `attend`."""
        if not self._attended:
            return ClusterView()
        now = time.monotonic()
        if oldest is not None and now - self._seen_at > oldest:
            self._seen_at, self._nodes = now, tuple(self.pool.nodes())
        changing = self.pool.in_change
        return ClusterView(
            () if oldest is None else self._nodes,
            self.pool.places(),
            self.pool.reserved(),
            draining=tuple(sorted(changing.draining)),
            seconds_left={node: ends - time.time() for node, ends in changing.draining.items() if ends is not None},
            starting=changing.starting,
            home=self.home,
        )

    def long_calls(self) -> dict[WorkerId, LongCall]:
        return self._pings.long_calls()

    def received(self, worker: WorkerId, attempt: Attempt, number: int, report: Report) -> None:
        """Handle a worker's numbered report; these may arrive in any order. Those of a finished attempt are dropped."""
        with self._interpreter.lock:
            if attempt == self._interpreter.core.attempt:
                for due in self._inboxes.setdefault(worker, InOrder()).put(number, report):
                    self._interpreter.report(worker, attempt, due)

    def look_after(self) -> None:
        """Report workers as lost whose join has returned while the job runs, or that don't answer for `heartbeat_timeout`.

        During a deployment, the deployment itself waits for the workers' answers, and a spare would only be in their way.
        """
        with self._interpreter.lock:  # a leaving worker gets the command and is removed from `_joins` in one step
            core = self._interpreter.core
            if core.deploying:
                return
            if core.state is JobState.RUNNING:
                self.pool.tick()
            for name, why in self._lost().items():
                note_step(self._plan.name, Attempt(core.attempt), f"worker `{name}` lost")
                self._interpreter.lost(name, why)
                self._forget([name])
                for process in self.pool.let_go([name]):
                    process.end()
            if core.state is JobState.RESTARTING and core.attempt > self._halted:
                self._halted = core.attempt
                for process in self.pool.processes.values():
                    process.handle.halt.options(num_returns=0).remote(self._token, core.attempt)

    def wait(self, seconds: float) -> None:
        """Wait that long, or until a worker's process has ended. Ray tells of that within about 10 ms."""
        with self._interpreter.lock:
            core = self._interpreter.core
            joins = [] if core.deploying or core.state.final else list(self._joins)
        if joins:
            ray.wait(joins, timeout=seconds)
        else:
            time.sleep(seconds)

    def close(self) -> None:
        """Wait until the workers have left, and end those that don't."""
        self._wanted.put(None)
        if self._joins:
            ray.wait(list(self._joins), num_returns=len(self._joins), timeout=LEAVE_TIMEOUT)
        if self._attended:
            self.pool.close()

    def _lost(self) -> dict[WorkerId, str]:
        done, _ = ray.wait(list(self._joins), num_returns=len(self._joins), timeout=0) if self._joins else ([], [])
        lost: dict[WorkerId, str] = {}
        for ref in done:
            name = self._joins.pop(ref)
            try:
                ray.get(ref, timeout=1)
                lost[name] = "it left before the job ended"
            except RayActorError as error:
                lost[name] = why_ended(error)
        watched = set(self._joins.values())  # a starting worker is not silent yet
        return lost | self._pings.silent({name: process.handle for name, process in self.pool.processes.items() if name in watched})

    def _deploy_wanted(self) -> None:
        while (wanted := self._wanted.get()) is not None:
            try:
                self._deploy(wanted)
            except Exception as problem:  # noqa: BLE001 -- whatever goes wrong with an attempt, the next one or the job's end follows
                own = isinstance(problem, EvenflowError)
                error = problem if own else JobFailedError(f"job `{self._plan.name}` did not start: {type(problem).__name__}: {problem}")
                assert isinstance(error, EvenflowError)
                with self._interpreter.lock:
                    core = self._interpreter.core
                    first = core.state is JobState.STARTING and wanted.attempt == core.attempt
                    self.not_started = error if first else None
                    self._interpreter.not_deployed(wanted.attempt, error)

    def _deploy(self, wanted: Deploy) -> None:
        """Deploy every task of the plan in attempt `wanted.attempt`, in the existing processes and in new ones for lost ones."""
        deployment, attempt = self._deployment, wanted.attempt

        def check() -> None:
            """Raises JobFailedError if the job has failed or goes back again; it may finish before all know that they began."""
            core = self._interpreter.core
            if core.attempt != attempt or core.state in (JobState.FAILED, JobState.CANCELLED):
                raise core.error or JobFailedError(f"job `{self._plan.name}`: attempt {attempt_name(attempt)} ended before it began")

        def done(step: str) -> None:
            note_step(self._plan.name, attempt, step)

        check()
        done("sinks restored")
        deadline = deployment.deadline()
        names = [task.name for task in wanted.plan.tasks]
        restored = self._storage.restored(wanted.manifest, wanted.plan)
        done("manifest read")
        self.pool.environments = _environments(wanted.plan)
        deployment.begin_attempt(names, check)
        ended = self.pool.end_unusable(frozenset(names))
        with self._interpreter.lock:
            self._forget(ended)
        done("processes checked")
        deployment.acquire(names, deadline, check)
        done("processes acquired")
        deployment.bring_up(attempt, wanted.plan, names, restored, deadline, check)
        done("channels connected")
        with self._interpreter.lock:
            check()
            self._numbers, self._inboxes = {}, {}
        deployment.start(attempt, names, deadline, check)
        done("tasks started")
        self._begun(names, attempt)

    def _spawn(self, wanted: Spawn) -> None:
        """Start workers in addition to the running ones, and tell the job when they have started."""
        deployment, names = self._deployment, wanted.workers

        def check() -> None:
            core = self._interpreter.core
            rescaling = core.rescaling
            if wanted.attempt != core.attempt or rescaling is None or rescaling.rescale.joining != names:
                raise JobFailedError("they are no longer wanted")

        try:
            deadline = deployment.deadline()
            self.pool.environments = _environments(wanted.plan)
            deployment.reach_others(deadline, check)
            patience = RoomPatience(deadline, AUTOSCALER_PATIENCE)
            self.pool.acquire(names, patience, check, grow=lambda: deployment.reach_others(deadline, check))
            deployment.bring_up(wanted.attempt, wanted.plan, names, {}, deadline, check)
            deployment.start(wanted.attempt, names, deadline, check)
        except Exception as error:  # noqa: BLE001 -- the job runs on without them, and says why
            self._interpreter.not_spawned(names, wanted.attempt, str(error))
        else:
            self._begun(names, wanted.attempt)

    def _begun(self, names: Sequence[WorkerId], attempt: Attempt) -> None:
        """Record that these workers are working, so that their end counts as a loss."""
        with self._interpreter.lock:
            if attempt != self._interpreter.core.attempt:
                return
            processes = self.pool.processes
            self._joins.update({processes[name].join: name for name in names if name in processes})
            for name in names:
                self._interpreter.ready(name, attempt)

    def _forget(self, names: Sequence[WorkerId]) -> None:
        """Stop treating the end of these processes as a loss."""
        gone = frozenset(names)
        self._joins = {ref: name for ref, name in self._joins.items() if name not in gone}
        for name in gone:
            self._pings.forget(name)

    def _warm(self, spare: WorkerProcess) -> None:
        """Let a spare load the modules that a task of the job needs."""
        if self._tasks is None:
            self._tasks = ray.put([task for task in self._plan.tasks if task.index == 0])
        spare.handle.warm.remote(self._tasks, self._config.checkpoint.url(self._plan.name))


def _environments(plan: Plan) -> dict[WorkerId, Mapping[str, Any]]:
    return {task.name: task.environment for task in plan.tasks if task.environment is not None}


def _end(processes: Sequence[WorkerProcess], joins: list[Any]) -> None:
    """End workers that have left; they get a moment to close their resources."""
    if joins:
        ray.wait(joins, num_returns=len(joins), timeout=RETIRE_TIMEOUT)
    for process in processes:
        process.end()
