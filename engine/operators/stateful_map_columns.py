"""`stateful_map_columns`: a user's function on all of a key's rows of a batch at once, as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch, Times
from ..errors import RecordError
from ..keys import Keys, encode_keys
from .base import Context, Emit
from .keyed import KeyedOperator
from .user_function import refuse

ColumnsFunction = Callable[[Any, dict[str, npt.NDArray[Any]]], tuple[Any, Mapping[str, Any] | None]]
"""`function(state, columns) -> (state, columns or None)`: numpy arrays, the key's rows in arrival order."""


class StatefulMapColumns(KeyedOperator):
    """Sorts a batch by key once (stable), then calls the function once per key on slices that copy nothing.

    Results may have any number of rows; with event time they take the times of the key's rows if there are as many, else the newest.
    """

    def __init__(self, keys: tuple[str, ...], function: ColumnsFunction, columns: tuple[str, ...] | None = None) -> None:
        self.keys, self.function, self.columns = keys, function, columns

    def open(self, context: Context) -> None:
        super().open(context)
        self.states: dict[Any, Any] = {}

    def process(self, batch: Batch, emit: Emit) -> None:
        keys = encode_keys(batch.rows, self.keys, self.context.name)
        counts = np.bincount(keys.codes, minlength=keys.count)
        self.note_load(keys.columns, counts)
        results, times = self._call(batch, keys, counts)
        if results:
            names = list(results[0])
            columns = [pa.array(np.concatenate([np.atleast_1d(r[name]) for r in results])) for name in names]
            emit(Batch(pa.record_batch(columns, names=names), np.concatenate(times) if batch.times is not None else None))

    def _call(self, batch: Batch, keys: Keys, counts: npt.NDArray[np.int64]) -> tuple[list[Mapping[str, Any]], list[Times]]:
        order = np.argsort(keys.codes.astype(np.uint16) if keys.count < 2**16 else keys.codes, kind="stable")
        names, arrays = self._sorted_columns(batch, order)
        sorted_times = None if batch.times is None else batch.times[order]
        function, states = self.function, self.states
        results: list[Mapping[str, Any]] = []
        times: list[Times] = []
        start = 0
        for key, end in zip(keys.values(), np.cumsum(counts).tolist(), strict=True):
            try:
                state, result = function(states.get(key), {name: array[start:end] for name, array in zip(names, arrays, strict=True)})
            except Exception as error:
                refuse(self.context.name, function, error, key=key, record=batch.slice(int(order[start]), 1).to_rows()[0])
            if state is None:
                states.pop(key, None)
            else:
                states[key] = state
            if result is not None:
                results.append(result)
                if sorted_times is not None:
                    times.append(self._times(result, sorted_times[start:end], key))
            start = end
        return results, times

    def _sorted_columns(self, batch: Batch, order: npt.NDArray[np.intp]) -> tuple[list[str], list[npt.NDArray[Any]]]:
        names = list(self.columns) if self.columns is not None else batch.rows.schema.names
        missing = [n for n in names if batch.rows.schema.get_field_index(n) < 0]
        if missing:
            raise RecordError(self.context.name, f"no column `{missing[0]}`; there are: {', '.join(batch.rows.schema.names)}")
        return names, [batch.rows.column(n).to_numpy(zero_copy_only=False)[order] for n in names]

    def _times(self, result: Mapping[str, Any], times: Times, key: Any) -> Times:
        sizes = {len(np.atleast_1d(column)) for column in result.values()}
        if len(sizes) != 1:
            raise RecordError(self.context.name, f"the function returned columns of different lengths: {sorted(sizes)}", key=key)
        size = sizes.pop()
        return times if size == len(times) else np.full(size, times.max())

    def state_bytes(self) -> int:
        return 200 * len(self.states)

    def describe(self) -> str:
        return f"{getattr(self.function, '__qualname__', 'function')} by {', '.join(self.keys)}"
