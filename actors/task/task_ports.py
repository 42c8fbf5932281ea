"""The ports of a task: all that its interpreter needs of the world around it.

Ray, the local runtime and the simulation each supply these, and share everything else. One thread uses all ports of a task, and no call may
block it, except `CheckpointWriter.flush` and `close`, and reading what a checkpoint holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.protocol.effects import Outcome, Prepared
from ...engine.protocol.elements import Element
from ...engine.protocol.ids import ChannelId, CheckpointNumber
from ...engine.source import SourceReader
from ...engine.task.core import TaskCore
from ...scheduler.load.window import WorkerWindow
from ...scheduler.protocol.messages import CheckpointFailed, Report
from ...state.files import StateFile
from .pacing import Pacing


class Channels(Protocol):
    """The channels that begin or end at this task."""

    def send(self, channel: ChannelId, element: Element, /) -> None:
        """Called for each element that leaves, in order. What can't leave yet is kept here."""

    def consumed(self, channel: ChannelId, batch: Batch, /) -> None:
        """Called once the task has processed a batch that it received: its credit may go back to the sender."""


class TaskClock(Protocol):
    """The time, for the callers of the task."""

    def now(self) -> float:
        """Seconds; never goes back."""

    def timestamp(self) -> int:
        """Nanoseconds since the epoch, which other processes understand too."""


class Reports(Protocol):
    """The way to the coordinator."""

    def __call__(self, report: Report, /) -> None:
        """Called for each report. The coordinator sees them in this order."""


class CheckpointWriter(Protocol):
    """Writes this worker's part of checkpoints, a file for each, while the stream goes on. It keeps the order of its calls."""

    @property
    def busy(self) -> bool:
        """Whether so much waits to be written that the task makes no more chunks for now."""

    def write(self, checkpoint: CheckpointNumber, chunk: Batch) -> None:
        """Called with each chunk of the state that `checkpoint` holds."""

    def finish(self, prepared: Prepared) -> None:
        """Called behind the last chunk of a checkpoint: `take` or `flush` gives `prepared` back with its files, or a failure."""

    def take(self) -> Iterable[Prepared | CheckpointFailed]:
        """What has been written since the last call, or has failed, in the order in which it was finished."""

    def flush(self) -> Iterable[Prepared | CheckpointFailed]:
        """Called when the task has finished: as `take`, after everything is written."""

    def close(self) -> None:
        """Called once at the end, also after an error: leave what is not written yet."""


class SavedState(Protocol):
    """Reads what the task's checkpoint holds."""

    def chunks(self, checkpoint: CheckpointNumber, entry: StateFile) -> Iterable[pa.RecordBatch]:
        """The chunks of a file. Raises CorruptStateError if it is gone or is not what was written."""


class Outside(Protocol):
    """Does work outside of the task's thread, one piece after the other for each position."""

    def begin(self, position: int, run: Callable[[], Any]) -> None:
        """Called with work of the operator at `position`."""

    def take(self) -> Iterable[tuple[int, Outcome]]:
        """Called often: the work that has ended since the last call, by the position of its operator."""

    def close(self) -> None:
        """Called once at the end, also after an error: nobody wants what is still under way."""


class TaskMeter(Protocol):
    """Measures how the task spends its time."""

    def add_useful(self, elapsed: float, /) -> None:
        """Called after each piece of work, which took `elapsed` seconds."""

    def add_latency(self, milliseconds: float, /) -> None:
        """Called with the latency of each mark that ends at this task."""

    def due(self) -> bool:
        """True if the window is over."""

    def waiting(self, *, for_credit: bool) -> AbstractContextManager[None]:
        """Return a context that counts as a wait, for credit or for input."""

    def take(self, queued: int, queued_rows: int, refused: int, reader: SourceReader | None = None, skipped: int = 0) -> WorkerWindow:
        """Return the figures of the window, and begin the next."""


@dataclass(frozen=True, slots=True)
class TaskPorts:
    """The ports of one task.

    Without a `writer` its checkpoints hold no state. `saved` is given if the task starts from a checkpoint, `outside` if an operator may
    have work for other threads.
    """

    channels: Channels
    clock: TaskClock
    reports: Reports
    pacing: Pacing
    meter: Callable[[TaskCore], TaskMeter]
    writer: CheckpointWriter | None = None
    saved: SavedState | None = None
    outside: Outside | None = None
