"""The checkpoints of a task: the state in each, and when it is prepared.

Invariant: a checkpoint is prepared once all chunks of the state as of its barrier are out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...state.files import StateFile
from ..keyed_state.base import KeyedState
from ..keyed_state.pending import PendingState
from ..protocol.effects import Prepared, SavedChunk
from ..protocol.elements import Barrier
from ..protocol.ids import CheckpointNumber
from .saving import Saving, Snapshots


class TaskCheckpoints:
    """The checkpoint in progress. `passed`: the newest checkpoint whose barrier the task has passed on."""

    def __init__(self) -> None:
        self.passed = 0
        self._snapshots: Snapshots | None = None
        self._saving: Saving | None = None

    def include(self, state: KeyedState, pending: PendingState) -> None:
        """Save this state with each checkpoint; `pending`: its part that is to be installed."""
        self._snapshots = Snapshots(state, pending)

    def continue_from(self, checkpoint: CheckpointNumber, files: Sequence[StateFile]) -> None:
        """Note that the state is that of `checkpoint`. The next delta extends its chain, `files`."""
        if self._snapshots is not None:
            self._snapshots.continue_from(checkpoint, files)

    def begin(self, barrier: Barrier, prepared: Prepared) -> Prepared | None:
        """Freeze the state, as the barrier is passed on. Return `prepared` if there is none to save."""
        self.passed = barrier.checkpoint
        if self._snapshots is None:
            return prepared
        self._saving = self._snapshots.begin(prepared, barrier.base)
        return None

    @property
    def saving(self) -> bool:
        """True if `next` has something to return."""
        return self._saving is not None

    def next(self) -> SavedChunk | Prepared | None:
        """Return the next chunk of the state, behind the last one `Prepared`, then None."""
        if self._saving is None:
            return None
        chunk, prepared = self._saving.next(), self._saving.prepared
        if chunk is not None:
            return SavedChunk(prepared.checkpoint, chunk)
        self._saving = None
        return prepared

    def rest(self) -> Iterator[SavedChunk | Prepared]:
        """Yield everything that `next` still has to return."""
        while (effect := self.next()) is not None:
            yield effect
