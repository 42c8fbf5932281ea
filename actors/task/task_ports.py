"""The ports of a task: everything outside it that its interpreter needs.

Ray, the local runtime and the simulation each supply these, and share everything else. One thread uses all ports of a task, and
no call may block it, except `CheckpointWriter.flush` and `close`, and reading a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.protocol.effects import Prepared, WorkOutcome
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
        """Send an element, or keep it until it can be sent. Called for each element, in order."""

    def consumed(self, channel: ChannelId, batch: Batch, /) -> None:
        """Return the credit of a received batch to its sender. Called once the task has processed it."""


class TaskClock(Protocol):
    """The time, for the callers of the task."""

    def now(self) -> float:
        """Return seconds that never go back."""

    def timestamp(self) -> int:
        """Return nanoseconds since the epoch, for other processes."""


class Reports(Protocol):
    """The channel to the coordinator."""

    def __call__(self, report: Report, /) -> None:
        """Send a report. The coordinator receives them in this order."""


class CheckpointWriter(Protocol):
    """A writer of this worker's part of checkpoints, a file for each, while the stream continues. It keeps the order of its
    calls.
    """

    @property
    def busy(self) -> bool:
        """True if so many bytes wait to be written that the task makes no more chunks for now."""

    def write(self, checkpoint: CheckpointNumber, chunk: Batch) -> None:
        """Write a chunk of the state in `checkpoint`."""

    def finish(self, prepared: Prepared) -> None:
        """End a checkpoint's chunks: `take` or `flush` returns `prepared` with its files, or a failure."""

    def take(self) -> Iterable[Prepared | CheckpointFailed]:
        """Return checkpoints that were written, or failed, since the last call, in the order in which they were finished."""

    def flush(self) -> Iterable[Prepared | CheckpointFailed]:
        """Write everything and return as `take` does. Called when the task has finished."""

    def close(self) -> None:
        """Abandon unwritten chunks. Called once at the end, also after an error."""


class CheckpointReader(Protocol):
    """A reader of the task's checkpoint."""

    def chunks(self, checkpoint: CheckpointNumber, entry: StateFile) -> Iterable[pa.RecordBatch]:
        """Yield the chunks of a file. Raises CorruptStateError if it is missing or damaged."""


class BackgroundWork(Protocol):
    """A runner of work outside the task's thread, one piece after the other for each position."""

    def begin(self, position: int, run: Callable[[], Any]) -> None:
        """Start work of the operator at `position`."""

    def take(self) -> Iterable[tuple[int, WorkOutcome]]:
        """Called often: the work that has ended since the last call, by the position of its operator."""

    def close(self) -> None:
        """Abandon work in progress. Called once at the end, also after an error."""


class TaskMeter(Protocol):
    """Measures how the task spends its time."""

    def add_useful(self, elapsed: float, /) -> None:
        """Called after each piece of work, which took `elapsed` seconds."""

    def add_latency(self, milliseconds: float, /) -> None:
        """Called with the latency of each mark that ends at this task."""

    def starved(self) -> float:
        """Return the seconds that the task's thread has been ready without a processor so far."""

    def due(self) -> bool:
        """True if the window is over."""

    def waiting(self, *, for_credit: bool) -> AbstractContextManager[None]:
        """Return a context that counts as a wait, for credit or for input."""

    def take(self, queued: int, queued_rows: int, refused: int, reader: SourceReader | None = None, skipped: int = 0) -> WorkerWindow:
        """Return the figures of the window, and begin the next."""


@dataclass(frozen=True, slots=True)
class TaskPorts:
    """The ports of one task.

    Without a `writer` its checkpoints hold no state. `saved` is given if the task starts from a checkpoint, `background` if an operator may
    have work for other threads.
    """

    channels: Channels
    clock: TaskClock
    reports: Reports
    pacing: Pacing
    meter: Callable[[TaskCore], TaskMeter]
    writer: CheckpointWriter | None = None
    saved: CheckpointReader | None = None
    background: BackgroundWork | None = None
