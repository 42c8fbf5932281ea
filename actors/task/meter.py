"""The meter: how a worker spends its time, window by window.

Every moment of a worker belongs to one of five: useful, waiting for input, waiting for credit, ready without a CPU, or its own
bookkeeping (the rest). A wait ends when there is something to do; the time from then until the thread has a CPU is measured wait
by wait. The other time without a CPU is known for a whole window only, and subtracted from useful time and bookkeeping alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ...engine.protocol.elements import MAX_TIME, MIN_TIME
from ...engine.source import SourceReader
from ...engine.task.core import TaskCore
from ...scheduler.load.batch_costs import BatchCosts
from ...scheduler.load.window import WorkerWindow
from ..clocks import JobClock
from .run_queue import RunQueue, Spent

CLOCK = JobClock()
"""The wall clock as this process first saw it, so that windows of several processes begin together.

If the wall clock is changed meanwhile, windows continue undisturbed.
"""

HOTTEST = 16

SHARED = 0.002
"""Seconds of useful time that are distributed over key groups at once."""


class Meter:
    """The meter of one worker; used by its thread. `length`: seconds of a window, which begins at a multiple of it by
    `clock`.

    `samples`: windows contain some of the dropped records.
    """

    def __init__(
        self, task: TaskCore, length: float, run_queue: RunQueue | None = None, *, samples: bool = True, clock: JobClock = CLOCK
    ) -> None:
        self.task, self.length, self._samples = task, length, samples
        self.useful = self.wait_input = self.wait_credit = self._late = 0.0
        self._unshared = 0.0
        self._costs, self._rows_known = BatchCosts(), task.rows_in
        self.latencies: list[float] = []
        self.keyed_records = 0
        self.load = np.zeros(task.spec.settings.key_groups)
        self._rows = (0, 0)
        self._run_queue, self._clock = RunQueue() if run_queue is None else run_queue, clock
        self._begin(clock())

    def add_useful(self, elapsed: float) -> None:
        """Add `elapsed` seconds of work; they are distributed over the key groups of the task's records, once some are counted.

        Small batches are distributed together, because that costs as much as they do.
        """
        self.useful += elapsed
        self._unshared += elapsed
        rows, self._rows_known = self.task.rows_in - self._rows_known, self.task.rows_in
        if rows:
            self._costs += BatchCosts.of(rows, elapsed)
        if self._unshared >= SHARED:
            self._share()

    def _share(self) -> None:
        if self.task.load.touched:
            records = self.task.load.take()
            total = int(records.sum())
            if total:
                self.keyed_records += total
                self.load += records * (self._unshared / total)
            self._unshared = 0.0

    @contextmanager
    def waiting(self, *, for_credit: bool) -> Iterator[None]:
        """Count the time of the context as a wait, for credit or for input."""
        begun, ready = self._clock.monotonic(), self._run_queue.so_far().waiting
        yield
        late = self._run_queue.so_far().waiting - ready
        self._late += late
        waited = max(0.0, self._clock.monotonic() - begun - late)
        if for_credit:
            self.wait_credit += waited
        else:
            self.wait_input += waited

    def add_latency(self, milliseconds: float) -> None:
        """Note the latency of a mark that has ended here."""
        self.latencies.append(milliseconds)

    def starved(self) -> float:
        """Return the seconds that the thread has been ready without a processor so far; 0 where the system doesn't count them."""
        return self._run_queue.so_far().waiting

    def due(self) -> bool:
        """Return True if the window is over."""
        return self._clock() >= self._end

    def take(self, queued: int, queued_rows: int, refused: int, reader: SourceReader | None = None, skipped: int = 0) -> WorkerWindow:
        """Return the window's figures and begin the next one.

        The figures include waiting batches and rows, the figures of the source's reader, and the records that it skipped.
        """
        self._share()
        now, task = self._clock(), self.task
        rows = task.rows_in, task.outputs.rows
        spent = self._run_queue.take()
        busy = now - self._start - self.wait_input - self.wait_credit - self._late
        own = own_share(busy, replace(spent, waiting=spent.waiting - self._late))
        groups = np.flatnonzero(self.load)
        hot = sorted(task.load.take_hot().items(), key=lambda item: -item[1][0])[:HOTTEST]
        window = WorkerWindow(
            worker=task.spec.name,
            start=self._start,
            length=now - self._start,
            rows_in=rows[0] - self._rows[0],
            rows_out=rows[1] - self._rows[1],
            useful=self.useful * own,
            wait_input=self.wait_input,
            wait_credit=self.wait_credit,
            starved=spent.waiting,
            queued=queued,
            queued_rows=queued_rows,
            backlog=None if reader is None else reader.backlog(),
            splits=() if reader is None else tuple(reader.split_figures()),
            watermark=task.watermark if MIN_TIME < task.watermark < MAX_TIME else None,
            late_records=task.chain.late_records,
            skipped_records=task.chain.skipped_records + skipped,
            keyed_records=self.keyed_records,
            state_bytes=task.chain.state_bytes,
            refused_messages=refused,
            groups=groups.astype(np.int32),
            load=self.load[groups] * own,
            hot_keys=tuple((key, records) for key, (records, _) in hot),
            hot_left=tuple(left for _, (_, left) in hot),
            latencies=tuple(self.latencies),
            costs=self._costs.in_part(own),
            measured=task.chain.measured(),
            dropped_records=task.chain.take_dropped_records() if self._samples else (),
        )
        self._rows = rows
        self.useful = self.wait_input = self.wait_credit = self._late = 0.0
        self.latencies = []
        self._costs = BatchCosts()
        self.keyed_records = 0
        self.load[:] = 0.0
        self._begin(now)
        return window

    def _begin(self, now: float) -> None:
        self._start = now
        self._end = (now // self.length + 1) * self.length


def own_share(busy: float, spent: Spent) -> float:
    """Return the part of a thread's `busy` seconds, 0 to 1, without those in which it waited for a CPU; at least the part on a CPU.

    >>> own_share(1.0, Spent(on_cpu=0.4, waiting=0.5)), own_share(0.1, Spent(on_cpu=0.05, waiting=0.4))
    (0.5, 0.5)
    """
    if busy <= 0.0:
        return 1.0
    return min(1.0, max(1.0 - spent.waiting / busy, spent.on_cpu / busy))
