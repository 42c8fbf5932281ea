"""The operator `stateful_map_columns`: a user's function on all of a batch's rows, sorted by key, with the keys' states as
columns too.

One call per batch instead of one per record: the function's numpy runs over all keys at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ...context import Context, Emit
from ...errors import RecordError
from ...functions.error_policy import ErrorPolicy, OnError, Refused, function_name
from ...functions.key_rows import KeyRows
from ...keyed_state.arrays import StateArrays
from ...keyed_state.kinds.opening import open_arrays
from ...keys.encoding import EncodedKeys, encode_keys, key_values
from ...needed import Needed
from ...state_description import StateDescription, columns_text
from ...types.arrays import Array, exactly_as
from ...types.exact import Inexact, exactly
from ...types.value_column import column_of
from ..function import FunctionInstance, FunctionOperator
from ..keyed import KeyedInstance, KeyedOperator

ColumnsFunction = Callable[[dict[str, Array], KeyRows], tuple[Mapping[str, Array], Mapping[str, Array] | None]]
"""`function(state, rows) -> (state, columns or None)`: state arrays of shape (keys,), zero for a new key; rows sorted by key."""


@dataclass(frozen=True, eq=False)
class StatefulMapColumns(FunctionOperator, KeyedOperator):
    """An operator that calls a function per batch; its output has a row per input row, or per row that a mask selects.

    See `KeyRows.where` for masks. `state`: the columns of the state, with their types; `columns`: those of the input that the
    function reads, None for all.
    """

    keys: tuple[str, ...]
    function: ColumnsFunction
    state: Mapping[str, np.dtype[Any]]
    columns: tuple[str, ...] | None = None
    on_error: OnError = "stop"

    takes_updates = True

    def state_description(self) -> StateDescription:
        parts = {name: dtype.str.lstrip("<|=") for name, dtype in self.state.items()}
        return StateDescription("a stateful_map_columns", {"keys": columns_text(self.keys)}, parts, "the state's column")

    def open(self, context: Context) -> StatefulMapColumnsInstance:
        return StatefulMapColumnsInstance(self, context)

    def needs(self, wanted: Needed | None) -> Needed | None:
        return None if self.columns is None else Needed(frozenset(self.columns))

    def describe(self) -> str:
        return f"{getattr(self.function, '__qualname__', 'function')} by {', '.join(self.keys)}"


class StatefulMapColumnsInstance(FunctionInstance, KeyedInstance):
    """An instance whose state is a row per key, in columns of the types that the user chose."""

    state: StateArrays

    def __init__(self, operator: StatefulMapColumns, context: Context) -> None:
        super().__init__(context, operator.keys, open_arrays(context, operator.keys, operator.state))
        self.function, self.columns = operator.function, operator.columns
        self.errors = ErrorPolicy(context.name, operator.on_error, keyed=True)
        self._types = operator.state

    def process(self, batch: Batch, emit: Emit) -> None:
        keys = encode_keys(batch.rows, self.keys, self.context.name)
        self.note_load(keys.columns, np.bincount(keys.codes, minlength=keys.count))
        results: list[Batch] = []
        self.errors.halved(batch, lambda part: results.extend(self._attempt(part, keys if part is batch else None)), emit)
        for result in results:
            emit(result)

    def _attempt(self, batch: Batch, encoded: EncodedKeys | None) -> list[Batch]:
        """Return the function's result. Raises Refused for a batch that it refuses; the states are then as before."""
        keys = encoded if encoded is not None else encode_keys(batch.rows, self.keys, self.context.name)
        order = np.argsort(keys.codes.astype(np.uint16) if keys.count < 2**16 else keys.codes, kind="stable")
        rows = KeyRows(self._sorted(batch, order), np.bincount(keys.codes, minlength=keys.count))
        before = self.state.read(keys.columns)
        try:
            state, output = self._checked(self.function(before, rows), keys.count)
            results = [] if output is None else self._results(batch, order, output, rows.selected)
            self.state.write(state)
        except BaseException as error:
            self.state.undo()
            raise Refused(0, error, self.function, key_values(keys.columns)[0]) from error
        return results

    def _checked(self, returned: Any, keys: int) -> tuple[Mapping[str, Array], Mapping[str, Array] | None]:
        """Return the function's result. Raises RecordError unless it is a state and columns."""
        wrong = None
        if not isinstance(returned, tuple) or len(returned) != 2:
            wrong = f"{type(returned).__name__}: return a tuple (state, columns), with None as columns for no rows"
        elif not isinstance(returned[0], Mapping) or set(returned[0]) != set(self._types):
            columns = ", ".join(map(str, returned[0])) if isinstance(returned[0], Mapping) else type(returned[0]).__name__
            wrong = f"a state of {columns or 'no columns'}: return a dict of the arrays {', '.join(self._types)}"
        elif not (returned[1] is None or isinstance(returned[1], Mapping)) or returned[1] == {}:
            wrong = f"{returned[1]!r:.200} as columns: return a dict of arrays, or None for no rows"
        else:
            sizes = {name: np.shape(column) for name, column in returned[0].items()}
            uneven = next((name for name, shape in sizes.items() if shape not in ((keys,), ())), None)
            if uneven is not None:
                wrong = f"a state `{uneven}` of shape {sizes[uneven]} for {keys} keys: return an entry for each key"
        if wrong is not None:
            raise RecordError(self.context.name, f"{function_name(self.function)} returned {wrong}")
        state, output = returned
        return {name: self._fitting(name, values) for name, values in state.items()}, output

    def _fitting(self, name: str, values: Any) -> Array:
        """Return a state's array in the type that the user chose. Raises RecordError for a value that would change."""
        dtype = self._types[name]
        given = np.asarray(values)
        fitting = given if given.dtype == dtype else exactly_as(given, dtype)
        if fitting is None:
            problem = f"returned a state `{name}` of {given.dtype} whose values don't fit the declared {dtype}"
            raise RecordError(self.context.name, f'{function_name(self.function)} {problem}: say state={{"{name}": "{given.dtype}"}}')
        return fitting

    def _sorted(self, batch: Batch, order: npt.NDArray[np.intp]) -> dict[str, Array]:
        names = list(self.columns) if self.columns is not None else batch.rows.schema.names
        missing = [n for n in names if batch.rows.schema.get_field_index(n) < 0]
        if missing:
            raise RecordError(self.context.name, f"no column `{missing[0]}`; there are: {', '.join(batch.rows.schema.names)}")
        return {name: self._numbers(name, batch.rows.column(name))[order] for name in names}

    def _numbers(self, name: str, column: pa.Array) -> Array:
        """Return a column as numpy has it: integers with nulls as floats. Raises RecordError for one that a float can't hold."""
        if column.null_count and pa.types.is_integer(column.type):
            try:
                column = exactly(column, pa.float64())
            except Inexact as error:
                problem = f"column `{name}` has nulls, so its integers become floats in numpy, and {error}: fill the nulls by map_batches"
                raise RecordError(self.context.name, problem) from error
        numbers: Array = column.to_numpy(zero_copy_only=False)
        return numbers

    def _results(
        self, batch: Batch, order: npt.NDArray[np.intp], output: Mapping[str, Array], selected: npt.NDArray[np.bool_] | None
    ) -> list[Batch]:
        columns = [column_of(name, column) for name, column in output.items()]
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
