"""The local driver: a whole job in one thread of this process, without Ray and without sockets.

It runs the same tasks and the same job state machine as the Ray driver, on queues instead of channels.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from traceback import format_exception
from typing import TypeVar

from ..engine.batch import Batch
from ..engine.errors import JobFailedError, shown
from ..engine.plan.physical import Plan
from ..engine.plan.task_spec import TaskSpec
from ..engine.protocol.elements import Element
from ..engine.protocol.ids import Attempt, ChannelId, WorkerId, WorkerNumber
from ..engine.protocol.state_channels import is_state_channel, receiver_of
from ..engine.time.duration import seconds
from ..scheduler.configs.job import JobConfig
from ..scheduler.job.core import JobCore
from ..scheduler.load.long_call import LongCall
from ..scheduler.protocol.effects import Deploy, JobState, Spawn
from ..scheduler.protocol.messages import Attach, Command, Report
from ..scheduler.protocol.requests import ChangeRequest, ChangeSettings, Fail, Request
from ..scheduler.protocol.storage_answers import StorageAnswer, StorageFailed
from ..scheduler.record.restoring.restored_task import RestoredTask
from ..scheduler.record.restoring.run_claim import RunClaim
from ..state.errors import EvenflowError
from ..state.redacted_output import cleared
from .clocks import JobClock
from .job.first_manifest import Savepoint
from .job.heartbeat import Heartbeat
from .job.job_interpreter import JobInterpreter
from .job.job_storage import JobStorage
from .job.storage_thread import StorageThread
from .process_log import set_log_level
from .task.real_task import real_task
from .task.task_interpreter import TaskInterpreter

A = TypeVar("A")

QUEUE_LIMIT = 16
"""Batches in the queue of a task at which its upstream tasks wait."""


TICK = 0.005
"""Seconds between two ticks of the job."""

STORAGE_PATIENCE = 30.0
"""Seconds that storage has, once the job has ended, to carry out pending effects."""


@dataclass(slots=True)
class _Queues:
    """The channels of the tasks in this thread: the queues of the receiving tasks, by channel of records and by worker."""

    receivers: dict[ChannelId, deque[tuple[ChannelId, Element]]] = field(default_factory=dict)
    workers: dict[WorkerNumber, deque[tuple[ChannelId, Element]]] = field(default_factory=dict)

    def send(self, channel: ChannelId, element: Element) -> None:
        queue = self.workers[receiver_of(channel)] if is_state_channel(channel) else self.receivers[channel]
        queue.append((channel, element))

    def consumed(self, channel: ChannelId, batch: Batch) -> None:
        """Return no credit: the length of the queues holds the senders back."""


class LocalJob:
    """A job whose workers have started; its public methods may be called from any thread. It is its interpreter's `Workers`."""

    owned = True

    def __init__(self, plan: Plan, config: JobConfig, savepoint: Savepoint | None = None, claim: RunClaim | None = None) -> None:
        self._config = config
        self._commands: dict[WorkerId, deque[Command]] = {}
        self._queues: dict[WorkerId, deque[tuple[ChannelId, Element]]] = {}
        self._runners: dict[WorkerId, TaskInterpreter] = {}
        self._channels = _Queues()
        self._targets: dict[WorkerId, list[deque[tuple[ChannelId, Element]]]] = {}
        self._changes: deque[Deploy | Spawn | tuple[WorkerId, ...]] = deque()
        self._answers: deque[StorageAnswer] = deque()
        self._woken, self._begun = threading.Event(), threading.Event()
        self._saved = JobStorage(plan, config, savepoint=savepoint, claim=claim)
        self._logs = False
        core = JobCore(plan, config, self._saved.restore_point())
        self._storage = StorageThread(plan.name, self._saved, self._answered)
        self._interpreter = JobInterpreter(core, self, self._storage, JobClock())
        self._heartbeat = Heartbeat(plan.name, self._saved, self._taken_over)
        self._set_log_level()
        self._thread = threading.Thread(target=self._run, name=f"evenflow-{plan.name}", daemon=True)
        self._thread.start()
        self._begun.wait(seconds(config.worker.start_timeout))

    def ask(self, request: Request[A]) -> A:
        answer = self._interpreter.ask(request)
        if isinstance(request, ChangeSettings):
            self._set_log_level()
        if isinstance(request, ChangeRequest):
            self._woken.set()
        return answer

    def _set_log_level(self) -> None:
        """Log in this process as the job's settings say, until it ends, if they say anything."""
        if (level := self._interpreter.core.record.config.log_level) is not None:
            self._logs = True
            set_log_level(level)

    def close(self) -> None:
        """Wait for the thread; the job has ended or was cancelled."""
        self._thread.join(timeout=30)

    def tell(self, worker: WorkerId, command: Command) -> None:
        """Queue a command for the worker's next turn, so that its consequences can't get between two effects."""
        if isinstance(command, Attach):
            self._channels.receivers.update((c.id, self._queues[c.receiver]) for c in (*command.accept, *command.connect))
        if worker in self._commands:
            self._commands[worker].append(command)

    def deploy(self, wanted: Deploy) -> None:
        self._changes.append(wanted)

    def spawn(self, wanted: Spawn) -> None:
        self._changes.append(wanted)

    def retire(self, workers: tuple[WorkerId, ...]) -> None:
        self._changes.append(workers)

    def use_nodes(self, avoid: frozenset[str], prefer: frozenset[str]) -> None:
        """Do nothing: there is one process."""

    def reserve(self, workers: Sequence[WorkerId], *, hurry: bool) -> None:
        """Do nothing: there is one process."""

    def ask_for_room(self, nodes: int) -> None:
        """Do nothing: there is one process."""

    def leave_node(self) -> None:
        """Do nothing: there are no nodes."""

    def view(self, *, oldest: float | None) -> None:
        return None

    def long_calls(self) -> dict[WorkerId, LongCall]:
        found = {name: runner.running.long_call() for name, runner in self._runners.items()}
        return {name: call for name, call in found.items() if call is not None}

    def _answered(self, answer: StorageAnswer) -> None:
        """Queue an answer for the next turn of the job's own thread, which would hold the lock for too long in this one."""
        self._answers.append(answer)
        self._woken.set()

    def _taken_over(self, why: EvenflowError) -> None:
        self._answered(StorageFailed(why))

    def _change(self) -> bool:
        """Add and remove workers between two rounds; return True if there were changes."""
        changed = bool(self._changes)
        while self._changes:
            change = self._changes.popleft()
            if isinstance(change, Deploy):
                self._deploy(change)
            elif isinstance(change, Spawn):
                self._join(change)
            else:
                for name in change:
                    if name in self._runners:
                        self._runners.pop(name).close()
            self._connect(self._interpreter.core.plan)
        return changed

    def _join(self, change: Spawn) -> None:
        for name in change.workers:
            self._queues[name], self._commands[name] = deque(), deque()
        self._channels.receivers.update((channel.id, self._queues[channel.receiver]) for channel in change.plan.channels)
        for task in change.plan.tasks:
            if task.name in change.workers:
                self._channels.workers[task.number] = self._queues[task.name]
                self._runners[task.name] = self._runner(task, change.attempt, None)
                self._runners[task.name].open()
                self._interpreter.ready(task.name, change.attempt)

    def _connect(self, plan: Plan) -> None:
        """Compute the queues that each task feeds: it waits while one of them is full."""
        self._channels.receivers.update((channel.id, self._queues[channel.receiver]) for channel in plan.channels)
        fed: dict[WorkerId, set[WorkerId]] = {name: set() for name in self._runners}
        for channel in plan.channels:
            if channel.sender in fed:
                fed[channel.sender].add(channel.receiver)
        self._targets = {name: [self._queues[receiver] for receiver in receivers] for name, receivers in fed.items()}

    def _deploy(self, wanted: Deploy) -> None:
        """Begin attempt `wanted.attempt`; everything of the previous one is discarded."""
        plan = wanted.plan
        for runner in self._runners.values():
            runner.close()
        self._queues = {task.name: deque() for task in plan.tasks}
        self._commands = {task.name: deque() for task in plan.tasks}
        self._channels, self._runners = _Queues(workers={task.number: self._queues[task.name] for task in plan.tasks}), {}
        try:
            restored = self._saved.restored(wanted.manifest, plan)
        except EvenflowError as error:
            self._interpreter.not_deployed(wanted.attempt, error)
            return
        self._runners = {task.name: self._runner(task, wanted.attempt, restored.get(task.name)) for task in plan.tasks}
        self._connect(plan)
        for name, runner in self._runners.items():
            runner.open()
            self._interpreter.ready(name, wanted.attempt)

    def _runner(self, task: TaskSpec, attempt: Attempt, restored: RestoredTask | None) -> TaskInterpreter:
        job = self._interpreter.core.name

        def report(message: Report) -> None:
            self._interpreter.report(task.name, attempt, message)

        return real_task(
            task.of_attempt(job, attempt),
            self._channels,
            report,
            self._config.of_run(job),
            restored,
        )

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as raised:  # noqa: BLE001 -- only this thread can end the job, and `wait` would never return
            error = cleared(raised)
            with self._interpreter.lock:
                problem = JobFailedError(f"job `{self._interpreter.core.name}` failed: {shown(error)}\n{''.join(format_exception(error))}")
                self._interpreter.ask(Fail(error if isinstance(error, EvenflowError) else problem))
                for runner in self._runners.values():
                    runner.close()
        finally:
            self._begun.set()
            self._storage.close(STORAGE_PATIENCE)
            self._heartbeat.close()
            self._saved.note_end(self._interpreter.core.end_note)
            if self._logs:
                set_log_level(None)

    def _work(self) -> None:
        self._interpreter.begin()
        ticks_at = 0.0
        while True:
            with self._interpreter.lock:
                while self._answers:
                    self._interpreter.stored(self._answers.popleft())
                if self._ended():
                    break
                busy = self._change()
                if (now := monotonic()) >= ticks_at:
                    self._interpreter.tick()
                    ticks_at = now + TICK
                self._ended()
            # Without the lock, so that requests are answered while a function runs: only this thread changes the tasks.
            for name, runner in list(self._runners.items()):
                busy = self._step(name, runner) or busy
            if not busy:
                self._woken.wait(self._pause())
                self._woken.clear()
        with self._interpreter.lock:
            for runner in self._runners.values():
                self._measure(runner.spec.name, runner)
                runner.close()

    def _ended(self) -> bool:
        """Return True if the job has ended. Also signals its beginning to waiting threads."""
        state = self._interpreter.core.state
        if state is not JobState.STARTING and not self._begun.is_set():
            self._begun.set()
        return state.final

    def _step(self, name: WorkerId, runner: TaskInterpreter) -> bool:
        """Run one turn of a task. Return True if it did anything."""
        queue, commands, busy = self._queues[name], self._commands[name], False
        while commands:
            runner.command(commands.popleft())
            busy = True
        full = self._full(name)
        while queue and not full and not runner.task.outputs.paused and not runner.over:
            runner.receive(*queue.popleft())
            busy = True
            full = self._full(name)
        if not full and not runner.task.outputs.paused:
            busy = runner.replay() or busy
        busy = runner.give() or busy
        runner.report_arrived()
        busy = runner.install(behind=bool(queue)) or busy
        busy = runner.save(behind=True) or busy  # the one thread has other records to process
        if runner.is_source and not full and not runner.task.outputs.paused:
            busy = runner.poll(self._config.network.source_rows) > 0 or runner.over or busy
        if not busy or not runner.is_source:
            runner.idle()
        else:
            runner.flush_if_due()
        if runner.meter.due():
            self._measure(name, runner)
        return busy or any(self._targets[name])

    def _measure(self, name: WorkerId, runner: TaskInterpreter) -> None:
        batches = [element.num_rows for _, element in self._queues[name] if type(element) is Batch]
        runner.measure(len(batches), sum(batches), 0)

    def _full(self, name: WorkerId) -> bool:
        for target in self._targets[name]:  # noqa: SIM110 -- asked after every element; a generator would cost thrice as much
            if len(target) >= QUEUE_LIMIT:
                return True
        return False

    def _pause(self) -> float:
        waits = [runner.sleep_for() for runner in self._runners.values() if runner.is_source or _works_between(runner)]
        return min([0.05, *waits])


def _works_between(runner: TaskInterpreter) -> bool:
    """Return True if a task has work between two batches, or rests."""
    task = runner.task
    return runner.resting or task.giving or task.replaying or task.installing or task.saving
