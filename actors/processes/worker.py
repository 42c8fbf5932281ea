"""The worker actor: a process that runs one task of a job, then the next attempt's, and later perhaps a task of another job.

Ray calls arrive on Ray's threads; a run of the task has its own thread.
"""

from __future__ import annotations

import gc
import resource
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ray

from ...engine.errors import JobFailedError, JobTimeoutError
from ...engine.plan.channel_spec import ChannelSpec
from ...engine.plan.task_spec import TaskSpec
from ...engine.protocol.ids import Attempt, WorkerId, attempt_name
from ...scheduler.configs.run import RunConfig
from ...scheduler.load.long_call import LongCall
from ...scheduler.protocol.messages import Command, Report
from ...scheduler.record.restoring.restored_task import RestoredTask
from ...state.redacted_output import clears_errors, guard_credentials
from ..attempt_log import note_step
from ..channels.address import Address
from ..channels.security import Security
from ..channels.stale_folders import sweep_stale_folders
from ..process_log import set_log_level
from .heap import give_back_freed_memory, keep_freed_memory
from .own_process import RESTING, entitle, uncollected
from .packed_call import pack_call

if TYPE_CHECKING:
    from ..task.task_run import TaskRun

END_PATIENCE = 3.0
"""Seconds that a run of a finished attempt has to end; a user's function that takes longer costs the process."""

SERVE_PATIENCE = 10.0
"""Seconds that a call may precede the one that names its coordinator: Ray keeps no order of calls to a threaded actor."""


@dataclass(frozen=True, slots=True)
class Service:
    """The coordinator that a worker serves, with a `token` that is unique even among coordinators of the same job."""

    token: str
    job: str
    coordinator: Any
    security: Security


@clears_errors
class Worker:
    """The worker of a job, created by its driver or its coordinator. `serve`, `deploy`, `connect` and `start` are called in this
    order, each awaited.

    The latter three are repeated for every attempt. A failed attempt is no longer awaited: its calls may arrive after those of
    the next one, and are then rejected. So are those of a coordinator that is no longer served. `rest` is called when the job is
    over.
    """

    def __init__(self, job: str) -> None:
        self._job = job
        self._service: Service | None = None
        self._serving = threading.Condition()
        self._over: dict[str, threading.Event] = {}
        self._current: TaskRun | None = None
        self._deploying = threading.Lock()
        self._newest: Attempt | None = None
        self._stuck = False
        entitle(self, job, "spare")
        guard_credentials()
        _raise_file_limit()
        keep_freed_memory()
        with uncollected():
            from ..task import task_run  # here, because processes with a worker's handle don't need it

            self._task_run = task_run
        threading.Thread(target=self._load_arrow, name="evenflow-load-arrow", daemon=True).start()  # while it waits for its first task

    def serve(self, service: Service) -> None:
        """Work for this coordinator only. Raises JobTimeoutError if a run for the previous one doesn't end."""
        with self._deploying:
            self._leave_others(service.token)
            with self._serving:
                self._job, self._service, self._newest = service.job, service, None
                self._over.setdefault(service.token, threading.Event())
                self._serving.notify_all()
        entitle(self, service.job, "spare")
        sweep_stale_folders()

    def where(self, token: str) -> str:
        """Return this process's node, once it serves that coordinator. Raises JobFailedError if it serves another."""
        self._served_by(token)
        node: str = ray.get_runtime_context().get_node_id()
        return node

    def rest(self) -> None:
        """Work for no coordinator: the job is over, and this process waits for the next. Raises JobTimeoutError if a run doesn't
        end.
        """
        with self._deploying:
            self._leave_others(None)
        set_log_level(None)
        entitle(self, self._job, RESTING)

    def _load_arrow(self) -> None:
        with uncollected():
            self._task_run.load_arrow()

    def _leave_others(self, token: str | None) -> None:
        """Stop serving every coordinator except the one with this token, whose `join` may have arrived."""
        with self._serving:
            self._service = None
            for other, over in self._over.items():
                if other != token:
                    over.set()
        self._end_run()

    def warm(self, tasks: Sequence[TaskSpec], url: str | None) -> None:
        """Load what a spare will need: the modules of tasks, which receiving them has loaded, and those of the checkpoints at `url`."""
        self._task_run.load_arrow()
        if url is not None:
            self._task_run.load_storage(url)

    def deploy(
        self, token: str, attempt: Attempt, spec: TaskSpec, config: RunConfig, restored: RestoredTask | None, *, across_nodes: bool
    ) -> Address:
        """End the run of the previous attempt, if any, and create the next; return this worker's address.

        It binds to more than loopback only if the job has workers on other nodes. Raises JobTimeoutError if the previous run
        doesn't end, JobFailedError if a later attempt has begun here.
        """
        self._served_by(token)
        with self._deploying:
            service = self._served_by(token)
            if self._newest is not None and attempt < self._newest:
                raise _is_over(spec, attempt, self._newest)
            self._newest = attempt
            set_log_level(config.log_level)
            note_step(self._job, attempt, "process there", spec.name)
            self._end_run()
            note_step(self._job, attempt, "earlier run ended", spec.name)
            entitle(self, self._job, spec.name)
            host = ray.util.get_node_ip_address() if across_nodes else "127.0.0.1"  # type: ignore[no-untyped-call]

            def report(attempt: Attempt, number: int, report: Report) -> None:
                service.coordinator.report.options(num_returns=0).remote(pack_call(spec.name, attempt, number, report))

            self._current = self._task_run.TaskRun(self._job, attempt, spec, config, restored, service.security, report, host)
            return self._current.address

    def halt(self, token: str, attempt: Attempt) -> None:
        """End the run of an attempt before this one, whose `deploy` then finds no run to end. Raises JobTimeoutError if it doesn't end."""
        with self._deploying:
            service = self._service
            if service is not None and service.token == token and self._newest is not None and self._newest < attempt:
                self._newest = attempt
                self._end_run()

    def listen(self) -> Address:
        """Let workers on other nodes connect, and return the new address. Raises JobError if the worker is too busy to, or can't."""
        return self._run().listen(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]

    def connect(self, token: str, attempt: Attempt, addresses: Mapping[WorkerId, Address], channels: tuple[ChannelSpec, ...]) -> None:
        """Open the channels that begin or end here. Raises JobFailedError if the attempt is over."""
        self._served_by(token)
        self._run(attempt).connect(addresses, channels)

    def start(self, token: str, attempt: Attempt) -> None:
        """Begin to work. Raises JobFailedError if the attempt is over."""
        self._served_by(token)
        self._run(attempt).start(self._over_for(token).set)

    def command(self, token: str, attempt: Attempt, number: int, command: Command) -> None:
        """Handle command `number` of `attempt`; they may arrive in any order. Those of another attempt are dropped."""
        service, current = self._service, self._current
        if service is not None and service.token == token and current is not None and current.attempt == attempt:
            current.command(number, command)

    def ping(self) -> LongCall | None:
        """Return as long as the process lives, with the call that its task has been in for long, if there is one.

        Raises JobFailedError if the process can no longer be used.
        """
        if self._stuck:
            raise JobFailedError(f"job `{self._job}`: a run of a finished attempt is still active in this process")
        run = self._current
        return None if run is None else run.long_call()

    def join(self, token: str) -> None:
        """Return when the worker has finished for this coordinator. While the call runs, the process is alive."""
        self._over_for(token).wait()

    def _over_for(self, token: str) -> threading.Event:
        with self._serving:
            return self._over.setdefault(token, threading.Event())

    def _served_by(self, token: str) -> Service:
        """Raise JobFailedError if this worker doesn't work for the coordinator of that token."""
        with self._serving:
            if token in self._over and self._over[token].is_set():
                raise JobFailedError(f"job `{self._job}`: this process no longer works for the calling coordinator")
            self._serving.wait_for(lambda: self._service is not None and self._service.token == token, SERVE_PATIENCE)
            if self._service is None or self._service.token != token:
                raise JobFailedError(f"job `{self._job}`: this process doesn't work for the calling coordinator")
            return self._service

    def _end_run(self) -> None:
        """End the present run, and free its state before another takes as much. Raises JobTimeoutError if it or an earlier one doesn't
        end.
        """
        if self._stuck:
            raise JobTimeoutError(f"job `{self._job}`: a run of a finished attempt is still active in this process")
        run, self._current = self._current, None
        if run is None:
            return
        if not run.end(END_PATIENCE):
            self._stuck = True
            raise JobTimeoutError(f"worker {run.spec.name}: attempt {attempt_name(run.attempt)} did not end within {END_PATIENCE:g} s")
        del run
        # A run is a cycle of objects that was frozen at its start: the collector would never find it.
        gc.unfreeze()
        gc.collect()
        give_back_freed_memory()

    def _run(self, attempt: Attempt | None = None) -> TaskRun:
        current = self._current
        if current is None:
            raise JobFailedError(f"job `{self._job}`: a worker was started before it was deployed")
        if attempt is not None and attempt != current.attempt:
            raise _is_over(current.spec, attempt, current.attempt)
        return current


def _is_over(spec: TaskSpec, attempt: Attempt, newest: Attempt) -> JobFailedError:
    return JobFailedError(f"worker {spec.name}: attempt {attempt_name(attempt)} is over, attempt {attempt_name(newest)} has begun")


def _raise_file_limit() -> None:
    """Raise this process's limit of open files: every connection takes one, and ZeroMQ aborts a process without any."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
