"""The newest records that a job's operators left out, of each operator and kind."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from ...engine.left_out import MOST, LeftOut
from ...engine.protocol.ids import WorkerId
from .window import WorkerWindow


@dataclass(frozen=True, slots=True)
class LeftOutAt:
    """A record that `worker` left out in the window that ended at `time`, in seconds since the epoch."""

    time: float
    worker: WorkerId
    what: LeftOut


class LeftOutRecords:
    """Keeps as many of each operator and kind as a worker tells in one window."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str], deque[LeftOutAt]] = {}

    def taken(self, window: WorkerWindow) -> WorkerWindow:
        """The window without its samples, which are kept here: windows are kept for longer."""
        if not window.left_out:
            return window
        for what in window.left_out:
            newest = self._newest.setdefault((what.operator, what.kind), deque(maxlen=MOST))
            newest.append(LeftOutAt(window.start + window.length, window.worker, what))
        return replace(window, left_out=())

    def all(self) -> tuple[LeftOutAt, ...]:
        """By operator, the oldest first."""
        return tuple(record for newest in self._newest.values() for record in newest)
