"""The checkpoints of a task: what of its state goes into one, and when it is prepared.

Invariant: a checkpoint is prepared once all chunks of the state as it was at its barrier are out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...state.files import StateFile
from ..keyed_state.base import KeyedState
from ..protocol.effects import Prepared, Saved
from ..protocol.elements import Barrier
from ..protocol.ids import CheckpointNumber
from .saving import Saving, Snapshots


class TaskCheckpoints:
    """`passed`: the newest checkpoint whose barrier the task has passed on."""

    def __init__(self) -> None:
        self.passed = 0
        self._snapshots: Snapshots | None = None
        self._saving: Saving | None = None

    def include(self, state: KeyedState) -> None:
        """Save this state with each checkpoint."""
        self._snapshots = Snapshots(state)

    def go_on_from(self, checkpoint: CheckpointNumber, files: Sequence[StateFile]) -> None:
        """The state is whole as it was at `checkpoint`, and `files` are its chain: the next delta goes on from it."""
        if self._snapshots is not None:
            self._snapshots.go_on_from(checkpoint, files)

    def begin(self, barrier: Barrier, prepared: Prepared) -> Prepared | None:
        """The barrier is passed on: freeze the state. Returns `prepared` if there is none to save."""
        self.passed = barrier.checkpoint
        if self._snapshots is None:
            return prepared
        self._saving = self._snapshots.begin(prepared, barrier.base)
        return None

    @property
    def saving(self) -> bool:
        """Whether `next` has something to give."""
        return self._saving is not None

    def next(self) -> Saved | Prepared | None:
        """The next chunk of the state, behind the last one `Prepared`, then None."""
        if self._saving is None:
            return None
        chunk, prepared = self._saving.next(), self._saving.prepared
        if chunk is not None:
            return Saved(prepared.checkpoint, chunk)
        self._saving = None
        return prepared

    def rest(self) -> Iterator[Saved | Prepared]:
        """All that `next` still has to give."""
        while (effect := self.next()) is not None:
            yield effect
