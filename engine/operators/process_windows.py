"""`.window(...).process(...)`: a user's function per key and complete window, with all its rows.

The rows are kept by the operator of such windows, as an aggregate of theirs. So late rows, moves and checkpoints are as with any other
aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...state.backends.settings import MEMORY
from ..aggregates.ragged import Ragged
from ..aggregates.whole_rows import WholeRows
from ..batch import PIECE, Batch
from ..errors import RecordError
from ..functions.error_policy import ErrorPolicy, OnError, Refused, function_name
from ..functions.rows_encoder import RowsEncoder
from ..functions.window import Window
from ..keys.encoding import key_values
from ..keys.unkeyed import described, shown
from .aggregate_sessions import AggregateSessions
from .aggregate_windows import AggregateWindows
from .base import Context, Emit
from .function import FunctionInstance, FunctionOperator
from .keyed import KeyedInstance, KeyedOperator
from .window_bounds import END, START

WindowFunction = Callable[[Any, Window, list[dict[str, Any]]], Iterable[Any]]
"""`function(key, window, rows) -> rows`; the key is None without `key_by`, and a tuple if it has several columns."""

ROWS: dict[str, WholeRows] = {"rows": WholeRows()}
"""The aggregates of the operator that keeps the rows."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class ProcessWindows(FunctionOperator, KeyedOperator):
    """`keeps`: the operator of the windows, with the aggregates `ROWS`. A result has the event time of its window's results."""

    keeps: AggregateWindows | AggregateSessions
    function: WindowFunction
    schema: pa.Schema | None = None
    on_error: OnError = "stop"

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.keeps.keys

    def open(self, context: Context) -> ProcessWindowsInstance:
        return ProcessWindowsInstance(self, context)

    def describe(self) -> str:
        return f"{function_name(self.function)} {described(self.keys)}, {self.keeps.windows.describe()}"


class ProcessWindowsInstance(FunctionInstance, KeyedInstance):
    """Its state is that of the windows."""

    def __init__(self, operator: ProcessWindows, context: Context) -> None:
        self._keeps = operator.keeps.open(context)
        KeyedInstance.__init__(self, context, operator.keys, self._keeps.state)
        self.merges_state = self._keeps.merges_state
        self.function = self.made(operator.function)
        self.errors = ErrorPolicy(context.name, operator.on_error, keyed=True)
        self.encoder = RowsEncoder(context.name, operator.schema)
        self._checked = context.state.backend == MEMORY

    def process(self, batch: Batch, emit: Emit) -> None:
        if not self._checked:
            self._check(batch.rows.schema)
        self._keeps.process(batch, self._taking(emit))
        self.late_records = self._keeps.late_records

    def advance(self, watermark: int, emit: Emit) -> None:
        self._keeps.advance(watermark, self._taking(emit))

    def _check(self, schema: pa.Schema) -> None:
        """Raises RecordError for columns that a backend outside memory can't keep."""
        nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        if nested:
            problem = f"whole rows with nested columns ({', '.join(nested)}) can be kept in memory only"
            raise RecordError(self.context.name, f'{problem}: drop them, flatten them, or use StateConfig("memory")')
        self._checked = True

    def _taking(self, emit: Emit) -> Emit:
        """Calls the function for the windows' results, in place of emitting them."""

        def take(batch: Batch, port: str = "out") -> None:
            if port == "out":
                self._call(batch, emit)
            else:
                emit(batch, port)

        return take

    def _call(self, windows: Batch, emit: Emit) -> None:
        """Call the function for each window, and emit what it yields."""
        results: list[Any] = []
        counts = np.zeros(windows.num_rows, np.int64)
        for place, (key, window, rows) in enumerate(self._windows(windows)):
            try:
                yielded = self._yielded(self.function(key, window, rows))
            except BaseException as error:  # noqa: BLE001 -- a user's function may raise anything
                self._refuse(Refused(0, error, self.function, key), windows.slice(place, 1), emit)
            else:
                results += yielded
                counts[place] = len(yielded)
        self._emit(results, counts, windows, emit)

    def _emit(self, results: list[Any], counts: npt.NDArray[np.int64], windows: Batch, emit: Emit) -> None:
        """Emit all results, `counts` of each window, at once, or window by window if some don't fit: their windows are refused."""
        if not results:
            return
        try:
            rows = self.encoder.encode(results)
        except RecordError as error:
            if windows.num_rows == 1:
                ((key, _, _),) = self._windows(windows)
                self._refuse(Refused(0, error, None, key), windows, emit)
                return
            ends = np.cumsum(counts).tolist()
            for place, end in enumerate(ends):
                one = slice(place, place + 1)
                self._emit(results[end - counts[place] : end], counts[one], windows.slice(place, 1), emit)
        else:
            assert windows.times is not None
            emit(Batch(rows, np.repeat(windows.times, counts)))

    def _windows(self, batch: Batch) -> Iterator[tuple[Any, Window, list[dict[str, Any]]]]:
        """The key, the window and its rows, for each window."""
        rows, count = batch.rows, batch.num_rows
        names = shown(self.keys)
        keys = key_values(rows.columns[: len(names)]) if names else repeat(None, count)
        bounds = [rows.column(name).view(pa.int64()).to_pylist() for name in (START, END)]
        lists = Ragged.from_arrow(rows.column(rows.num_columns - 1))
        for key, start, end, found in zip(keys, *bounds, _rows_of(lists), strict=True):
            yield key, Window(_EPOCH + timedelta(microseconds=start), _EPOCH + timedelta(microseconds=end)), found

    def _yielded(self, results: Any) -> list[Any]:
        if results is None:
            return []
        if type(results) is list:
            return results
        if isinstance(results, (dict, str, bytes)) or not isinstance(results, Iterable):
            problem = f"{function_name(self.function)} returned {results!r:.200}: yield rows, or return a list of them"
            raise RecordError(self.context.name, problem)
        return list(results)

    def _refuse(self, refused: Refused, window: Batch, emit: Emit) -> None:
        """One window is refused. Its rows are made anew: the function may have changed those that it got."""
        assert window.times is not None
        ((_, bounds, rows),) = self._windows(window)
        self.errors.note(refused, {START: bounds.start, END: bounds.end, "rows": rows}, int(window.times[0]), emit)


def _rows_of(lists: Ragged) -> Iterator[list[dict[str, Any]]]:
    """The rows of each list as dicts; those of some lists are made at once."""
    first, offsets = 0, lists.offsets.tolist()
    while first < len(lists):
        last = max(first + 1, int(np.searchsorted(lists.offsets, offsets[first] + PIECE, side="right")) - 1)
        begin = offsets[first]
        values = lists.values.slice(begin, offsets[last] - begin)
        rows = Batch(pa.RecordBatch.from_struct_array(values)).to_rows()
        yield from (rows[offsets[i] - begin : offsets[i + 1] - begin] for i in range(first, last))
        first = last
