"""The operator `with_time`: event time from a column or a user's function, assigned in mid-stream, and watermarks from there.

The watermark of an instance is the newest time that it has assigned less `max_delay`. Invariant: a row whose time is at most
`max_delay` before the newest one that arrived at its worker is not late by the watermark of that worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch, Times
from ...context import Context, Emit
from ...errors import RecordError
from ...functions.error_policy import ErrorPolicy, OnError, Refused, function_name
from ...functions.rows_encoder import RowsEncoder
from ...functions.user_function import call_rows
from ...needed import Needed
from ...protocol.elements import MIN_TIME
from ...time.event_time import EventTime
from ...typed_rows.row_type import RowType
from ..function import FunctionInstance, FunctionOperator
from ..own_time import OwnTime, OwnTimeInstance

_TIME = "time"


@dataclass(frozen=True, eq=False)
class WithTime(FunctionOperator, OwnTime):
    """An operator that assigns event times. `time`: a column, or `function(row)`; numbers count `unit` since the Unix epoch.

    `max_delay` is in microseconds. `rows`: the class of the function's argument, None for dicts.
    """

    time: str | Callable[[dict[str, Any]], Any]
    unit: str = "ms"
    max_delay: int = 0
    on_error: OnError = "stop"
    rows: RowType | None = None

    def open(self, context: Context) -> WithTimeInstance:
        return WithTimeInstance(self, context)

    def needs(self, wanted: Needed | None) -> Needed | None:
        return None if wanted is None or not isinstance(self.time, str) else wanted.with_names([self.time])

    def describe(self) -> str:
        what = self.time if isinstance(self.time, str) else function_name(self.time)
        return f"{what}, up to {self.max_delay / 1e6:g} s late"


class WithTimeInstance(FunctionInstance, OwnTimeInstance):
    """An instance that remembers the newest time that it has assigned."""

    def __init__(self, operator: WithTime, context: Context) -> None:
        super().__init__(context)
        self._time, self._max_delay, self._rows = operator.time, operator.max_delay, operator.rows
        self.errors = ErrorPolicy(context.name, operator.on_error)
        self._spec = EventTime(operator.time if isinstance(operator.time, str) else _TIME, operator.unit)
        self._encoder = RowsEncoder(
            context.name,
            function=None if isinstance(operator.time, str) else function_name(operator.time),
            advice="return times of one type",
        )
        self._newest: int | None = None

    @property
    def watermark(self) -> int:
        return MIN_TIME if self._newest is None else self._newest - self._max_delay

    def rewind(self) -> None:
        self._newest = None

    def process(self, batch: Batch, emit: Emit) -> None:
        if isinstance(self._time, str):
            place = batch.rows.schema.get_field_index(self._time)
            if place < 0:
                raise RecordError(
                    self.context.name, f"no event time column `{self._time}`; there are: {', '.join(batch.rows.schema.names)}"
                )
            column = batch.rows.column(place)
        else:
            column, batch = self._called(self._time, batch, emit)
        if not batch.num_rows:
            return
        times, wrong = self._times(column)
        if wrong.any():
            for place in np.flatnonzero(wrong).tolist():
                self.errors.take(Refused(place, self._refusal(column[place])), batch, emit)
            batch, times = batch.filter(~wrong), times[~wrong]
        if batch.num_rows:
            newest = int(times.max())
            self._newest = newest if self._newest is None else max(self._newest, newest)
            emit(Batch(batch.rows, times))

    def _called(self, function: Callable[[dict[str, Any]], Any], batch: Batch, emit: Emit) -> tuple[pa.Array, Batch]:
        """Return the function's results for the rows as a column, and the batch without the refused rows."""
        results, batch = call_rows(function, batch, self.errors, emit, self._rows)
        offsets = np.arange(len(results) + 1)
        named = [{_TIME: result} for result in results]
        kept, columns = [np.zeros(0, np.intp)], list[pa.Array]()
        for first, stop, rows in self.errors.encoded(self._encoder, named, offsets, batch, emit):
            kept.append(np.arange(first, stop))
            columns.append(rows.column(0))
        if len(columns) == 1:
            return columns[0], batch if len(columns[0]) == batch.num_rows else batch.take(kept[1])
        parts = [Batch(pa.record_batch([part], names=[_TIME])) for part in columns]
        column = Batch.concat(parts).rows.column(0) if parts else pa.nulls(0)
        return column, batch.take(np.concatenate(kept))

    def _times(self, column: pa.Array) -> tuple[Times, npt.NDArray[np.bool_]]:
        """Return the times in microseconds, and a mask of rows without a time in the years 1 to 9999."""
        try:
            return self._spec.times(column)
        except TypeError as error:
            raise RecordError(self.context.name, f"{self._what} is {column.type}: {error}") from error

    def _refusal(self, value: pa.Scalar) -> RecordError:
        given = "null" if not value.is_valid else f"{_text(value)}, which is no time in the years 1 to 9999"
        advice = "drop such rows with filter before with_time, or say on_error="
        return RecordError(self.context.name, f"{self._what} is {given}: {advice}")

    @property
    def _what(self) -> str:
        return f"event time column `{self._time}`" if isinstance(self._time, str) else f"the time that {function_name(self._time)} returned"


def _text(value: pa.Scalar) -> str:
    try:
        return str(value)
    except (ValueError, OverflowError):  # it is outside Python's range of years
        return f"{value.value} {value.type}"
