"""The worker actor: a process that runs one task of a job, and the next attempt's after it.

Ray calls arrive on Ray's threads; a run of the task has a thread of its own.
"""

from __future__ import annotations

import gc
import resource
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import ray

from ...engine.errors import JobFailedError, JobTimeoutError
from ...engine.plan.physical import ChannelSpec
from ...engine.plan.task_spec import TaskSpec
from ...engine.protocol.ids import Attempt, WorkerId
from ...scheduler.checkpoints.restore import RestoredTask
from ...scheduler.config import JobConfig
from ...scheduler.job.messages import Command, Report
from ..channels.address import Address
from ..channels.security import Security
from ..channels.stale_folders import sweep_stale_folders
from ..task.task_run import TaskRun, load_arrow
from .sent import sent
from .titles import entitle

END_PATIENCE = 3.0
"""Seconds that a run of an attempt that is over has to end; a user's function that takes longer costs the process."""


class Worker:
    """Made by the coordinator; `deploy`, `connect` and `start` are called in this order for every attempt, each awaited.

    An attempt that fails is no longer awaited: what was asked for it may come behind what the next one asks, since Ray keeps no order of
    calls to an actor with several threads, and is refused then.
    """

    def __init__(self, job: str, coordinator: Any, security: Security) -> None:
        self._job, self._coordinator, self._security = job, coordinator, security
        self._over = threading.Event()
        self._current: TaskRun | None = None
        self._deploying = threading.Lock()
        self._newest: int | None = None
        self._stuck = False
        entitle(self, job, "spare")
        sweep_stale_folders()
        _raise_file_limit()

    def where(self) -> str:
        """The node that this process is on."""
        node: str = ray.get_runtime_context().get_node_id()
        return node

    def warm(self, tasks: Sequence[TaskSpec]) -> None:
        """Called for a spare: that the tasks came means that what they need is loaded now."""
        load_arrow()

    def deploy(self, attempt: Attempt, spec: TaskSpec, config: JobConfig, restored: RestoredTask | None, *, across_nodes: bool) -> Address:
        """End the run of the attempt before, if there is one, and make the next; returns where this worker can be reached.

        It binds to more than loopback only if the job has workers on other nodes. Raises JobTimeoutError if the run before doesn't end,
        JobFailedError if a later attempt has begun here.
        """
        with self._deploying:
            if self._newest is not None and attempt < self._newest:
                raise JobFailedError(f"worker {spec.name}: attempt {attempt} is over, attempt {self._newest} has begun")
            self._newest = attempt
            self._end_run(spec.name)
            entitle(self, self._job, spec.name)
            host = ray.util.get_node_ip_address() if across_nodes else "127.0.0.1"  # type: ignore[no-untyped-call]

            def report(attempt: Attempt, number: int, report: Report) -> None:
                self._coordinator.report.options(num_returns=0).remote(sent(spec.name, attempt, number, report))

            self._current = TaskRun(self._job, attempt, spec, config, restored, self._security, report, host)
            return self._current.address

    def listen(self) -> Address:
        """Let workers on other nodes connect from now on; where. Raises JobError if the worker is too busy to, or can't."""
        return self._run().listen(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]

    def connect(self, attempt: Attempt, addresses: Mapping[WorkerId, Address], channels: tuple[ChannelSpec, ...]) -> None:
        """Open the channels: `channels` are those that begin or end here. Raises JobFailedError if the attempt is over."""
        self._run(attempt).connect(addresses, channels)

    def start(self, attempt: Attempt) -> None:
        """Begin to work. Raises JobFailedError if the attempt is over."""
        self._run(attempt).start(self._over.set)

    def command(self, attempt: Attempt, number: int, command: Command) -> None:
        """Command `number` of `attempt` from the coordinator; they may arrive in any order. Those of another attempt are dropped."""
        current = self._current
        if current is not None and current.attempt == attempt:
            current.command(number, command)

    def ping(self) -> None:
        """Answers as long as the process lives. Raises JobFailedError if it can't be used any more."""
        if self._stuck:
            raise JobFailedError(f"job `{self._job}`: a run of an attempt that is over goes on in this process")

    def join(self) -> None:
        """Returns when the worker is over. While it runs, a call of it tells the coordinator that the process lives."""
        self._over.wait()

    def _end_run(self, name: str) -> None:
        """End the run that there is, and free its state before another takes as much. Raises JobTimeoutError if it doesn't end."""
        run, self._current = self._current, None
        if run is None:
            return
        if not run.end(END_PATIENCE):
            self._stuck = True
            raise JobTimeoutError(f"worker {name}: attempt {run.attempt} did not end within {END_PATIENCE:g} s")
        del run
        # A run is a cycle of objects that was frozen as it began: no round of the collector would ever find it.
        gc.unfreeze()
        gc.collect()

    def _run(self, attempt: Attempt | None = None) -> TaskRun:
        current = self._current
        if current is None:
            raise JobFailedError(f"job `{self._job}`: a worker was started before it was deployed")
        if attempt is not None and attempt != current.attempt:
            raise JobFailedError(f"worker {current.spec.name}: attempt {attempt} is over, attempt {current.attempt} has begun")
        return current


def _raise_file_limit() -> None:
    """Let this process have as many files open as it may: every connection to it takes one, and ZeroMQ aborts a process without any."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
