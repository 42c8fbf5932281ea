"""`stateful_map_columns`: a user's function on all of a batch's rows, sorted by key, with the states of the keys as columns too.

One call per batch instead of one per record: the function's numpy runs over all keys at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..errors import RecordError
from ..key_rows import Array, KeyRows
from ..keys import encode_keys
from .base import Context, Emit
from .keyed import KeyedOperator
from .user_function import refuse

ColumnsFunction = Callable[[dict[str, Array], KeyRows], tuple[Mapping[str, Array], Mapping[str, Array] | None]]
"""`function(state, rows) -> (state, columns or None)`: state arrays of shape (keys,), zero for a new key; rows sorted by key."""


class StatefulMapColumns(KeyedOperator):
    """Output columns have a row per input row, or as many as a mask of the rows lets through; see `KeyRows.where`."""

    def __init__(
        self, keys: tuple[str, ...], function: ColumnsFunction, state: Mapping[str, np.dtype[Any]], columns: tuple[str, ...] | None = None
    ) -> None:
        self.keys, self.function, self.state, self.columns = keys, function, dict(state), columns

    def open(self, context: Context) -> None:
        super().open(context)
        self.slots: dict[Any, int] = {}
        self.arrays = {name: np.zeros(1024, dtype) for name, dtype in self.state.items()}

    def process(self, batch: Batch, emit: Emit) -> None:
        name = self.context.name
        keys = encode_keys(batch.rows, self.keys, name)
        lengths = np.bincount(keys.codes, minlength=keys.count)
        self.note_load(keys.columns, lengths)
        order = np.argsort(keys.codes.astype(np.uint16) if keys.count < 2**16 else keys.codes, kind="stable")
        rows = KeyRows(self._sorted(batch, order), lengths)
        where = self._where(keys.values())
        try:
            state, output = self.function({n: array[where] for n, array in self.arrays.items()}, rows)
            for column, array in self.arrays.items():
                array[where] = state[column]
            if output is not None:
                self._emit(batch, order, output, rows.selected, emit)
        except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
            first = batch.slice(int(order[0]), 1).to_rows()[0]
            refuse(name, self.function, error, record=f"a batch of {batch.num_rows} rows of {keys.count} keys, the first: {first}")

    def state_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values()) + 100 * len(self.slots)

    def describe(self) -> str:
        return f"{getattr(self.function, '__qualname__', 'function')} by {', '.join(self.keys)}"

    def _where(self, keys: list[Any]) -> npt.NDArray[np.int64]:
        """The slots of the keys' states; new keys get new ones."""
        slots = self.slots
        where = np.array([slots.setdefault(key, len(slots)) for key in keys], np.int64)
        for name, array in self.arrays.items():
            if len(slots) > len(array):
                self.arrays[name] = np.concatenate([array, np.zeros(max(len(array), len(slots) - len(array)), array.dtype)])
        return where

    def _sorted(self, batch: Batch, order: npt.NDArray[np.intp]) -> dict[str, Array]:
        names = list(self.columns) if self.columns is not None else batch.rows.schema.names
        missing = [n for n in names if batch.rows.schema.get_field_index(n) < 0]
        if missing:
            raise RecordError(self.context.name, f"no column `{missing[0]}`; there are: {', '.join(batch.rows.schema.names)}")
        return {n: batch.rows.column(n).to_numpy(zero_copy_only=False)[order] for n in names}

    def _emit(
        self,
        batch: Batch,
        order: npt.NDArray[np.intp],
        output: Mapping[str, Array],
        selected: npt.NDArray[np.bool_] | None,
        emit: Emit,
    ) -> None:
        columns = [pa.array(column) for column in output.values()]
        sizes = {len(column) for column in columns}
        if len(sizes) != 1:
            raise RecordError(self.context.name, f"the function returned columns of different lengths: {sorted(sizes)}")
        size = sizes.pop()
        if size == batch.num_rows:
            rows = order
        elif selected is not None and size == int(selected.sum()):
            rows = order[selected]
        else:
            problem = f"the function returned {size} rows for {batch.num_rows}: return a row for each, or those of rows.where(mask)"
            raise RecordError(self.context.name, problem)
        if size:
            times = None if batch.times is None else batch.times[rows]
            emit(Batch(pa.record_batch(columns, names=list(output)), times))
