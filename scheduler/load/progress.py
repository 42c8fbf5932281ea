"""The progress of a job: when it last took or sent rows or completed a checkpoint.

>>> from evenflow.engine.protocol.ids import worker_id
>>> progress = Progress()
>>> progress.look(now=2.0, checkpoints=1)
>>> progress.add(WorkerWindow(worker_id("read", 0), start=3.0, length=1.0, rows_in=5))
>>> progress.add(WorkerWindow(worker_id("read", 0), start=8.0, length=1.0))
>>> progress.look(now=6.0, checkpoints=2)
>>> progress.still_seconds(10.0), progress.rowless_seconds(10.0)
(4.0, 6.0)
"""

from __future__ import annotations

from .window import WorkerWindow


class Progress:
    """The progress of one job. Times are seconds since the epoch."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._rows_at: float | None = None
        self._checkpoints = 0

    def still_seconds(self, now: float) -> float:
        """Return the seconds without progress up to `now`."""
        return 0.0 if self._at is None else max(0.0, now - self._at)

    def rowless_seconds(self, now: float) -> float:
        """Return the seconds since a worker last took or sent rows, or all workers last started."""
        return 0.0 if self._rows_at is None else max(0.0, now - self._rows_at)

    def started(self, now: float) -> None:
        """Note that all workers have started: none of them can have had rows before."""
        self._rows_at = now

    def add(self, window: WorkerWindow) -> None:
        """Take a worker's window."""
        if window.rows_in or window.rows_out:
            until = window.start + window.length
            self._at, self._rows_at = max(self._at or 0.0, until), max(self._rows_at or 0.0, until)

    def look(self, now: float, checkpoints: int) -> None:
        """Look at the job at time `now`; it has completed that many checkpoints. The first look counts as progress."""
        if self._at is None or checkpoints != self._checkpoints:
            self._at = max(self._at or 0.0, now)
        self._checkpoints = checkpoints
