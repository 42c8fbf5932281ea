"""The saving of a task's state for checkpoints: frozen at the barrier, handed out in chunks between later batches.

A worker's state at a checkpoint is a chain: a full snapshot, then the changes of each checkpoint. Invariant: a delta follows a
checkpoint that was complete when the delta's barrier left the sources, because the barrier names it. The delta has all changes
since then, also those in the delta of a failed checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...state.files import StateFile
from ..batch import Batch
from ..keyed_state.base import KeyedState
from ..keyed_state.pending import PendingState
from ..protocol.effects import Prepared
from ..protocol.ids import CheckpointNumber
from ..snapshots.changes import Changes

LONGEST = 100
"""The most files of a chain: a restore opens each of them."""


@dataclass(slots=True)
class Chain:
    """The numbers of rows in a chain of files: `whole` in the first, `deltas` in all the others."""

    whole: int = 0
    deltas: int = 0
    files: int = 0

    def has_room(self, rows: int) -> bool:
        """Return True if a delta of `rows` rows may follow; otherwise a full snapshot would be faster to restore."""
        return self.deltas + rows <= self.whole and self.files < LONGEST


@dataclass(slots=True)
class Saving:
    """A checkpoint in progress: `prepared` is reported once all `chunks` are out; `chain` is counted meanwhile."""

    prepared: Prepared
    chunks: Iterator[Batch]
    chain: Chain
    begun: bool = False

    def next(self) -> Batch | None:
        """Return the next chunk; None once all are out. Without chunks there is no file."""
        chunk = next(self.chunks, None)
        if chunk is None:
            return None
        self.chain.files += not self.begun
        self.begun = True
        if self.prepared.base:
            self.chain.deltas += chunk.num_rows
        else:
            self.chain.whole += chunk.num_rows
        return chunk


class Snapshots:
    """Decides which part of an operator's state a checkpoint must hold.

    A full snapshot needs the `pending` part too. A delta doesn't: that part is as in the restored checkpoint.
    """

    def __init__(self, state: KeyedState, pending: PendingState) -> None:
        self._state, self._pending = state, pending
        self._base, self._chain = 0, Chain()
        """A checkpoint that may be complete, and its chain; `_known`: whether `_since` has all changes since it."""
        self._known = False
        self._since: Changes | None = None
        self._last, self._next = 0, Chain()
        """The last checkpoint, which may or may not become complete, and its chain if it does."""

    def begin(self, prepared: Prepared, base: CheckpointNumber) -> Saving:
        """Freeze the state at a barrier. `base`: the newest complete checkpoint; 0: all state must be saved."""
        changes = self._state.changes()
        if base and base == self._last:
            self._base, self._chain, self._known, self._since = base, self._next, True, None
        self._known = self._known and changes is not None
        if changes is not None:
            self._since = changes if self._since is None else changes.behind(self._since)
        self._last = prepared.checkpoint
        if base and base == self._base and self._known and self._since is not None and self._chain.has_room(len(self._since)):
            self._next = replace(self._chain)
            return Saving(replace(prepared, base=base), self._state.delta(self._since), self._next)
        self._next = Chain()
        self._pending.everything()
        return Saving(prepared, self._state.snapshot(), self._next)

    def continue_from(self, checkpoint: int, files: Sequence[StateFile]) -> None:
        """Note that the state was restored from `checkpoint`, whose chain is `files`."""
        rows = [file.keys for file in files]
        self._state.changes()
        self._base, self._chain, self._known, self._since = checkpoint, Chain(sum(rows[:1]), sum(rows[1:]), len(rows)), True, None
