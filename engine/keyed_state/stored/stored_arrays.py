"""State in arrays in a backend: a row of bytes per key, read and written by the batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ...context import Context
from ...types.arrays import Array
from ..arrays import StateArrays, arrays_of, batch_of
from .stored_rows import BackendKeys, StoredRows, ToBatch
from .stored_state import StoredState


class StoredArrays(StoredState, StateArrays):
    """State arrays in a backend. `keys` names the key columns, `state` the state's with their types.

    A batch is written only if all of it fits.
    """

    def __init__(self, context: Context, keys: tuple[str, ...], state: Mapping[str, np.dtype[Any]]) -> None:
        self._keys, self.types = keys, state
        self._dtype = np.dtype(list(state.items()))
        super().__init__(StoredRows(context, keys, self._batch))
        self._read: BackendKeys = [], []

    def read(self, columns: Sequence[pa.Array]) -> dict[str, Array]:
        self._read = self._rows.places(columns)
        nothing = bytes(self._dtype.itemsize)
        return self._arrays([nothing if row is None else row for row in self._rows.get(self._read)])

    def write(self, state: Mapping[str, Array]) -> None:
        self._put(self._read, state)

    def undo(self) -> None:
        """Do nothing: the backend has not changed."""

    def sweep(self, part: int, parts: int, expired: Callable[[Mapping[str, Array]], npt.NDArray[np.bool_]]) -> None:
        for group in self._rows.part(part, parts):
            keys, rows = self._rows.backend.items_of([group])
            gone = np.flatnonzero(expired(self._arrays(rows))).tolist() if keys else []
            if gone:
                self._rows.backend.delete_many([group] * len(gone), [keys[i] for i in gone])

    def install(self, chunk: Batch) -> None:
        if self._rows.take_over(chunk) is None:
            places = self._rows.places([chunk.rows.column(key) for key in self._keys])
            self._put(places, arrays_of(chunk, self._dtype.names or ()))

    def _saving(self) -> ToBatch:
        return self._batch

    def _put(self, places: BackendKeys, state: Mapping[str, Array]) -> None:
        table = np.empty(len(places[0]), self._dtype)
        for name in self._dtype.names or ():
            table[name] = state[name]
        self._rows.put(places, table.view(f"V{self._dtype.itemsize}").tolist())

    def _arrays(self, rows: Sequence[bytes]) -> dict[str, Array]:
        table = np.frombuffer(b"".join(rows), self._dtype)
        return {name: table[name].copy() for name in self._dtype.names or ()}

    def _batch(self, columns: list[pa.Array], rows: list[bytes]) -> Batch:
        return batch_of(self._keys, columns, self._arrays(rows))
