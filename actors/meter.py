"""The meter: how a worker spends its time, window by window.

Every moment of a worker belongs to one of four: useful, waiting for input, waiting for credit, or its own bookkeeping (what is left).
"""

from __future__ import annotations

import time

import numpy as np

from ..engine.elements import MAX_TIME, MIN_TIME
from ..engine.task import TaskCore
from ..scheduler.window import WorkerWindow

HOTTEST = 16


class Meter:
    """Measures one worker; used by its thread. `length`: seconds of a window, which begins at a multiple of it (wall clock)."""

    def __init__(self, task: TaskCore, length: float) -> None:
        self.task, self.length = task, length
        self.useful = self.wait_input = self.wait_credit = 0.0
        self._unshared = 0.0
        self.latencies: list[float] = []
        self.keyed_records = 0
        self.load = np.zeros(task.spec.settings.key_groups)
        self._rows = (0, 0)
        self._begin(time.time())

    def add_useful(self, elapsed: float) -> None:
        """The task worked for `elapsed` seconds; shared out over the key groups of the records that it took, once some are counted."""
        self.useful += elapsed
        self._unshared += elapsed
        if self.task.load.touched:
            records = self.task.load.take()
            total = int(records.sum())
            if total:
                self.keyed_records += total
                self.load += records * (self._unshared / total)
            self._unshared = 0.0

    def due(self) -> bool:
        """Whether the window is over."""
        return time.time() >= self._end

    def take(self, queued: int, refused: int) -> WorkerWindow:
        """The window's figures; the next window begins."""
        now, task = time.time(), self.task
        rows = task.rows_in, task.rows_out
        groups = np.flatnonzero(self.load)
        hot = sorted(task.load.take_hot().items(), key=lambda item: -item[1])[:HOTTEST]
        window = WorkerWindow(
            worker=task.spec.name,
            start=self._start,
            length=now - self._start,
            rows_in=rows[0] - self._rows[0],
            rows_out=rows[1] - self._rows[1],
            useful=self.useful,
            wait_input=self.wait_input,
            wait_credit=self.wait_credit,
            queued=queued,
            watermark=task.watermark if MIN_TIME < task.watermark < MAX_TIME else None,
            late_records=task.late_records,
            keyed_records=self.keyed_records,
            state_bytes=task.state_bytes,
            refused_messages=refused,
            groups=groups.astype(np.int32),
            load=self.load[groups],
            hot_keys=tuple(hot),
            latencies=tuple(self.latencies),
        )
        self._rows = rows
        self.useful = self.wait_input = self.wait_credit = 0.0
        self.latencies = []
        self.keyed_records = 0
        self.load[:] = 0.0
        self._begin(now)
        return window

    def _begin(self, now: float) -> None:
        self._start = now
        self._end = (now // self.length + 1) * self.length
