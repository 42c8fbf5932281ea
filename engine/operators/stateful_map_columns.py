"""`stateful_map_columns`: a user's function on all of a batch's rows, sorted by key, with the states of the keys as columns too.

One call per batch instead of one per record: the function's numpy runs over all keys at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.slots import Slots
from ..batch import Batch
from ..errors import RecordError
from ..key_rows import Array, KeyRows
from ..keys import Keys, KeyTypes, encode_keys, key_hashes, key_values
from ..routing import Move
from .base import Context, Emit
from .keyed import Departing, KeyedOperator
from .refusals import OnError, Refused, Refusing

CHUNK = 16_384
"""Keys of a chunk of a snapshot."""

ColumnsFunction = Callable[[dict[str, Array], KeyRows], tuple[Mapping[str, Array], Mapping[str, Array] | None]]
"""`function(state, rows) -> (state, columns or None)`: state arrays of shape (keys,), zero for a new key; rows sorted by key."""


class StatefulMapColumns(Refusing, KeyedOperator):
    """Output columns have a row per input row, or as many as a mask of the rows lets through; see `KeyRows.where`."""

    keyed = True

    def __init__(
        self,
        keys: tuple[str, ...],
        function: ColumnsFunction,
        state: Mapping[str, np.dtype[Any]],
        columns: tuple[str, ...] | None = None,
        on_error: OnError = "stop",
    ) -> None:
        self.keys, self.function, self.state, self.columns, self.on_error = keys, function, dict(state), columns, on_error

    def open(self, context: Context) -> None:
        super().open(context)
        self.slots = Slots()
        self.key_types = KeyTypes()
        self.arrays = {name: np.zeros(0, dtype) for name, dtype in self.state.items()}

    def process(self, batch: Batch, emit: Emit) -> None:
        keys = encode_keys(batch.rows, self.keys, self.context.name)
        self.note_load(keys.columns, np.bincount(keys.codes, minlength=keys.count))
        results: list[Batch] = []
        self.refusals.halved(batch, lambda part: results.extend(self._attempt(part, keys if part is batch else None)), emit)
        for result in results:
            emit(result)

    def _attempt(self, batch: Batch, encoded: Keys | None) -> list[Batch]:
        """What the function returns. Raises Refused for a batch that it refuses; the states are then as before."""
        keys = encoded if encoded is not None else encode_keys(batch.rows, self.keys, self.context.name)
        order = np.argsort(keys.codes.astype(np.uint16) if keys.count < 2**16 else keys.codes, kind="stable")
        rows = KeyRows(self._sorted(batch, order), np.bincount(keys.codes, minlength=keys.count))
        where = self._where(keys.columns)
        fresh, before = self.slots.fresh, {name: array[where] for name, array in self.arrays.items()}
        given = before if self.refusals.stops else {name: array.copy() for name, array in before.items()}
        try:
            state, output = self.function(given, rows)
            for column, array in self.arrays.items():
                array[where] = state[column]
            return [] if output is None else self._results(batch, order, output, rows.selected)
        except Exception as error:
            for column, array in self.arrays.items():
                array[where] = before[column]
            self.slots.remove(fresh)
            raise Refused(0, error, self.function, key_values(keys.columns)[0]) from error

    def state_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values()) + self.slots.nbytes

    def describe(self) -> str:
        return f"{getattr(self.function, '__qualname__', 'function')} by {', '.join(self.keys)}"

    def _where(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """The slots of the keys' states; new keys get new ones, zero."""
        self.key_types.learn(columns)

        def hashes(fresh: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
            places = pa.array(fresh)
            return key_hashes([column.take(places) for column in columns], self.context.name)

        where = self.slots.find(key_values(columns), hashes)
        for name, array in self.arrays.items():
            if self.slots.capacity > len(array):
                self.arrays[name] = np.concatenate([array, np.zeros(self.slots.capacity - len(array), array.dtype)])
            self.arrays[name][self.slots.fresh] = 0
        return where

    def depart(self, move: Move) -> Departing:
        return _DepartingSlots(self, move)

    def install(self, state: Batch) -> None:
        where = self._where(self.key_columns(state.rows))
        for name, array in self.arrays.items():
            array[where] = state.rows.column(f"__{name}").to_numpy(zero_copy_only=False)

    def snapshot(self) -> Iterator[Batch]:
        where = self.slots.everything()
        return self._chunks(self.slots.keys(where), {name: array[where] for name, array in self.arrays.items()})

    def _chunks(self, keys: list[Any], arrays: Mapping[str, Array]) -> Iterator[Batch]:
        for first in range(0, len(keys), CHUNK):
            piece = slice(first, first + CHUNK)
            yield self.packed(keys[piece], {name: array[piece] for name, array in arrays.items()})

    def packed(self, keys: list[Any], arrays: Mapping[str, Array]) -> Batch:
        """States as a batch: key columns and the state's."""
        columns = [*self.key_types.columns(keys), *(pa.array(array) for array in arrays.values())]
        return Batch(pa.RecordBatch.from_arrays(columns, names=[*self.keys, *(f"__{name}" for name in arrays)]))

    def _sorted(self, batch: Batch, order: npt.NDArray[np.intp]) -> dict[str, Array]:
        names = list(self.columns) if self.columns is not None else batch.rows.schema.names
        missing = [n for n in names if batch.rows.schema.get_field_index(n) < 0]
        if missing:
            raise RecordError(self.context.name, f"no column `{missing[0]}`; there are: {', '.join(batch.rows.schema.names)}")
        return {n: batch.rows.column(n).to_numpy(zero_copy_only=False)[order] for n in names}

    def _results(
        self, batch: Batch, order: npt.NDArray[np.intp], output: Mapping[str, Array], selected: npt.NDArray[np.bool_] | None
    ) -> list[Batch]:
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
        return [Batch(pa.record_batch(columns, names=list(output)), None if batch.times is None else batch.times[rows])] if size else []


class _DepartingSlots(Departing):
    """States leave the arrays as they are taken."""

    def __init__(self, operator: StatefulMapColumns, move: Move) -> None:
        self._operator = operator
        where = operator.slots.where(lambda hashes: move.selects(hashes, operator.context.key_groups))
        self._left = operator.slots.keys(where)

    def some(self, keys: int) -> Batch | None:
        while self._left:
            taken, self._left = self._left[-keys:], self._left[:-keys]
            batch = self._take(taken)
            if batch is not None:
                return batch
        return None

    def of(self, columns: Sequence[pa.Array]) -> Batch | None:
        return self._take(key_values(columns))

    def _take(self, leaving: list[Any]) -> Batch | None:
        operator = self._operator
        where = operator.slots.known(leaving)
        if not len(where):
            return None
        batch = operator.packed(operator.slots.keys(where), {name: array[where] for name, array in operator.arrays.items()})
        operator.slots.remove(where)
        return batch
