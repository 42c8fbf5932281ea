"""The local driver: a whole job in one thread of this process, without Ray and without sockets.

It runs the same tasks and the same job state machine as the Ray driver, on queues instead of channels.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from traceback import format_exception
from typing import Any

from ..engine.batch import Batch
from ..engine.errors import JobFailedError, shown
from ..engine.plan.physical import Plan
from ..engine.plan.task_spec import TaskSpec
from ..engine.protocol.elements import Element
from ..engine.time.duration import seconds
from ..scheduler.config import JobConfig
from ..scheduler.job_effects import Redeploy, Retire, Spawn
from ..scheduler.messages import Attach, Command, Report
from ..scheduler.metrics import OperatorLoad, WorkerFigures
from ..scheduler.restore import RestoredTask
from ..state.errors import EvenflowError
from .beginning import Savepoint
from .runner import Runner
from .supervisor import JobStatus, Progress, Supervisor

QUEUE_LIMIT = 16
"""Batches in the queue before a task at which the tasks that feed it wait."""


class LocalJob:
    """A running job; its methods may be called from any thread."""

    owned = True

    def __init__(self, plan: Plan, config: JobConfig, savepoint: Savepoint | None = None) -> None:
        self._config = config
        self._lock = threading.RLock()
        self._wanted: tuple[float, Redeploy] | None = None
        self._commands: dict[str, deque[Command]] = {}
        self._queues: dict[str, deque[tuple[int, Element]]] = {}
        self._runners: dict[str, Runner] = {}
        self._receivers: dict[int, deque[tuple[int, Element]]] = {}
        self._changes: deque[Spawn | Retire] = deque()
        self._supervisor = Supervisor(plan, config, self._tell, self._carry, savepoint=savepoint)
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"evenflow-{plan.name}", daemon=True)
        self._thread.start()

    def progress(self, seen: int, incarnation: str) -> Progress:
        with self._lock:
            return self._supervisor.progress(seen)

    def status(self) -> JobStatus:
        with self._lock:
            return self._supervisor.status()

    def figures(self) -> list[WorkerFigures]:
        with self._lock:
            return self._supervisor.figures()

    def load(self, operator: str, windows: int) -> OperatorLoad:
        with self._lock:
            return self._supervisor.load(operator, windows)

    def ask(self, question: str, *arguments: Any) -> Any:
        with self._lock:
            answer = getattr(self._supervisor, question)(*arguments)
        self._woken.set()
        return answer

    def stop(self) -> None:
        with self._lock:
            self._supervisor.stop()
        self._woken.set()

    def cancel(self) -> None:
        with self._lock:
            self._supervisor.cancel()
        self._woken.set()

    def fail(self, error: EvenflowError) -> None:
        with self._lock:
            self._supervisor.abort(error)
        self._woken.set()

    def close(self) -> None:
        """Wait for the thread; the job has ended or was cancelled."""
        self._thread.join(timeout=30)

    def _carry(self, wanted: Redeploy | Spawn | Retire) -> None:
        if isinstance(wanted, Redeploy):
            self._wanted = (time.monotonic() + wanted.delay, wanted)
        else:
            self._changes.append(wanted)

    def _change(self) -> None:
        """Workers that join or leave, between two rounds."""
        while self._changes:
            change = self._changes.popleft()
            for name in change.workers:
                if isinstance(change, Retire):
                    if name in self._runners:
                        self._runners.pop(name).close()
                else:
                    self._queues[name], self._commands[name] = deque(), deque()
            if isinstance(change, Spawn):
                self._join(change)
            self._connect(self._supervisor.core.plan)

    def _join(self, change: Spawn) -> None:
        attempt = self._supervisor.core.attempt
        self._receivers.update((channel.id, self._queues[channel.receiver]) for channel in change.plan.channels)
        for task in change.plan.tasks:
            if task.name in change.workers:
                self._runners[task.name] = self._runner(task, attempt, self._receivers, None)
                self._runners[task.name].open()
                self._supervisor.ready(task.name, attempt)

    def _connect(self, plan: Plan) -> None:
        """Which queues each task feeds: it waits while one of them is full."""
        self._receivers.update((channel.id, self._queues[channel.receiver]) for channel in plan.channels)
        self._targets = {
            name: [self._queues[receiver] for receiver in {c.receiver for c in plan.channels if c.sender == name and not c.state}]
            for name in self._runners
        }

    def _deploy(self, wanted: Redeploy) -> None:
        """Begin attempt `wanted.attempt`; whatever is left of the one before is void."""
        plan = wanted.plan
        if not self._supervisor.recommit(wanted):
            return
        for runner in self._runners.values():
            runner.close()
        self._queues = {task.name: deque() for task in plan.tasks}
        self._commands = {task.name: deque() for task in plan.tasks}
        restored = self._supervisor.saved.restored(wanted.manifest, plan)
        self._receivers = {}
        self._changes.clear()
        self._runners = {task.name: self._runner(task, wanted.attempt, self._receivers, restored.get(task.name)) for task in plan.tasks}
        self._connect(plan)
        for name, runner in self._runners.items():
            runner.open()
            self._supervisor.ready(name, wanted.attempt)

    def _runner(
        self, task: TaskSpec, attempt: int, queues: Mapping[int, deque[tuple[int, Element]]], restored: RestoredTask | None
    ) -> Runner:
        config = self._config

        def send(channel: int, element: Element) -> None:
            queues[channel].append((channel, element))

        def report(message: Report) -> None:
            if attempt == self._supervisor.core.attempt:
                self._supervisor.report(task.name, message)

        return Runner(
            task.of_attempt(self._supervisor.core.name, attempt),
            send,
            report,
            lambda channel, batch: None,
            metrics_window=seconds(config.metrics.window),
            latency_interval=seconds(config.metrics.latency_interval),
            store_url=config.checkpoint.url(self._supervisor.core.name),
            restored=restored,
        )

    def _tell(self, worker: str, command: Command) -> None:
        """Commands are carried out at the worker's next turn, so that what they bring about can't get between two effects."""
        if isinstance(command, Attach):
            self._receivers.update((c.id, self._queues[c.receiver]) for c in (*command.accept, *command.connect))
        self._commands[worker].append(command)

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 -- nobody but this thread could end the job, and it would be waited for without end
            with self._lock:
                problem = JobFailedError(f"job `{self._supervisor.core.name}` failed: {shown(error)}\n{''.join(format_exception(error))}")
                self._supervisor.abort(error if isinstance(error, EvenflowError) else problem)
                for runner in self._runners.values():
                    runner.close()

    def _work(self) -> None:
        with self._lock:
            self._deploy(self._supervisor.first())
        while True:
            with self._lock:
                if self._supervisor.core.state.final:
                    break
                self._deploy_due()
                self._change()
                busy = [self._step(name, runner) for name, runner in list(self._runners.items())]
                self._supervisor.tick()
            if not any(busy):
                self._woken.wait(self._pause())
                self._woken.clear()
        with self._lock:
            for runner in self._runners.values():
                self._measure(runner.spec.name, runner)
                runner.close()

    def _deploy_due(self) -> None:
        while self._wanted is not None and time.monotonic() >= self._wanted[0]:
            wanted, self._wanted = self._wanted[1], None
            self._deploy(wanted)

    def _step(self, name: str, runner: Runner) -> bool:
        """One turn of a task; whether it did anything."""
        queue, commands, busy = self._queues[name], self._commands[name], False
        while commands:
            runner.command(commands.popleft())
            busy = True
        full = self._full(name)
        while queue and not full and not runner.task.paused and not runner.over:
            runner.receive(*queue.popleft())
            busy = True
            full = self._full(name)
        busy = runner.give() or busy
        busy = runner.save() or busy
        if runner.is_source and not full and not runner.task.paused:
            busy = runner.poll(self._config.network.source_rows) > 0 or runner.over or busy
        if not busy or not runner.is_source:
            runner.idle()
        else:
            runner.flush_if_due()
        if runner.meter.due():
            self._measure(name, runner)
        return busy or any(self._targets[name])

    def _measure(self, name: str, runner: Runner) -> None:
        batches = [element.num_rows for _, element in self._queues[name] if type(element) is Batch]
        runner.measure(len(batches), sum(batches), 0)

    def _full(self, name: str) -> bool:
        return any(len(target) >= QUEUE_LIMIT for target in self._targets[name])

    def _pause(self) -> float:
        waits = [runner.sleep_for() for runner in self._runners.values() if runner.is_source or runner.task.giving or runner.task.saving]
        return min([0.05, *waits])
