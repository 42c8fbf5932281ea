"""The operator `co_group`: a user's function per key and complete window, with the rows of both streams; one may have none.

Rows are in the order of event time, those of one time in the order of their values, so the result doesn't depend on their
arrival. A null in a key is a key like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...aggregates.row_order import has_order, sort_keys
from ...batch import Batch
from ...context import Context, Emit
from ...errors import RecordError
from ...functions.error_policy import OnError, function_name
from ...joins.block import Block
from ...joins.sides import LEFT, RIGHT, Side
from ...joins.window_rows import Complete
from ...state_description import StateDescription
from ...time.sessions import SessionWindows
from ...time.windows import Window, Windows
from ..aggregation.window_bounds import END, START, described_windows, timestamps
from ..aggregation.window_calls import WindowCalls
from ..function import FunctionOperator
from ..two_inputs import TwoInputs
from .windows_of_two import WindowsOfTwo

CoGroupFunction = Callable[[Any, Window, list[dict[str, Any]], list[dict[str, Any]]], Iterable[Any]]
"""`function(key, window, left_rows, right_rows) -> rows`; the key is a tuple if it has several columns."""


@dataclass(frozen=True, eq=False)
class CoGroup(FunctionOperator, TwoInputs):
    """An operator that calls `function` once for each key and complete window with rows on either side."""

    windows: Windows | SessionWindows
    function: CoGroupFunction
    schema: pa.Schema | None = None
    on_error: OnError = "stop"

    def state_description(self) -> StateDescription:
        return StateDescription("a co_group", {**self.key_traits(), "windows": described_windows(self.windows)})

    def open(self, context: Context) -> CoGroupInstance:
        return CoGroupInstance(self, context)

    def describe(self) -> str:
        return f"{function_name(self.function)}, {self.windows.describe()}"


class CoGroupInstance(WindowCalls, WindowsOfTwo):
    """An instance that keeps the rows of both sides as a join within windows does."""

    nulls_meet = True

    def __init__(self, operator: CoGroup, context: Context) -> None:
        WindowsOfTwo.__init__(self, operator, context, operator.windows)
        self.open_calls(context, operator.function, operator.schema, operator.on_error)

    def emit_windows(self, windows: Complete, emit: Emit) -> None:
        names = [*self.keys, START, END, "left", "right"]
        for groups, keys in windows.by_key(self.state.keys, self.context.name):
            lists = [self._lists(side, groups) for side in (LEFT, RIGHT)]
            columns = [*keys, timestamps(groups.starts), timestamps(groups.ends), *lists]
            self.call(Batch(pa.RecordBatch.from_arrays(columns, names=names), groups.times), emit)

    def _lists(self, side: Side, windows: Complete) -> pa.Array:
        """Return the side's rows of each window, as a column of lists."""
        parts, count = windows.sides.get(side, ()), len(windows.times)
        if not parts:
            return pa.array([[]] * count, pa.large_list(pa.struct([])))
        try:
            rows = Block.concat([block for block, _ in parts]).rows
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            which = "left" if side is LEFT else "right"
            problem = f"the columns of its {which} stream have varying types ({error}): give them one, for example by schema="
            raise RecordError(self.context.name, problem) from error
        numbers = np.concatenate([numbers for _, numbers in parts])
        times = np.concatenate([block.times for block, _ in parts])
        by = sort_keys([(column, False) for column in rows.columns if has_order(column.type)])
        order = pa.array(np.lexsort((*reversed(by), times, numbers)))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=count))])
        structs = pa.StructArray.from_arrays([column.take(order) for column in rows.columns], fields=list(rows.schema))
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), structs)
