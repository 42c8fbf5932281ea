"""The newest records that a job's operators dropped, by operator and kind."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from ...engine.dropped_records import MOST, DroppedRecord
from ...engine.protocol.ids import WorkerId
from .window import WorkerWindow


@dataclass(frozen=True, slots=True)
class DroppedRecordAt:
    """A record that `worker` dropped in the window that ended at `time` (seconds since the epoch)."""

    time: float
    worker: WorkerId
    what: DroppedRecord


class DroppedRecords:
    """Keeps the newest dropped records, for each operator and kind as many as a worker reports in one window."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str], deque[DroppedRecordAt]] = {}

    def taken(self, window: WorkerWindow) -> WorkerWindow:
        """Take the samples out of a window and keep them here. Return the window without them, since windows are kept for
        longer.
        """
        if not window.dropped_records:
            return window
        for what in window.dropped_records:
            newest = self._newest.setdefault((what.operator, what.kind), deque(maxlen=MOST))
            newest.append(DroppedRecordAt(window.start + window.length, window.worker, what))
        return replace(window, dropped_records=())

    def all(self) -> tuple[DroppedRecordAt, ...]:
        """Return the records by operator, oldest first."""
        return tuple(record for newest in self._newest.values() for record in newest)
