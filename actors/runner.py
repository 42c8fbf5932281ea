"""The runner: one task with its source reader, clock and meter, between the elements that come in and those that go out.

Both drivers that use real time, Ray and local, run their tasks through it; they differ in what carries the elements.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable

from ..engine.batch import Batch
from ..engine.elements import Element
from ..engine.errors import EvenflowError, JobError
from ..engine.exchange import Sent
from ..engine.operators.read import Read
from ..engine.source import SourceReader
from ..engine.task import Consumed, Effect, Finished, Latency, TaskCore, TaskSpec
from ..scheduler.messages import Announce, Announced, BeginCheckpoint, Command, Failed, Report, Resume, StopSource, Switch
from .meter import Meter

IDLE = 0.1
"""Seconds that a worker without a source may sleep: what comes in wakes it earlier."""

GIVING = 1 / 3
"""The part of its time that a worker spends at most on giving state away in the background: whoever takes it has work with it too, before
its own records, and would fall behind."""


class Runner:
    """Used by one thread. `send(channel, element)` must not block; `report` is told what the coordinator must know, `consumed` which
    received batches are done with.

    An error in the task is reported once, as `Failed`; after it the runner is `over` and does nothing more.
    """

    def __init__(
        self,
        spec: TaskSpec,
        send: Callable[[int, Element], None],
        report: Callable[[Report], None],
        consumed: Callable[[int, Batch], None],
        *,
        source_rows: int,
        metrics_window: float,
        latency_interval: float,
    ) -> None:
        self.spec, self._send, self._report, self._consumed = spec, send, report, consumed
        self.task = TaskCore(spec)
        self.meter = Meter(self.task, metrics_window)
        self.over = False
        self._source_rows = source_rows
        self._latency_interval = latency_interval
        self._next_mark = 0.0
        self._give_at = 0.0
        self._reader: SourceReader | None = None

    def open(self) -> None:
        """Make the reader and the operators; an error becomes a report."""
        self._guard(self._open)

    def _open(self) -> None:
        self.task.open()
        head = self.spec.chain[0].operator
        if isinstance(head, Read):
            self._reader = head.source.reader(self.spec.index, self.spec.parallelism)

    @property
    def is_source(self) -> bool:
        """Whether it still has something to poll."""
        return self._reader is not None and not self.over

    def receive(self, channel: int, element: Element) -> None:
        """An element has come in."""
        self._work(lambda now: self.task.receive(channel, element, now))

    def poll(self) -> bool:
        """Poll the source once; whether it gave something. Only for a source."""
        before = self.task.rows_in
        self._work(self._poll)
        return self.task.rows_in > before or self.over

    def _poll(self, now: float) -> list[Effect]:
        reader = self._reader
        if reader is None:
            return []
        batch = reader.poll(self._source_rows)
        effects: list[Effect] = []
        if batch is not None and now >= self._next_mark:
            self._next_mark = now + self._latency_interval
            effects += self.task.mark(time.time_ns(), now)
        effects += self.task.polled(batch, reader.watermark(), now)
        if batch is None and reader.finished:
            effects += self.task.exhausted(now)
        return effects

    def sleep_for(self) -> float:
        """Seconds until there may be something to do: until the source may have something, or more state may be given."""
        if self.over:
            return IDLE
        until = self._reader.ready_in() if self._reader is not None else IDLE
        return min(until, max(0.0, self._give_at - time.monotonic())) if self.task.giving else until

    def idle(self) -> None:
        """Nothing waits to be processed: let the buffers go."""
        if self.task.waits:
            self._work(self.task.idle)

    def flush_if_due(self) -> None:
        """Let the buffers go if a row has waited for longer than `linger`."""
        if self.task.flush_due(time.monotonic()):
            self._work(self.task.idle)

    def command(self, command: Command) -> None:
        """Carry out a command from the coordinator, if this worker still is what it is for."""
        if isinstance(command, Announce):
            self._guard(lambda: self._announce(command))
        elif isinstance(command, Switch):
            version = command.version
            self._work(lambda now: self.task.switch(version, now))
        elif isinstance(command, Resume):
            self._work(self.task.resume)
        elif not self.is_source:
            return
        elif isinstance(command, BeginCheckpoint):
            checkpoint = command.checkpoint
            self._work(lambda now: self.task.barrier(checkpoint, now))
        elif isinstance(command, StopSource):
            self._work(self.task.exhausted)

    def give(self) -> bool:
        """Give a chunk of the state that moves away in the background, if it is time for one; whether it was."""
        begun = time.monotonic()
        if not self.task.giving or self.over or begun < self._give_at:
            return False
        self._work(self.task.give)
        now = time.monotonic()
        self._give_at = now + (now - begun) * (1 / GIVING - 1)
        return True

    def _announce(self, announcement: Announce) -> None:
        self.task.announce(announcement.stage, announcement.steps)
        self._report(Announced(announcement.number))

    def fail(self, error: Exception) -> None:
        """The worker can't go on, for a cause outside its task."""
        if not self.over:
            self.over = True
            self._report(Failed(_own(error, self.spec.name)))

    def close(self) -> None:
        """Let go of the reader and the sinks."""
        self.task.close()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _work(self, step: Callable[[float], Iterable[Effect]]) -> None:
        self._guard(lambda: self._timed(step))

    def _timed(self, step: Callable[[float], Iterable[Effect]]) -> None:
        start = time.monotonic()
        for effect in step(start):
            self._carry_out(effect)
        self.meter.add_useful(time.monotonic() - start)

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Sent):
            self._send(effect.channel, effect.element)
        elif isinstance(effect, Consumed):
            self._consumed(effect.channel, effect.batch)
        elif isinstance(effect, Latency):
            self.meter.latencies.append((time.time_ns() - effect.created) / 1e6)
        else:
            if isinstance(effect, Finished):
                self.over = True
            self._report(effect)

    def _guard(self, step: Callable[[], None]) -> None:
        if self.over:
            return
        try:
            step()
        except Exception as error:  # noqa: BLE001 -- whatever a user's function or source raises must reach the user
            self.fail(error)


def _own(error: Exception, worker: str) -> EvenflowError:
    if isinstance(error, EvenflowError):
        return error
    trace = "".join(traceback.format_exception(error))
    return JobError(f"worker {worker} failed: {type(error).__name__}: {error}\n{trace}")
