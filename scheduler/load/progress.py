"""The progress of a job: when it last took or sent rows or completed a checkpoint.

>>> from evenflow.engine.protocol.ids import worker_id
>>> progress = Progress()
>>> progress.look(now=2.0, checkpoints=1)
>>> progress.add(WorkerWindow(worker_id("read", 0), start=3.0, length=1.0, rows_in=5))
>>> progress.add(WorkerWindow(worker_id("read", 0), start=8.0, length=1.0))
>>> progress.look(now=10.0, checkpoints=1)
>>> progress.still_seconds
6.0
"""

from __future__ import annotations

from .window import WorkerWindow


class Progress:
    """The progress of one job. Times are seconds since the epoch."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._now = 0.0
        self._checkpoints = 0

    @property
    def still_seconds(self) -> float:
        """The seconds without progress up to the last look."""
        return 0.0 if self._at is None else max(0.0, self._now - self._at)

    def add(self, window: WorkerWindow) -> None:
        """Take a worker's window."""
        if window.rows_in or window.rows_out:
            self._at = max(self._at or 0.0, window.start + window.length)

    def look(self, now: float, checkpoints: int) -> None:
        """Look at the job at time `now`; it has completed that many checkpoints. The first look counts as progress."""
        if self._at is None or checkpoints != self._checkpoints:
            self._at = max(self._at or 0.0, now)
        self._now, self._checkpoints = now, checkpoints
