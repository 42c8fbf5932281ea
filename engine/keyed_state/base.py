"""`KeyedState`: the interface through which the state of one operator in one worker is moved, saved and restored.

State is moved and saved as batches with the key columns in front, so that channels and files treat it like any data. An operator
works with its own kind of state by that kind's methods (`AggregateTable.merge`, `Panes.append`, ...); the task, the hand-over and the
checkpoints know this interface only.

Invariant: a `snapshot` and all later `delta`s add up to the state at the barrier of the last one, regardless of state that
departs, arrives or changes meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

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
        """Return the state of about `keys` of the remaining keys, None at the end. Called between batches."""

    @abstractmethod
    def fetch(self, columns: Sequence[pa.Array]) -> Sequence[Batch]:
        """Return the state of these keys (key columns) that is still here, in chunks. Called when the new owner needs it now."""


class KeyTransfer(StateTransfer):
    """A transfer of state that stays with its owner until it is sent; `columns`: the key columns.

    `take` removes and returns the state of keys that are still there.

    >>> transfer = KeyTransfer([pa.array([1, 2, 3])], lambda keys: Batch(pa.record_batch({"key": keys[0]})))
    >>> transfer.next_chunk(2).to_rows(), transfer.next_chunk(2).to_rows(), transfer.next_chunk(2)
    ([{'key': 2}, {'key': 3}], [{'key': 1}], None)
    """

    def __init__(self, columns: Sequence[pa.Array], take: Callable[[Sequence[pa.Array]], Batch | None]) -> None:
        self._columns, self._take = columns, take
        self._left = len(columns[0]) if columns else 0

    def next_chunk(self, keys: int) -> Batch | None:
        while self._left:
            before, self._left = self._left, max(0, self._left - keys)
            batch = self._take([column.slice(self._left, before - self._left) for column in self._columns])
            if batch is not None:
                return batch
        return None

    def fetch(self, columns: Sequence[pa.Array]) -> Sequence[Batch]:
        batch = self._take(columns)
        return () if batch is None else (batch,)


class KeyedState(ABC):
    """The state of one operator in one worker. Used by one thread.

    `install` takes chunks from a `StateTransfer`, a `snapshot` or the files of a checkpoint.
    """

    passes_on = False
    """True if state can change its owner without being sent. The new owner then processes no record before it knows that."""

    whole_keys = False
    """True if each chunk of a move has all state of its keys."""

    @property
    def by_key(self) -> bool:
        """True if records need the state of their own keys only, so that saved state can be installed key by key (`pending.py`)."""
        return False

    def reserve(self, keys: int) -> None:
        """Make room for `keys` more keys, whose state will be installed."""

    def unnoted(self) -> AbstractContextManager[None]:
        """Return a block in which state is installed that has not changed since the last checkpoint, so it is not among `changes`."""
        return nullcontext()

    @abstractmethod
    def install(self, chunk: Batch) -> None:
        """Add a chunk that another worker sent in a move, between two batches, or a chunk of a snapshot, before the first batch."""

    @abstractmethod
    def depart(self, move: Move) -> StateTransfer:
        """Give up the state of the keys that `move` selects. Called at the implicit barrier, after their last record."""

    def expect(self, move: Move) -> None:
        """Prepare for a move to this worker. Called at its first marker, before its state arrives."""

    def await_copy(self) -> None:
        """Note that the copy that every worker has comes from another worker, or from a checkpoint."""

    def copies(self) -> Sequence[Batch]:
        """Return the copy that every worker has, in chunks for another worker's `install`; most operators have none."""
        return ()

    @abstractmethod
    def snapshot(self) -> Iterator[Batch]:
        """Return all state as of now, in chunks; later changes don't show in it. Called at a barrier.

        The call copies as little as possible; the chunks are made one by one, between later batches. No state departs or arrives
        meanwhile.
        """

    @abstractmethod
    def changes(self) -> Changes | None:
        """Return the changes since the last call, None if they are not known. Called at every barrier, and once after a restore.

        From then on changes are noted.
        """

    @abstractmethod
    def delta(self, changes: Changes) -> Iterator[Batch]:
        """Return the changed state, in chunks. Called at a barrier, in place of `snapshot`.

        `chain.resolved` replaces older state with them, or adds them to it. `changes` may be the union of the changes of several
        barriers.
        """

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Return an estimate of the state's bytes. Called about once a second."""

    def close(self) -> None:
        """Close files and connections. Called once at the end, also after an error."""

    def check(self, schema: pa.Schema) -> None:
        """Raise TypeError if a chunk of this schema is state of another kind that could be installed by mistake."""

    def adapted(self, chunk: Batch, change: PartsChange) -> Batch:
        """Rearrange a chunk that was saved with the parts `change.then`: new parts start empty, removed ones are dropped."""
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
