"""Calls of a user's function for complete windows, given as a batch: key columns, the bounds, and a column of lists of rows per
input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...aggregates.ragged import Ragged
from ...batch import PIECE, Batch
from ...context import Context, Emit
from ...errors import RecordError
from ...functions.error_policy import ErrorPolicy, OnError, Refused, function_name
from ...functions.rows_encoder import RowsEncoder
from ...keys.encoding import key_values
from ...keys.unkeyed import shown
from ...time.windows import Window
from ..function import FunctionInstance
from ..keyed import KeyedInstance
from .window_bounds import END, START

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class WindowCalls(FunctionInstance, KeyedInstance):
    """The base of instances that call a function per window.

    A refused window is skipped. Results have their window's event time.
    """

    def open_calls(self, context: Context, function: Any, schema: pa.Schema | None, on_error: OnError) -> None:
        """Prepare the calls; called when the instance is created."""
        self.function = self.made(function)
        self.errors = ErrorPolicy(context.name, on_error, keyed=True)
        self.encoder = RowsEncoder(context.name, schema, function=function_name(function))

    def call(self, windows: Batch, emit: Emit) -> None:
        """Call the function for each window, and emit the rows it yields."""
        results: list[Any] = []
        counts = np.zeros(windows.num_rows, np.int64)
        for place, (key, window, rows) in enumerate(self._windows(windows)):
            try:
                yielded = self._yielded(self.function(key, window, *rows))
            except BaseException as error:  # noqa: BLE001 -- a user's function may raise anything
                self._refuse(Refused(0, error, self.function, key), windows.slice(place, 1), emit)
            else:
                results += yielded
                counts[place] = len(yielded)
        self._emit(results, counts, windows, emit)

    def _emit(self, results: list[Any], counts: npt.NDArray[np.int64], windows: Batch, emit: Emit) -> None:
        """Emit all results, `counts` of each window, at once; if some don't fit, window by window: their windows are refused."""
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

    def _windows(self, batch: Batch) -> Iterator[tuple[Any, Window, tuple[list[dict[str, Any]], ...]]]:
        """Yield the key, the window and its rows of each input, for each window."""
        rows, count = batch.rows, batch.num_rows
        names = shown(self.keys)
        keys = key_values(rows.columns[: len(names)]) if names else repeat(None, count)
        bounds = [rows.column(len(names) + place).view(pa.int64()).to_pylist() for place in range(2)]
        lists = [_rows_of(Ragged.from_arrow(column)) for column in rows.columns[len(names) + len(bounds) :]]
        for key, start, end, found in zip(keys, *bounds, zip(*lists, strict=True), strict=True):
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
        """Handle the refusal of one window. Its rows are created again: the function may have changed those that it got."""
        assert window.times is not None
        ((_, bounds, rows),) = self._windows(window)
        names = window.rows.schema.names[-len(rows) :]
        record = {START: bounds.start, END: bounds.end, **dict(zip(names, rows, strict=True))}
        self.errors.note(refused, record, int(window.times[0]), emit)


def _rows_of(lists: Ragged) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each list as dicts; those of some lists are created at once."""
    first, offsets = 0, lists.offsets.tolist()
    while first < len(lists):
        last = max(first + 1, int(np.searchsorted(lists.offsets, offsets[first] + PIECE, side="right")) - 1)
        begin = offsets[first]
        values = lists.values.slice(begin, offsets[last] - begin)
        rows = Batch(pa.RecordBatch.from_struct_array(values)).to_rows()
        yield from (rows[offsets[i] - begin : offsets[i + 1] - begin] for i in range(first, last))
        first = last
