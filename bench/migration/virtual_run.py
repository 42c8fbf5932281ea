"""A job on virtual processors: its real tasks, each on a clock that advances by the processor time that its own work takes.

Every worker has a processor of its own, whatever else the machine does, so slices of time and latencies can be compared on a busy
machine. State and rows are encoded and decoded as on a channel; a message arrives `TRANSIT` later. Credit never runs out.

Invariant: a turn begins only when every turn that began earlier is over, so a message never arrives in a worker's past.
"""

from __future__ import annotations

import gc
import heapq
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

from ...actors.channels.frames import ChannelDecoder, ChannelEncoder
from ...actors.channels.headers import unpack
from ...actors.task.input_queues import InputQueues
from ...actors.task.pacing import Pacing
from ...actors.task.task_interpreter import TaskInterpreter
from ...actors.task.task_ports import TaskPorts
from ...actors.task.task_run import STATE_SECONDS, TURN, TURN_SECONDS
from ...engine.batch import Batch
from ...engine.plan.physical import Plan
from ...engine.plan.task_spec import TaskSpec
from ...engine.protocol.elements import Element, FetchRequest, Marker
from ...engine.protocol.ids import Attempt, ChannelId, WorkerId
from ...engine.protocol.state_channels import is_state_channel, receiver_of
from ...engine.source import Source, SourceReader
from ...scheduler.load.window import WorkerWindow
from ...scheduler.protocol.messages import Command, Failed, Report

TRANSIT, CONTROL = 0.0002, 0.002
"""Seconds that a message takes from worker to worker, and to or from the coordinator."""

ROWS = 8192


@dataclass(frozen=True, slots=True)
class Slice:
    """A piece of work of a worker: when it began, its kind, its processor seconds, and the elements that waited for it."""

    at: float
    kind: str
    seconds: float
    waiting: int


class VirtualClock:
    """The clock of one worker: it advances by the processor time of the thread between `begin` and `end`."""

    def __init__(self) -> None:
        self._at = self._begun = 0.0
        self._runs = False

    def begin(self, at: float) -> None:
        self._at, self._begun, self._runs = max(self._at, at), time.thread_time(), True

    def end(self) -> None:
        self._at, self._runs = self.now(), False

    def now(self) -> float:
        return self._at + time.thread_time() - self._begun if self._runs else self._at

    def timestamp(self) -> int:
        return int(self.now() * 1e9)


class DueSource(Source):
    """Every key once at full speed, then `rate` rows a second by the clock of the worker, every millisecond.

    Columns `key` and `created`: when the row was due, in ns of the virtual clock, 0 for the first of each key.
    """

    parallelism = 1
    guarantee = "none (it only measures)"

    def __init__(self, keys: int, rate: float, run: list[VirtualRun]) -> None:
        self.name, self.keys, self.per_second, self.run = "due", keys, rate, run
        self.begun: float | None = None
        """The time at which the steady rate begins."""

    def reader(self, index: int, parallelism: int) -> SourceReader:
        return _DueReader(self)


class _DueReader(SourceReader):
    finished = False

    def __init__(self, source: DueSource) -> None:
        self._source, self._given = source, 0
        self._random = np.random.default_rng(7)

    def poll(self, max_rows: int) -> Batch | None:
        source, now = self._source, self._source.run[0].now()
        if self._given < source.keys:
            keys = np.arange(self._given, min(self._given + ROWS, source.keys))
            created = np.zeros(len(keys), np.int64)
        elif (begun := source.begun) is None:
            return None
        else:
            given = self._given - source.keys
            due = int((now - begun) * 1e3) / 1e3 * source.per_second
            numbers = np.arange(given, min(given + max_rows, int(due)))
            created = ((begun + numbers / source.per_second) * 1e9).astype(np.int64)
            keys = self._random.integers(0, source.keys, len(numbers))
        self._given += len(keys)
        return Batch(pa.record_batch({"key": keys, "created": created})) if len(keys) else None

    def position(self) -> Any:
        return self._given

    def seek(self, position: Any) -> None:
        self._given = position

    def ready_in(self) -> float:
        source = self._source
        if self._given < source.keys:
            return 0.0
        now = source.run[0].now() - (source.begun or 0.0)
        return max(0.0, (int(now * 1e3) + 1) / 1e3 - now)


class _NoMeter:
    def add_useful(self, elapsed: float) -> None:
        pass

    add_latency = add_useful

    def starved(self) -> float:
        return 0.0

    def due(self) -> bool:
        return False

    def waiting(self, *, for_credit: bool) -> AbstractContextManager[None]:
        return nullcontext()

    def take(self, *figures: Any) -> WorkerWindow:
        raise NotImplementedError("windows are not measured on virtual processors")


class VirtualWorker:
    """A worker on a processor of its own: `TaskRun`'s turns, without sockets."""

    def __init__(self, run: VirtualRun, spec: TaskSpec) -> None:
        self.name, self._run = spec.name, run
        self.clock = VirtualClock()
        ports = TaskPorts(self, self.clock, self._report, Pacing(spec.settings.linger), lambda _: _NoMeter())
        self.interpreter = TaskInterpreter(spec, ports)
        self.slices: list[Slice] = []
        self.commands: list[tuple[float, int, Command]] = []
        self.arrivals: list[tuple[float, int, ChannelId, list[Any]]] = []
        self.asleep_until = 0.0
        self._pending = InputQueues()
        self._state: deque[tuple[ChannelId, Element]] = deque()
        self._encoders: dict[ChannelId, ChannelEncoder] = {}
        self._decoders: dict[ChannelId, ChannelDecoder] = {}
        self._asked: set[ChannelId] = set()
        """State channels whose next batch holds the keys of a request."""

    def send(self, channel: ChannelId, element: Element) -> None:
        encoder = self._encoders.setdefault(channel, ChannelEncoder(channel, Attempt(0), self.name))
        self._run.deliver(channel, encoder.encode(element), self.clock.now() + TRANSIT)

    def consumed(self, channel: ChannelId, batch: Batch) -> None:
        """Return no credit: it never runs out."""

    def _report(self, report: Report) -> None:
        if isinstance(report, Failed):
            raise report.error
        self._run.reported(self.clock.now() + CONTROL, self.name, report)

    @property
    def next_turn(self) -> float:
        """The time at which it has something to do."""
        waits = [0.0 if self._state else self.asleep_until, *(events[0][0] for events in (self.arrivals, self.commands) if events)]
        return max(self.clock.now(), min(waits))

    def turn(self, at: float) -> None:
        """Do what `TaskRun` does in a turn, and in the commands before it."""
        interpreter, clock = self.interpreter, self.clock
        clock.begin(at)
        while self.commands and self.commands[0][0] <= clock.now():
            command = heapq.heappop(self.commands)[2]
            self._slice(type(command).__name__.lower(), interpreter.command, command)
        self._receive()
        taken, until = int(self._slice("replay", interpreter.replay)), clock.now() + TURN_SECONDS
        while self._pending and taken < TURN and clock.now() < until:
            channel, element = self._pending.take()
            kind = "batch" if isinstance(element, Batch) else "marker" if isinstance(element, Marker) else "signal"
            if isinstance(element, Batch) and (more := self._pending.take_more(channel, element)):
                element = Batch.concat([element, *more])
            self._slice(kind, interpreter.receive, channel, element)
            taken += 1
        interpreter.report_arrived()
        taken += self._slice("give", interpreter.give)
        polled = interpreter.is_source and self._slice("poll", interpreter.poll, ROWS) > 0
        if taken or polled:
            interpreter.flush_if_due()
            self.asleep_until = 0.0
        else:
            interpreter.idle()
            self.asleep_until = clock.now() + interpreter.sleep_for()
        clock.end()

    def _receive(self) -> None:
        while self.arrivals and self.arrivals[0][0] <= self.clock.now():
            _, _, channel, frames = heapq.heappop(self.arrivals)
            decoder = self._decoders.setdefault(channel, ChannelDecoder(channel, Attempt(0)))
            element = decoder.decode(unpack(frames[0]), frames[1:])
            if is_state_channel(channel):
                self._state.append((channel, element))
            else:
                self._pending.put(channel, element)
        until = self.clock.now() + STATE_SECONDS
        while self._state and self.clock.now() < until:
            channel, element = self._state.popleft()
            kind = type(element).__name__
            if isinstance(element, FetchRequest):
                self._asked.add(channel)
            elif isinstance(element, Batch):
                kind = "answer" if channel in self._asked else "install"
                self._asked.discard(channel)
            self._slice(kind, self.interpreter.receive, channel, element)

    def _slice(self, kind: str, work: Callable[..., Any], *given: Any) -> Any:
        begun = self.clock.now()
        done = work(*given)
        if done is not False and done != 0:
            self.slices.append(Slice(begun, kind, self.clock.now() - begun, len(self._pending)))
        return done


class VirtualRun:
    """The workers of a plan. `reported` is called with each report that arrives at the coordinator."""

    def __init__(self, plan: Plan) -> None:
        self._number = count()
        self._reports: list[tuple[float, int, WorkerId, Report]] = []
        self._current: VirtualWorker | None = None
        self.at = 0.0
        self.workers = {task.name: VirtualWorker(self, task) for task in plan.tasks}
        self._receivers = {channel.id: self.workers[channel.receiver] for channel in plan.channels}
        self._numbered = {task.number: self.workers[task.name] for task in plan.tasks}

    def now(self) -> float:
        """Return the time of the worker whose turn it is."""
        return self.at if self._current is None else self._current.clock.now()

    def open(self) -> None:
        """Open all tasks."""
        for worker in self.workers.values():
            worker.interpreter.open()

    def deliver(self, channel: ChannelId, frames: list[Any], at: float) -> None:
        """Let a message arrive at its receiver at a time."""
        receiver = self._numbered[receiver_of(channel)] if is_state_channel(channel) else self._receivers[channel]
        heapq.heappush(receiver.arrivals, (at, next(self._number), channel, frames))

    def reported(self, at: float, worker: WorkerId, report: Report) -> None:
        """Let a report arrive at the coordinator at a time."""
        heapq.heappush(self._reports, (at, next(self._number), worker, report))

    def tell(self, commands: Sequence[tuple[WorkerId, Command]]) -> None:
        """Send commands now."""
        for worker, command in commands:
            heapq.heappush(self.workers[worker].commands, (self.at + CONTROL, next(self._number), command))

    def run(self, until: float, note: Callable[[WorkerId, Report], bool] | None = None) -> None:
        """Let turns happen until a time, or until `note` returns True for a report."""
        while self.at < until:
            worker = min(self.workers.values(), key=lambda worker: worker.next_turn)
            self.at = worker.next_turn
            if self._reports and self._reports[0][0] <= self.at:
                self.at, _, name, report = heapq.heappop(self._reports)
                if note is not None and note(name, report):
                    return
                continue
            self._current = worker
            worker.turn(self.at)
            self._current = None


def settle_memory() -> None:
    """Keep the state of the jobs out of the garbage collector's rounds, as `TaskRun` does."""
    gc.collect()
    gc.freeze()
