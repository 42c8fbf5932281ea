"""`stateful_map_columns`: a user's function on all of a batch's rows, sorted by key, with the states of the keys as columns too.

One call per batch instead of one per record: the function's numpy runs over all keys at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..changes import Changes
from ..errors import RecordError
from ..key_rows import Array, KeyRows
from ..keys import Keys, encode_keys, key_values
from ..routing import Move
from ..state_places import open_arrays
from .base import Context, Emit
from .keyed import Departing, KeyedOperator
from .refusals import OnError, Refused, Refusing, function_name

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
        self.states = open_arrays(context, self.keys, self.state)

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
        before = self.states.read(keys.columns)
        try:
            state, output = self._checked(self.function(before, rows), keys.count)
            results = [] if output is None else self._results(batch, order, output, rows.selected)
            self.states.write(state)
        except BaseException as error:
            self.states.undo()
            raise Refused(0, error, self.function, key_values(keys.columns)[0]) from error
        return results

    def _checked(self, returned: Any, keys: int) -> tuple[Mapping[str, Array], Mapping[str, Array] | None]:
        """What the function returned, if it is a state and columns."""
        wrong = None
        if not isinstance(returned, tuple) or len(returned) != 2:
            wrong = f"{type(returned).__name__}: return a tuple (state, columns), with None as columns for no rows"
        elif not isinstance(returned[0], Mapping) or set(returned[0]) != set(self.state):
            columns = ", ".join(map(str, returned[0])) if isinstance(returned[0], Mapping) else type(returned[0]).__name__
            wrong = f"the state {columns}: return a dict of the arrays {', '.join(self.state)}"
        elif not (returned[1] is None or isinstance(returned[1], Mapping)) or returned[1] == {}:
            wrong = f"{returned[1]!r:.200} as columns: return a dict of arrays, or None for no rows"
        else:
            sizes = {name: np.shape(column) for name, column in returned[0].items()}
            uneven = next((name for name, shape in sizes.items() if shape != (keys,)), None)
            if uneven is not None:
                wrong = f"a state `{uneven}` of shape {sizes[uneven]} for {keys} keys: return an entry for each key"
        if wrong is not None:
            raise RecordError(self.context.name, f"{function_name(self.function)} returned {wrong}")
        state, output = returned
        return state, output

    def state_bytes(self) -> int:
        return self.states.nbytes

    def close(self) -> None:
        if hasattr(self, "states"):
            self.states.close()

    def describe(self) -> str:
        return f"{getattr(self.function, '__qualname__', 'function')} by {', '.join(self.keys)}"

    def depart(self, move: Move) -> Departing:
        return self.states.depart(move)

    def install(self, state: Batch) -> None:
        self.states.install(state)

    def snapshot(self) -> Iterator[Batch]:
        return self.states.snapshot()

    def changes(self) -> Changes | None:
        return self.states.changes()

    def delta(self, changes: Changes) -> Iterator[Batch]:
        return self.states.delta(changes)

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
