"""A task in real time: its work is measured, and what it does in the background is kept to a share of its time.

Invariant: of any stretch of time in which state is given away or made for a checkpoint, what is left is at least the share that these leave
to records.
"""

from __future__ import annotations

import math

from ...engine.plan.task_spec import TaskSpec
from ...engine.protocol.effects import Latency
from ...engine.time.duration import seconds
from ...scheduler.configs.run import RunConfig
from ...scheduler.record.restoring.restored_task import RestoredTask
from ...state.errors import StateBackendError
from ...state.store import CheckpointStore
from .meter import Meter
from .outside_work import OutsideWork
from .state_writer import StateWriter
from .system_clock import SystemClock
from .task_interpreter import TaskInterpreter
from .task_ports import Channels, Reports, TaskPorts

FEW = 8
"""A source that has given fewer rows when it has no more for now is left alone for the job's linger, so that more come at once: to take
rows one by one costs a core's time for a few thousand a second, here and in every worker behind."""

IDLE = 0.1
"""Seconds that a worker without a source may sleep: what comes in wakes it earlier."""

SAVING = 0.001
"""Seconds that a worker sleeps at least while chunks of state wait to be written."""

SAVE_SECONDS = 0.003
"""Seconds for which a worker makes chunks of state at a time: between two batches, which may take it far longer."""

SAVE_SHARE, SAVE_SOON = 0.15, 3.0
"""The largest part of its time that a worker spends on chunks of state for a checkpoint, for the first `SAVE_SOON` seconds. Writing them
takes a processor too, and records wait for it meanwhile. After that time it is `GIVE_SHARE`: what comes while a checkpoint is made comes
again after a failure."""

GIVE_SHARE = 1 / 3
"""The largest part of its time that a worker spends on giving state away in the background: the worker that takes it has work with it too,
before its own records, and would fall behind."""


class MeteredTask(TaskInterpreter):
    """`restored`: what it goes on from; None: the beginning."""

    def __init__(
        self,
        spec: TaskSpec,
        channels: Channels,
        reports: Reports,
        config: RunConfig,
        restored: RestoredTask | None = None,
    ) -> None:
        writer = StateWriter(CheckpointStore(config.store_url), spec.name) if config.store_url is not None else None
        saved = CheckpointStore(restored.url) if restored is not None else None
        outside = OutsideWork(spec.name) if any(chained.operator.works_outside for chained in spec.chain) else None
        super().__init__(spec, TaskPorts(channels, SystemClock(), reports, writer, saved, outside), restored)
        self.meter = Meter(self.task, seconds(config.metrics.window), samples=config.metrics.samples)
        self._latency_interval = seconds(config.metrics.latency_interval)
        self._next_mark = 0.0
        self._linger = spec.settings.linger
        self._gather_until, self._rows_at_once = 0.0, 0
        self._give_at = self._save_at = 0.0
        self._saving_since = math.inf

    def poll(self, rows: int, *, mark: bool = False) -> int:
        """As of every task, with a latency mark whenever the last one was sent an interval ago; nothing while few rows gather."""
        now = self._now()
        if now < self._gather_until:
            return 0
        due = mark or now >= self._next_mark
        read = super().poll(rows, mark=due)
        if due and read:
            self._next_mark = now + self._latency_interval
        if not read and 0 < self._rows_at_once < FEW:
            self._gather_until = now + self._linger
        self._rows_at_once = self._rows_at_once + read if read else 0
        return read

    def sleep_for(self) -> float:
        """Seconds until there may be something to do: until the source may have something, or more state may be given."""
        if self.over:
            return IDLE
        now = self._now()
        reader = self.source.reader if not self.task.stopped else None
        until = max(reader.ready_in(), self._gather_until - now) if reader is not None else IDLE
        if self.task.giving:
            until = min(until, max(0.0, self._give_at - now))
        return min(until, max(SAVING, self._save_at - now)) if self.task.saving else until

    def give(self) -> bool:
        """As of every task, if it is time for another chunk."""
        if not self.task.giving or (begun := self._now()) < self._give_at or not super().give():
            return False
        now = self._now()
        self._give_at = now + (now - begun) * (1 / GIVE_SHARE - 1)
        return True

    def save(self) -> bool:
        """Make some chunks, if it is time for them, and report what is written. Whether it made any."""
        writer = self._writer
        if writer is None:
            return False
        self.report_written()
        if not self.task.saving or self.over:
            self._saving_since = math.inf
            return False
        begun = now = self._now()
        if writer.busy or begun < self._save_at:
            return False
        self._saving_since = min(self._saving_since, begun)
        while now - begun < SAVE_SECONDS and not writer.busy and super().save():
            now = self._now()
        share = SAVE_SHARE if now < self._saving_since + SAVE_SOON else GIVE_SHARE
        self._save_at = now + (now - begun) * (1 / share - 1)
        return True

    def measure(self, queued: int, queued_rows: int, refused: int) -> None:
        """Report the figures of the window; if the size of the state can't be read, the task fails as with any other work on it."""
        try:
            reader = self.source.reader
            skipped = 0 if reader is None else reader.skipped_records
            window = self.meter.take(queued, queued_rows, refused, None if self.over else reader, skipped)
        except StateBackendError as error:
            self.fail(error)
        else:
            self._reports(window)

    def _worked(self, begun: float) -> None:
        self.meter.add_useful(self._now() - begun)

    def _arrived(self, mark: Latency) -> None:
        self.meter.latencies.append((self._timestamp() - mark.created) / 1e6)
