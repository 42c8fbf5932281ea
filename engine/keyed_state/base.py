"""`KeyedState`: the state of one operator in one worker, by the interface through which it is moved, saved and restored.

State is moved and saved as batches with the key columns in front, so that channels and files treat it like any data. An operator works with
its own kind of state by that kind's methods (`Table.merge`, `Panes.append`, ...); the task, the hand-over and the checkpoints know this
interface only.

Invariant: a `snapshot` and all later `delta`s add up to the state at the barrier of the last one, whatever departs, arrives or is processed
meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import pyarrow as pa

from ..batch import Batch
from ..errors import RecordError
from ..protocol.routing import Move
from ..snapshots.changes import Changes
from ..state_description import PartsChange


class StateTransfer(ABC):
    """The state of the keys that leave with a move. A chunk that was taken no longer belongs to the operator."""

    @abstractmethod
    def next_chunk(self, keys: int) -> Batch | None:
        """Called between batches until it returns None: the state of about `keys` of the remaining keys."""

    @abstractmethod
    def fetch(self, columns: Sequence[pa.Array]) -> Sequence[Batch]:
        """Called when the new owner needs the state of these keys (key columns) now: the state of those still here, in chunks."""


class KeyedState(ABC):
    """Used by one thread. `install` takes the chunks that a `StateTransfer`, `snapshot` and the files of a checkpoint give."""

    passes_on = False
    """Whether state can change its owner without being sent. The new owner then processes no record before it knows that."""

    @abstractmethod
    def install(self, chunk: Batch) -> None:
        """Called with each chunk that another worker sends in a move, between two batches, and with each chunk of a snapshot, before the
        first batch.
        """

    @abstractmethod
    def depart(self, move: Move) -> StateTransfer:
        """Called at the implicit barrier, after the last record of the keys that `move` selects: give up their state."""

    def expect(self, move: Move) -> None:
        """Called at the first marker of a move to this worker, before its state comes."""

    @abstractmethod
    def snapshot(self) -> Iterator[Batch]:
        """Called at a barrier: all state as it is now, in chunks. Later changes don't show in it.

        The call copies as little as possible; the chunks are made one by one, between later batches. No state departs or arrives meanwhile.
        """

    @abstractmethod
    def changes(self) -> Changes | None:
        """Called at every barrier, and once after a restore: the changes since the last call, or None if they are not known.

        From then on changes are noted.
        """

    @abstractmethod
    def delta(self, changes: Changes) -> Iterator[Batch]:
        """Called at a barrier, in place of `snapshot`: the changed state, in chunks. `chain.resolved` replaces older state with them, or
        adds them to it. `changes` may be the union of the changes of several barriers.
        """

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Called about once a second: an estimate of the state's bytes."""

    def close(self) -> None:
        """Called once at the end, also after an error: close files and connections."""

    def check(self, schema: pa.Schema) -> None:
        """Raises TypeError if a chunk of this schema is state of another kind that could be installed by mistake."""

    def adapted(self, chunk: Batch, change: PartsChange) -> Batch:
        """Rearrange a chunk that was saved with the parts `change.then`: new parts start empty, those that are gone are dropped."""
        raise TypeError(f"its parts were {', '.join(change.then)}, and are {', '.join(change.now)}")

    def restore(self, chunk: Batch, operator: str, change: PartsChange | None = None) -> None:
        """`install` a chunk of a checkpoint or a savepoint; `change`: its parts differ from this state's.

        Raises RecordError, naming `operator`, if it is not state of this kind.
        """
        try:
            self.check(chunk.rows.schema)
            self.install(chunk if change is None else self.adapted(chunk, change))
        except (RecordError, MemoryError):
            raise
        except Exception as error:
            problem = f"the checkpoint's state under this name is not of an operator like this one ({type(error).__name__}: {error})"
            raise RecordError(operator, f"{problem}: name it differently, and say allow_lost_state=True") from error
