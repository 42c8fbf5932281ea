"""The states of keys as arrays, one per column of the state: what `stateful_map_columns` keeps, wherever it lies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from .batch import Batch
from .changes import Changes
from .key_rows import Array
from .operators.keyed import Departing
from .routing import Move


class StateArrays(ABC):
    """Used by one thread. `read`, then `write`, or `undo` also after a `write` that failed."""

    @abstractmethod
    def read(self, columns: Sequence[pa.Array]) -> dict[str, Array]:
        """The states of the keys in these key columns, each of which is there once: arrays of its own, zero for a new key."""

    @abstractmethod
    def write(self, state: Mapping[str, Array]) -> None:
        """What the states that were read are now. Raises KeyError, TypeError or ValueError if one doesn't fit, and writes none."""

    @abstractmethod
    def undo(self) -> None:
        """Nothing will be written: the states are as they were before `read`."""

    @abstractmethod
    def install(self, state: Batch) -> None:
        """Take what another worker's `depart` gave, or a chunk of a snapshot."""

    @abstractmethod
    def snapshot(self) -> Iterator[Batch]:
        """All states as they are now, in chunks that `install` takes."""

    @abstractmethod
    def changes(self) -> Changes | None:
        """What has changed since the last call, or None if that is not known; from now on it is noted."""

    @abstractmethod
    def delta(self, changes: Changes) -> Iterator[Batch]:
        """What is among the changes, as it is now, in chunks that replace what was."""

    @abstractmethod
    def depart(self, move: Move) -> Departing:
        """Let go of the states of the keys that `move` selects."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Estimate of their bytes."""

    def close(self) -> None:
        """Let go of files and connections."""


def batch_of(keys: Sequence[str], columns: Sequence[pa.Array], arrays: Mapping[str, Array]) -> Batch:
    """States as a batch: the key columns, whose names are `keys`, and the state's."""
    names = [*keys, *(f"__{name}" for name in arrays)]
    return Batch(pa.RecordBatch.from_arrays([*columns, *(pa.array(array) for array in arrays.values())], names=names))


def arrays_of(state: Batch, names: Sequence[str]) -> dict[str, Array]:
    """The state's columns of what `batch_of` made."""
    return {name: state.rows.column(f"__{name}").to_numpy(zero_copy_only=False) for name in names}
