"""What the parts of a job ask of its lifecycle: to go back to a checkpoint, or to end."""

from __future__ import annotations

from typing import Protocol

from ...state.errors import EvenflowError
from ..protocol.effects import JobState, StopMode


class Lifecycle(Protocol):
    """Of a job's state machine."""

    def fail(self, error: EvenflowError) -> None:
        """Something failed: go back to the newest checkpoint, or end, as the restart strategy says."""

    def abort(self, error: EvenflowError) -> None:
        """End with this error: to start again would not help."""

    def go_back(self, delay: float = 0.0) -> None:
        """Begin another attempt from the newest checkpoint after `delay` seconds."""

    def end(self, state: JobState) -> None:
        """Come to a final state."""

    def stop(self, mode: StopMode) -> None:
        """Stop as soon as the job can; what was read is processed and committed."""

    @property
    def running_seconds(self) -> float:
        """From when all workers had started to the end."""
