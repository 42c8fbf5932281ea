"""The interface of state in arrays: an entry per key, an array per column of the state, in memory or in a backend."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..state_description import PartsChange
from ..types.arrays import Array
from .base import KeyedState


class StateArrays(KeyedState):
    """State in arrays, of the `types` of its columns. Used by one thread.

    `read` is followed by `write`, or by `undo`, also after a `write` that failed.
    """

    whole_keys = True
    types: Mapping[str, np.dtype[Any]]

    @abstractmethod
    def read(self, columns: Sequence[pa.Array]) -> dict[str, Array]:
        """Return copies of the states of the keys in these key columns, all distinct: one array per state column, zero for a new
        key.
        """

    @abstractmethod
    def write(self, state: Mapping[str, Array]) -> None:
        """Write new values of the states that were read.

        Raises KeyError, TypeError or ValueError if one doesn't fit, and then writes none.
        """

    @abstractmethod
    def undo(self) -> None:
        """Abandon the batch: the states are as they were before `read`."""

    def adapted(self, chunk: Batch, change: PartsChange) -> Batch:
        """Rearrange a chunk; a new column holds zeros, as for a new key."""
        rows = chunk.rows
        keys = rows.select([name for name in rows.schema.names if not name.startswith("__") or name[2:] not in change.then])
        arrays = {name: np.zeros(rows.num_rows, dtype) for name, dtype in self.types.items()}
        arrays |= arrays_of(chunk, [name for name in change.now if name in change.then])
        return batch_of(keys.schema.names, keys.columns, arrays)

    @abstractmethod
    def sweep(self, part: int, parts: int, expired: Callable[[Mapping[str, Array]], npt.NDArray[np.bool_]]) -> None:
        """Examine one of `parts` parts of the keys, and forget those whose states `expired` selects. Called between two batches.

        All parts in turn cover every key that exists throughout.
        """


def batch_of(keys: Sequence[str], columns: Sequence[pa.Array], arrays: Mapping[str, Array]) -> Batch:
    """Return states as a batch: the key columns, named `keys`, and the state's."""
    names = [*keys, *(f"__{name}" for name in arrays)]
    return Batch(pa.RecordBatch.from_arrays([*columns, *(pa.array(array) for array in arrays.values())], names=names))


def arrays_of(state: Batch, names: Sequence[str]) -> dict[str, Array]:
    """Return the state's columns of a batch by `batch_of`."""
    return {name: state.rows.column(f"__{name}").to_numpy(zero_copy_only=False) for name in names}
