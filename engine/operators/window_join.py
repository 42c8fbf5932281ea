"""Joins two streams by key within event-time windows: all results of a window leave at its end.

A pair appears once for each window that both rows are in. The results have the window's last microsecond as event time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..batch import Batch, Times
from ..errors import RecordError
from ..joins.block import Block
from ..joins.join_columns import How, JoinColumns
from ..joins.matching import ANY_TIME, Matcher
from ..joins.row_log import RowLog
from ..joins.segment import sorted_rows
from ..joins.sides import LEFT, RIGHT, Side, key_names, side_of
from ..keyed_state.join_rows import JoinRows
from ..keys.encoding import key_hashes
from ..protocol.elements import MAX_TIME, MIN_TIME
from ..time.windows import Windows
from .base import Context, Emit
from .join import LATE
from .keyed import KeyedInstance, KeyedOperator
from .window_bounds import END, START, bounds_of, timed


@dataclass(frozen=True, eq=False)
class WindowJoin(KeyedOperator):
    """`left_keys`, `right_keys`: the key columns of the inputs, in pairs; `keys`: their names in the inputs' common form."""

    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    windows: Windows
    how: How
    suffix: str

    needs_columns = True

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        return key_names(len(self.left_keys))

    def open(self, context: Context) -> WindowJoinInstance:
        return WindowJoinInstance(self, context)

    def describe(self) -> str:
        return f"{self.how}, in {self.windows.describe()} windows"


class WindowJoinInstance(KeyedInstance):
    """Its state is the rows of both sides whose windows are not complete; their due time is their event time."""

    state: JoinRows

    def __init__(self, operator: WindowJoin, context: Context) -> None:
        super().__init__(context, operator.keys, JoinRows(context, operator.left_keys, operator.right_keys))
        self._windows, self._how = operator.windows, operator.how
        self._columns = JoinColumns(context.name, operator.left_keys, operator.right_keys, operator.suffix)
        self._to_right = Matcher(operator.left_keys, operator.right_keys)
        self._to_left = Matcher(operator.right_keys, operator.left_keys)
        self.watermark = MIN_TIME

    def process(self, batch: Batch, emit: Emit) -> None:
        side = side_of(batch.rows.schema)
        rows = side.rows(batch.rows)
        self.state.learn(side, rows.schema)
        if not batch.num_rows:
            return
        self.note_rows(batch.rows)
        times = timed(batch, self._windows, self.context.name)
        block = sorted_rows(Block.of(rows, key_hashes(self.key_columns(batch.rows), self.context.name), times, times))
        late = self._last_ends(block.times) <= self.watermark
        if late.any():
            gone = block.filter(late)
            self.late_records += len(gone)
            emit(Batch(gone.rows, gone.times), LATE[side])
            block = block.filter(~late)
        self.state.append(side, block)

    def advance(self, watermark: int, emit: Emit) -> None:
        for end in self._complete(self.watermark, watermark):
            self._emit_window(end, emit)
        self.watermark = watermark
        for log in self.state.logs.values():
            log.forget(self._earliest(watermark))

    def _last_ends(self, times: Times) -> Times:
        """The end of the last window that each time is in."""
        windows = self._windows
        return times - (times - windows.offset) % windows.slide + windows.size

    def _earliest(self, watermark: int) -> int:
        """The earliest time in a window that is not complete."""
        return watermark if watermark == MAX_TIME else max(watermark - self._windows.size, MIN_TIME)

    def _complete(self, after: int, until: int) -> list[int]:
        """The ends in (after, until] of windows with rows, rising."""
        windows = self._windows
        if (after - windows.offset - windows.size) // windows.slide == (until - windows.offset - windows.size) // windows.slide:
            return []
        slide, ends = windows.slide, set[int]()
        times = [log.due_times(self._earliest(after), until) for log in self.state.logs.values()]
        for pane in np.unique(windows.pane_of(np.concatenate(times))).tolist():
            first = windows.first_end(pane)
            if first <= after:
                first += ((after - first) // slide + 1) * slide
            ends.update(range(first, min(windows.last_end(pane), until) + 1, slide))
        return sorted(ends)

    def _emit_window(self, end: int, emit: Emit) -> None:
        start = end - self._windows.size
        left, right = (list(self.state.due_in(side, start, end)) for side in self.state.logs)
        rights, lefts = RowLog.of(right), RowLog.of(left)
        for block in left:
            if self._how in ("inner", "left", "right", "full"):
                for ours, theirs in self._to_right.pairs(block, rights, ANY_TIME):
                    self._emit(self._columns.pairs(ours.rows, theirs.rows, None), start, end, emit)
            if self._how in ("left", "full", "semi", "anti"):
                matched = self._to_right.matched(block, rights, ANY_TIME)
                alone = block.filter(matched if self._how == "semi" else ~matched)
                self._emit(self._alone(LEFT, alone), start, end, emit)
        if self._how in ("right", "full"):
            for block in right:
                self._emit(self._alone(RIGHT, block.filter(~self._to_left.matched(block, lefts, ANY_TIME))), start, end, emit)

    def _alone(self, side: Side, block: Block) -> Batch:
        if self._how in ("semi", "anti"):
            return Batch(block.rows)
        if side is LEFT:
            return self._columns.left_only(block.rows, self.state.columns.get(RIGHT), None)
        return self._columns.right_only(self.state.columns.get(LEFT), block.rows, None)

    def _emit(self, batch: Batch, start: int, end: int, emit: Emit) -> None:
        """Emit rows of a window's results, with its bounds as the last columns."""
        if not batch.num_rows:
            return
        names = batch.rows.schema.names
        taken = next((name for name in (START, END) if name in names), None)
        if taken is not None:
            raise RecordError(self.context.name, f"its results would have two columns `{taken}`: rename or drop that of the input")
        columns = [*batch.rows.columns, *bounds_of(start, end, batch.num_rows)]
        emit(Batch(pa.RecordBatch.from_arrays(columns, names=[*names, START, END]), np.full(batch.num_rows, end - 1, np.int64)))
