"""The join of two streams by key within event-time windows: all results of a window are emitted at its end.

A pair appears once for each window that both rows are in. The results of a tumbling or sliding window have its last microsecond
as event time, those of a session its end.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...joins.block import Block
from ...joins.join_columns import DEALABLE, How, JoinColumns
from ...joins.matching import Matcher
from ...joins.row_log import RowLog
from ...joins.sides import LEFT, RIGHT, Side
from ...joins.window_rows import Complete, Groups
from ...protocol.split_route import Dealt
from ...state_description import StateDescription
from ...time.sessions import SessionWindows
from ...time.windows import Windows
from ..aggregation.window_bounds import END, START, TIMESTAMP, described_windows, timestamps
from .pairing import NULLS_OF, Pairing
from .windows_of_two import WindowsOfTwo


@dataclass(frozen=True, eq=False)
class WindowJoin(Pairing):
    """A join in windows. `how`: the rows that are emitted."""

    windows: Windows | SessionWindows
    how: How
    suffix: str

    @property
    def dealable(self) -> tuple[Dealt, ...]:
        """Return the sides whose rows may be dealt: none in sessions, whose ends depend on all rows of a key."""
        return () if isinstance(self.windows, SessionWindows) else DEALABLE[self.how]

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return super().known_columns(inputs).having(dict.fromkeys((START, END), TIMESTAMP))

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        return super().problem(inputs) or bounds_problem(super().known_columns(inputs).types)

    def state_description(self) -> StateDescription:
        return StateDescription("a join in windows", {**self.key_traits(), "join": self.how, "windows": described_windows(self.windows)})

    def open(self, context: Context) -> WindowJoinInstance:
        return WindowJoinInstance(self, context)

    def describe(self) -> str:
        return f"{self.how}, in {self.windows.describe()}{'' if isinstance(self.windows, SessionWindows) else ' windows'}"


class WindowJoinInstance(WindowsOfTwo):
    """An instance that pairs rows of both sides that have the number of one window."""

    def __init__(self, operator: WindowJoin, context: Context) -> None:
        super().__init__(operator, context, operator.windows)
        self._how = operator.how
        self._columns = JoinColumns(context.name, operator.left_keys, operator.right_keys, operator.suffix, operator.how)
        self._to_right = Matcher(operator.left_keys, operator.right_keys)
        self._to_left = Matcher(operator.right_keys, operator.left_keys)

    @property
    def awaits(self) -> tuple[Side, ...]:
        return self.awaited(*NULLS_OF.get(self._how, ()))

    def emit_windows(self, windows: Complete, emit: Emit) -> None:
        left, right = ([_numbered(*rows) for rows in windows.sides[side]] for side in (LEFT, RIGHT))
        rights, lefts = RowLog.of(right), RowLog.of(left)
        for block in left:
            if self._how in ("inner", "left", "right", "full"):
                for ours, theirs in self._to_right.pairs(block, rights, (block.times, block.times)):
                    self._emit(self._columns.pairs(ours.rows, theirs.rows, None), windows, ours.times, emit)
            if self._how in ("left", "full", "semi", "anti"):
                matched = self._to_right.matched(block, rights, (block.times, block.times))
                alone = block.filter(matched if self._how == "semi" else ~matched)
                self._emit(self._alone(LEFT, alone), windows, alone.times, emit)
        if self._how in ("right", "full"):
            for block in right:
                alone = block.filter(~self._to_left.matched(block, lefts, (block.times, block.times)))
                self._emit(self._alone(RIGHT, alone), windows, alone.times, emit)

    def _alone(self, side: Side, block: Block) -> Batch:
        if self._how in ("semi", "anti"):
            return Batch(block.rows)
        if side is LEFT:
            return self._columns.left_only(block.rows, self.state.columns.get(RIGHT), None)
        return self._columns.right_only(self.state.columns.get(LEFT), block.rows, None)

    def _emit(self, batch: Batch, windows: Complete, numbers: Groups, emit: Emit) -> None:
        """Emit result rows of the windows with these numbers, with the bounds as the last columns."""
        if not batch.num_rows:
            return
        names = batch.rows.schema.names
        problem = bounds_problem(names)
        if problem is not None:
            raise RecordError(self.context.name, problem)
        columns = [*batch.rows.columns, timestamps(windows.starts[numbers]), timestamps(windows.ends[numbers])]
        emit(Batch(pa.RecordBatch.from_arrays(columns, names=[*names, START, END]), windows.times[numbers]))


def bounds_problem(names: Container[str]) -> str | None:
    """Describe the problem of results with a column named like one of a window's bounds; None without one."""
    taken = next((name for name in (START, END) if name in names), None)
    return taken and f"its results would have two columns `{taken}`: rename or drop that of the input"


def _numbered(block: Block, numbers: Groups) -> Block:
    """Return the block with the windows' numbers in place of event times: rows of one window have equal ones."""
    return Block(block.held, block.hashes, numbers, block.due)
