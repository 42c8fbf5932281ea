"""The join of two streams by key, and by time: pairs are emitted at once, rows without a partner when no partner can arrive any
more.

A pair is emitted when its second row arrives, and has the later of both times. The partner of a row is looked up when the row is
due; so a row carries no mark that would have to move with it. A late row (its time is before the watermark) goes to `late_left`
or `late_right`, so that no decision is contradicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch, Times
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...joins.block import Block
from ...joins.join_columns import DEALABLE, How, JoinColumns, later_times
from ...joins.matching import ANY_TIME, Matcher
from ...joins.row_log import TimeBounds
from ...joins.rows import Reached
from ...joins.segment import Candidates
from ...joins.sides import LEFT, RIGHT, Side
from ...joins.within import Always, Between, described_within
from ...keys.encoding import encode_keys
from ...protocol.elements import MAX_TIME, MIN_TIME
from ...protocol.split_route import Dealt
from ...state_description import StateDescription
from ...time.event_time import EventTime
from ..two_inputs import TwoInputsInstance
from .pairing import NULLS_OF, Pairing

NEVER = MAX_TIME - 1
"""The due time of rows that are decided at the end of the stream."""


@dataclass(frozen=True, eq=False)
class Join(Pairing):
    """A join. `within`: the condition on times; `how`: the rows that are emitted."""

    within: Between | Always
    how: How
    suffix: str

    @property
    def dealable(self) -> tuple[Dealt, ...]:
        return DEALABLE[self.how]

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        upper = self.within.upper if isinstance(self.within, Between) else None
        return super().problem(inputs) or (bound_problem(upper, inputs[0]) if isinstance(upper, str) else None)

    def state_description(self) -> StateDescription:
        return StateDescription("a join", {**self.key_traits(), "join": self.how, "times": described_within(self.within)})

    def open(self, context: Context) -> JoinInstance:
        return JoinInstance(self, context)

    def describe(self) -> str:
        return f"{self.how}, {self.within.describe()}"


class JoinInstance(TwoInputsInstance):
    """An instance whose state is the rows of both sides that may still have a partner, or are not decided."""

    def __init__(self, operator: Join, context: Context) -> None:
        super().__init__(operator, context)
        self._how, self._within = operator.how, operator.within
        self._columns = JoinColumns(context.name, operator.left_keys, operator.right_keys, operator.suffix, operator.how)
        self._to_right = Matcher(operator.left_keys, operator.right_keys)
        by_column = isinstance(operator.within, Between) and isinstance(operator.within.upper, str)
        self._to_left = Matcher(operator.right_keys, operator.left_keys, self._not_too_late if by_column else None)
        self._same_right = Matcher(operator.right_keys, operator.right_keys)
        self._right_keys = operator.right_keys
        self._decides_left = operator.how in ("left", "full", "anti") or (operator.how == "semi" and isinstance(operator.within, Between))
        self._decides_right = operator.how in ("right", "full")
        self._gives_pairs = operator.how not in ("semi", "anti")
        self._timed = True
        if isinstance(operator.within, Between) and not isinstance(operator.within.upper, str):
            for log in self.state.logs.values():
                log.widest = operator.within.upper - operator.within.lower

    @property
    def awaits(self) -> tuple[Side, ...]:
        """Return the sides whose columns it needs.

        Without bounds nothing is decided before the end, when all columns are known, so it needs none.
        """
        return () if isinstance(self._within, Always) else self.awaited(*NULLS_OF.get(self._how, ()))

    def take(self, side: Side, block: Block, emit: Emit) -> None:
        if self._gives_pairs:
            self._emit_pairs(side, block, emit)
        elif self._how == "semi" and isinstance(self._within, Always):
            block = self._met(side, block, emit)
        self.state.append(side, block)

    def advance(self, watermark: int, emit: Emit) -> None:
        if self._decides_left:
            for block in self.state.due_in(LEFT, self.watermark, watermark):
                matched = self._to_right.matched(block, self.state.logs[RIGHT], self._bounds_in_right(block))
                decided = block.filter(matched if self._how == "semi" else ~matched)
                if len(decided):
                    emit(self._alone(LEFT, decided))
        if self._decides_right:
            for block in self.state.due_in(RIGHT, self.watermark, watermark):
                matched = self._to_left.matched(block, self.state.logs[LEFT], self._bounds_in_left(block))
                if not matched.all():
                    emit(self._alone(RIGHT, block.filter(~matched)))
        self.watermark = watermark
        if isinstance(self._within, Between):
            self._forget(self._within, watermark)

    def times_of(self, side: Side, batch: Batch) -> Times:
        if batch.times is not None:
            return batch.times
        if isinstance(self._within, Between):
            which = "left" if side is LEFT else "right"
            problem = f"it joins by event time, and its {which} stream has none: give the source event_time=, or say ef.always()"
            raise RecordError(self.context.name, problem)
        self._timed = False
        return np.zeros(batch.num_rows, np.int64)

    def late(self, times: Times) -> npt.NDArray[np.bool_]:
        return np.zeros(len(times), np.bool_) if isinstance(self._within, Always) else super().late(times)

    def due(self, side: Side, times: Times, rows: pa.RecordBatch) -> Times:
        within = self._within
        if isinstance(within, Always):
            return np.full(len(times), NEVER)
        if side is RIGHT:
            return times + max(-within.lower, 0)
        return np.maximum(times, self._upper(within, times, rows))

    def _upper(self, within: Between, times: Times, rows: pa.RecordBatch) -> Times:
        """Return the latest time of right that each row of left matches."""
        if not isinstance(within.upper, str):
            return times + within.upper
        problem = bound_problem(within.upper, Columns.of(rows.schema))
        if problem is not None:
            raise RecordError(self.context.name, problem)
        column = rows.column(within.upper)
        if column.null_count:
            row = rows.slice(int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]), 1).to_pylist()[0]
            problem = f"left's column `{within.upper}`, the upper bound of between(), is null: filter such rows out before the join"
            raise RecordError(self.context.name, problem, record=row)
        return EventTime(within.upper).extract(rows, self.context.name)

    def _emit_pairs(self, side: Side, block: Block, emit: Emit) -> None:
        if side is LEFT:
            for left, right in self._to_right.pairs(block, self.state.logs[RIGHT], self._bounds_in_right(block)):
                emit(self._columns.pairs(left.rows, right.rows, self._times(later_times(left, right))))
        else:
            for right, left in self._to_left.pairs(block, self.state.logs[LEFT], self._bounds_in_left(block)):
                emit(self._columns.pairs(left.rows, right.rows, self._times(later_times(left, right))))

    def _met(self, side: Side, block: Block, emit: Emit) -> Block:
        """Process a semi join without bounds: emit rows of left when they meet the first row of right.

        Return the rows to keep.
        """
        if side is LEFT:
            matched = self._to_right.matched(block, self.state.logs[RIGHT], ANY_TIME)
            if matched.any():
                emit(self._alone(LEFT, block.filter(matched)))
            return block.filter(~matched)
        fresh = block.filter(~self._same_right.matched(block, self.state.logs[RIGHT], ANY_TIME))
        if not len(fresh):
            return fresh
        codes = encode_keys(fresh.rows, self._right_keys, self.context.name).codes
        first = fresh.take(np.sort(np.unique(codes, return_index=True)[1]))
        for _, left in self._to_left.pairs(first, self.state.logs[LEFT], ANY_TIME):
            emit(self._alone(LEFT, left))
        return first

    def _bounds_in_right(self, block: Block) -> TimeBounds:
        within = self._within
        if isinstance(within, Always):
            return ANY_TIME
        if not isinstance(within.upper, str):
            return block.times + within.lower, block.times + within.upper
        bounds = block.held.reached(np.arange(len(block))).rows(within.upper)
        return block.times + within.lower, self._upper(within, block.times, bounds)

    def _bounds_in_left(self, block: Block) -> TimeBounds:
        within = self._within
        if isinstance(within, Always):
            return ANY_TIME
        return None if isinstance(within.upper, str) else block.times - within.upper, block.times - within.lower

    def _not_too_late(self, right: Block, found: Candidates, times: Times, left: Reached) -> npt.NDArray[np.bool_]:
        """Return a mask of the pairs in which right's time is at most that in left's column."""
        assert isinstance(self._within, Between)
        assert isinstance(self._within.upper, str)
        upper = self._upper(self._within, times, left.rows(self._within.upper))
        mask: npt.NDArray[np.bool_] = right.times[found.probed] <= upper
        return mask

    def _alone(self, side: Side, block: Block) -> Batch:
        """Return rows of one side with nulls for the other's, or rows of left alone, with the time at which they were due."""
        times = self._times(block.times if isinstance(self._within, Always) else block.due)
        if not self._gives_pairs:
            return Batch(block.rows, times)
        if side is LEFT:
            return self._columns.left_only(block.rows, self.state.columns.get(RIGHT), times)
        return self._columns.right_only(self.state.columns.get(LEFT), block.rows, times)

    def _times(self, times: Times) -> Times | None:
        return times if self._timed else None

    def _forget(self, within: Between, watermark: int) -> None:
        """Forget rows that no row can match any more and no undecided row needs."""
        left, right = self.state.logs[LEFT], self.state.logs[RIGHT]
        left.forget(_less(watermark, max(-within.lower, 0) if self._decides_right else 0))
        if not self._decides_left:
            right.forget(watermark)
        elif isinstance(within.upper, str):
            right.forget(watermark if left.oldest is None else min(watermark, left.oldest))
        else:
            right.forget(_less(watermark, max(within.upper, 0)))


def _less(time: int, slack: int) -> int:
    return time if time == MAX_TIME else max(time - slack, MIN_TIME)


def bound_problem(name: str, left: Columns) -> str | None:
    """Describe why left's column can't be the upper bound of between(), by its known type; None if it can."""
    if left.lacks(name):
        return f"left has no column `{name}`, the upper bound of between(); there are: {left.listed()}"
    kind = left.type_of(name)
    if kind is not None and not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return f"left's column `{name}`, the upper bound of between(), is {kind}: it must be a timestamp or a date"
    return None
