"""The runner: one task with its source reader, clock and meter, between the elements that come in and those that go out.

Both drivers that use real time, Ray and local, run their tasks through it; they differ in what carries the elements.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ..engine.batch import Batch
from ..engine.errors import JobFailedError, ProtocolError, is_own, shown
from ..engine.operators.read import Read
from ..engine.plan.task_spec import TaskSpec
from ..engine.protocol.effects import Consumed, Effect, Finished, Latency, Prepared, Saved
from ..engine.protocol.elements import Element
from ..engine.protocol.exchange import Sent
from ..engine.snapshots.chain import resolved
from ..engine.source import SourceReader
from ..engine.task import TaskCore
from ..scheduler.messages import (
    Announce,
    Announced,
    Attach,
    Attached,
    BeginCheckpoint,
    CheckpointFailed,
    Command,
    Detach,
    ExpectRewind,
    Failed,
    PauseSource,
    Report,
    Rescaling,
    Resume,
    ResumeSource,
    SourcePaused,
    StopSource,
    Switch,
    TakeSource,
)
from ..scheduler.restore import RestoredTask
from ..state.errors import CorruptCheckpointError, CorruptStateError, EvenflowError, StateBackendError
from ..state.store import CheckpointStore
from .meter import Meter
from .state_writer import StateWriter

IDLE = 0.1
"""Seconds that a worker without a source may sleep: what comes in wakes it earlier."""

SAVING = 0.001
"""Seconds that a worker sleeps at least while chunks of state wait to be written."""

SAVE_SECONDS = 0.003
"""Seconds for which a worker makes chunks of state at a time: between two batches, which may take it far longer."""

SAVE_SHARE, SAVE_SOON = 0.15, 3.0
"""The part of its time that a worker spends at most on chunks of state for a checkpoint, for so many seconds: whoever writes them needs a
processor too, and the records that come meanwhile wait for it. Then it is GIVING: what comes while a checkpoint is made comes again after a
failure."""

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
        metrics_window: float,
        latency_interval: float,
        store_url: str | None = None,
        restored: RestoredTask | None = None,
    ) -> None:
        self.spec, self._send, self._report, self._consumed = spec, send, report, consumed
        self._restored = restored
        self._writer = StateWriter(CheckpointStore(store_url), spec.name) if store_url is not None else None
        self.task = TaskCore(spec)
        self.meter = Meter(self.task, metrics_window)
        self.over = False
        self._latency_interval = latency_interval
        self._next_mark = 0.0
        self._give_at = self._save_at = 0.0
        self._saving_since = math.inf
        self._paused = False
        self._reader: SourceReader | None = None

    def open(self) -> None:
        """Make the reader and the operators; an error becomes a report."""
        self._guard(self._open)

    def _open(self) -> None:
        self.task.open()
        head = self.spec.chain[0].operator
        if isinstance(head, Read) and not self.spec.joining:
            self._reader = head.source.reader(self.spec.index, self.spec.parallelism)
        if self._restored is not None:
            self._restore(self._restored)

    def _restore(self, restored: RestoredTask) -> None:
        """Raises CorruptCheckpointError if a file is not what was written."""
        self.task.restore(restored.watermark)
        store = CheckpointStore(restored.url)
        if restored.table is not None:
            try:
                for chain in restored.chains:
                    for chunk in resolved(store.chunks(restored.checkpoint, file) for file in reversed(chain)):
                        self.task.install(Batch(chunk), restored.table)
            except CorruptStateError as error:
                raise CorruptCheckpointError(self.spec.name, restored.checkpoint, str(error)) from error
            if restored.goes_on and restored.checkpoint:
                self.task.go_on_from(restored.checkpoint, restored.chains[0])
        if self._reader is not None and restored.position is not None:
            self._reader.seek(restored.position)

    @property
    def is_source(self) -> bool:
        """Whether it still has something to poll."""
        return self._reader is not None and not self.over and not self._paused

    @property
    def backlog(self) -> int | None:
        """Rows that its source has and that it has not read, None where that isn't known."""
        return self._reader.backlog() if self._reader is not None and not self.over else None

    def receive(self, channel: int, element: Element) -> None:
        """An element has come in."""
        self._work(lambda now: self.task.receive(channel, element, now))

    def poll(self, rows: int) -> int:
        """Poll the source once, for about so many rows at most; how many it gave. Only for a source."""
        before = self.task.rows_in
        self._work(lambda now: self._poll(rows, now))
        return self.task.rows_in - before

    def _poll(self, rows: int, now: float) -> list[Effect]:
        reader = self._reader
        if reader is None:
            return []
        batch = reader.poll(rows)
        effects: list[Effect] = []
        if batch is not None and now >= self._next_mark:
            self._next_mark = now + self._latency_interval
            effects += self.task.mark(time.time_ns(), now)
        effects += self.task.polled(batch, reader.watermark(), now)
        if not (batch and batch.num_rows) and reader.finished:
            effects += self.task.exhausted(now)
        return effects

    def sleep_for(self) -> float:
        """Seconds until there may be something to do: until the source may have something, or more state may be given."""
        if self.over:
            return IDLE
        until = self._reader.ready_in() if self._reader is not None else IDLE
        now = time.monotonic()
        if self.task.giving:
            until = min(until, max(0.0, self._give_at - now))
        return min(until, max(SAVING, self._save_at - now)) if self.task.saving else until

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
        if isinstance(command, (Attach, Detach, PauseSource, ExpectRewind, TakeSource, ResumeSource)):
            self._guard_rescaling(command)
        elif isinstance(command, Announce):
            self._guard(lambda: self._announce(command))
        elif isinstance(command, Switch):
            version = command.version
            self._work(lambda now: self.task.switch(version, now))
        elif isinstance(command, Resume):
            self._work(self.task.resume)
        elif self._reader is None or self.over:
            return
        elif isinstance(command, BeginCheckpoint):
            checkpoint, base = command.checkpoint, command.base
            self._work(lambda now: self.task.barrier(checkpoint, now, base))
        elif isinstance(command, StopSource):
            self._work(self.task.exhausted)

    def _guard_rescaling(self, command: Rescaling) -> None:
        """Also a task that has finished answers: others wait for it."""
        try:
            self._rescale(command, time.monotonic())
        except BaseException as error:  # noqa: BLE001 -- a source's share may be refused by whatever it reads
            self.fail(error)

    def _rescale(self, command: Rescaling, now: float) -> None:
        task = self.task
        if isinstance(command, Attach):
            self._carry_out_all(task.attach(command.inputs, command.outputs, command.peers, now))
            self._report(Attached(command.token, task.finished))
        elif isinstance(command, Detach):
            self._carry_out_all(task.detach(command.outputs, command.peers, now))
            self._report(Attached(command.token))
        elif isinstance(command, ExpectRewind):
            self._carry_out_all(task.expect_rewind(command.channels))
            self._report(Attached(command.token))
        elif isinstance(command, PauseSource):
            self._paused = True
            self._report(SourcePaused(command.token, self._position(), self.over))
        elif not self.over:
            self._paused = False
            if isinstance(command, TakeSource):
                self._take_source(command, now)

    def _take_source(self, share: TakeSource, now: float) -> None:
        if share.position is None:
            self._work(self.task.exhausted)
            return
        head = self.spec.chain[0].operator
        if not isinstance(head, Read):
            raise ProtocolError(f"task {self.spec.name} reads no source")
        if self._reader is not None:
            self._reader.close()
        self._reader = head.source.reader(share.index, share.parallelism)
        self._reader.seek(share.position)
        self._carry_out_all(self.task.rewind(head.source.earliest(share.position), now))

    def _carry_out_all(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self._carry_out(effect)

    def give(self) -> bool:
        """Give a chunk of the state that moves away in the background, if it is time for one; whether it was."""
        begun = time.monotonic()
        if not self.task.giving or self.over or begun < self._give_at:
            return False
        self._work(self.task.give)
        now = time.monotonic()
        self._give_at = now + (now - begun) * (1 / GIVING - 1)
        return True

    def save(self) -> bool:
        """Make chunks of the state that goes into a checkpoint, if it is time for some; report what is written. Whether it did anything."""
        if self._writer is None or self.over:
            return False
        self._report_saved(self._writer.take())
        begun = time.monotonic()
        if not self.task.saving:
            self._saving_since = math.inf
        if not self.task.saving or self._writer.busy or begun < self._save_at:
            return False
        self._saving_since = min(self._saving_since, begun)
        now = begun
        while self.task.saving and not self._writer.busy and not self.over and now - begun < SAVE_SECONDS:
            self._work(self.task.save)
            now = time.monotonic()
        share = SAVE_SHARE if now < self._saving_since + SAVE_SOON else GIVING
        self._save_at = now + (now - begun) * (1 / share - 1)
        return True

    def _report_saved(self, reports: Iterable[Prepared | CheckpointFailed]) -> None:
        for report in reports:
            self._report(report)

    def _announce(self, announcement: Announce) -> None:
        self.task.announce(announcement.stage, announcement.steps)
        self._report(Announced(announcement.number))

    def measure(self, queued: int, queued_rows: int, refused: int) -> None:
        """Report the window's figures; state that can't be asked for its size fails the task, as any work on it does."""
        try:
            window = self.meter.take(queued, queued_rows, refused, self.backlog)
        except StateBackendError as error:
            self.fail(error)
        else:
            self._report(window)

    def fail(self, error: BaseException) -> None:
        """The worker can't go on, for a cause outside its task."""
        if not self.over:
            self.over = True
            self._report(Failed(_own(error, self.spec.name)))

    def close(self) -> None:
        """Let go of the reader and the sinks."""
        self.task.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
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
        elif isinstance(effect, Saved):
            if self._writer is not None:
                self._writer.write(effect.checkpoint, effect.chunk)
        elif isinstance(effect, Prepared):
            self._prepared(replace(effect, position=self._position()))
        elif isinstance(effect, Finished):
            if self._writer is not None:
                self._report_saved(self._writer.flush())
            self.over = True
            self._report(replace(effect, position=self._position()))
        else:
            self._report(effect)

    def _prepared(self, prepared: Prepared) -> None:
        if self._writer is not None:
            self._writer.finish(prepared)
        else:
            self._report(prepared)

    def _position(self) -> Any:
        return self._reader.position() if self._reader is not None else None

    def _guard(self, step: Callable[[], None]) -> None:
        if self.over:
            return
        try:
            step()
        except BaseException as error:  # noqa: BLE001 -- whatever a user's function or source raises must reach the user
            self.fail(error)


def _own(error: BaseException, worker: str) -> EvenflowError:
    if isinstance(error, EvenflowError) and is_own(error):
        return error
    trace = "".join(traceback.format_exception(error))
    return JobFailedError(f"worker {worker} failed: {shown(error)}\n{trace}")
