"""Keyed state: what one operator keeps of its keys in one worker, and all that moving, saving and restoring ask of it.

State travels, and is saved, as batches with the key columns in front, so that it crosses a channel like any data and lies in a file. An
operator works with its own kind of state by that kind's methods (`Table.merge`, `Panes.append`, ...); the task, the hand-over and the
checkpoints know this interface only.

Invariant: what `snapshot` gave, and behind it each `delta`, adds up to the state as it was at the last of their barriers, whatever departs,
arrives or is processed meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import pyarrow as pa

from ..batch import Batch
from ..errors import RecordError
from ..protocol.routing import Move
from ..snapshots.changes import Changes


class StateTransfer(ABC):
    """The state of the keys that leave with a move, on its way out. What was taken is no longer the operator's."""

    @abstractmethod
    def next_chunk(self, keys: int) -> Batch | None:
        """Called between batches until nothing is left: the state of about `keys` keys that are still here; None when nothing is."""

    @abstractmethod
    def fetch(self, columns: Sequence[pa.Array]) -> Batch | None:
        """Called when the new owner needs the state of these keys (key columns) now: of those that are still here; None if none is."""


class KeyedState(ABC):
    """Used by one thread. `install` takes the chunks that a `StateTransfer`, `snapshot` and the files of a checkpoint give."""

    passes_on = False
    """Whether state may be the new owner's without having been sent: then no record is processed before its owner knows that."""

    @abstractmethod
    def install(self, chunk: Batch) -> None:
        """Called with each chunk that another worker sends in a move, between two batches, and of a snapshot, before the first one."""

    @abstractmethod
    def depart(self, move: Move) -> StateTransfer:
        """Called once no record of the keys that `move` selects can come any more: let go of their state."""

    @abstractmethod
    def snapshot(self) -> Iterator[Batch]:
        """Called at a barrier: all state as it is now, in chunks; what comes later doesn't show in it.

        The call copies what it must; the chunks are made one by one, between later batches. No state departs or comes meanwhile.
        """

    @abstractmethod
    def changes(self) -> Changes | None:
        """Called at every barrier, and once the state is restored: what has changed since the last call, or None if that is not known.

        From now on it is noted.
        """

    @abstractmethod
    def delta(self, changes: Changes) -> Iterator[Batch]:
        """Called at a barrier, in place of `snapshot`: what is among the changes, in chunks that `chain.resolved` puts in the place of
        what was, or adds to it. `changes` may be of several barriers, put together.
        """

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Asked about once a second: an estimate of the bytes that the state takes."""

    def close(self) -> None:
        """Called once at the end, also after an error: let go of files and connections."""

    def check(self, schema: pa.Schema) -> None:
        """Raises TypeError if a chunk of this schema could be installed, but is state of another kind."""

    def restore(self, chunk: Batch, operator: str) -> None:
        """`install` a chunk of a checkpoint or a savepoint. Raises RecordError, naming `operator`, if it is not state of this kind."""
        try:
            self.check(chunk.rows.schema)
            self.install(chunk)
        except (RecordError, MemoryError):
            raise
        except Exception as error:
            problem = f"the checkpoint's state under this name is not of an operator like this one ({type(error).__name__}: {error})"
            raise RecordError(operator, f"{problem}: name it differently, and say allow_lost_state=True") from error
