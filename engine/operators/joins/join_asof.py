"""The as-of join: each row of left with the newest row of right of its key that is not later.

A row of left waits until the watermark has passed it. Among rows of right with equal times the greatest one counts, compared
column by column, so that the result doesn't depend on their arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from ...batch import Batch, Times
from ...context import Context, Emit
from ...errors import RecordError
from ...joins.join_columns import JoinColumns
from ...joins.newest import newest, superseded
from ...joins.sides import LEFT, RIGHT, Side
from ...protocol.elements import MAX_TIME
from ...protocol.split_route import Dealt
from ...state_description import StateDescription, seconds_text
from ..two_inputs import TwoInputsInstance
from .pairing import NULLS_OF, Pairing


@dataclass(frozen=True, eq=False)
class JoinAsof(Pairing):
    """An as-of join. `max_age`: how much earlier right's row may be, in microseconds, None for any."""

    how: Literal["left", "inner"]
    max_age: int | None
    suffix: str

    @property
    def dealable(self) -> tuple[Dealt, ...]:
        return ("left",)

    def state_description(self) -> StateDescription:
        age = "none" if self.max_age is None else seconds_text(self.max_age)
        return StateDescription("a join_asof", {**self.key_traits(), "join": self.how, "max_age": age})

    def open(self, context: Context) -> JoinAsofInstance:
        return JoinAsofInstance(self, context)

    def describe(self) -> str:
        age = "" if self.max_age is None else f", at most {self.max_age / 1e6:g} s older"
        return f"{self.how}, the newest row of right that is not later{age}"


class JoinAsofInstance(TwoInputsInstance):
    """An instance whose state is the rows of left that wait, and the rows of right that a later row of left may join."""

    def __init__(self, operator: JoinAsof, context: Context) -> None:
        super().__init__(operator, context)
        self._operator = operator
        self._columns = JoinColumns(context.name, operator.left_keys, operator.right_keys, operator.suffix, operator.how)
        self.state.logs[RIGHT].drops = lambda block: superseded(block, operator.right_keys, self.watermark)

    @property
    def awaits(self) -> tuple[Side, ...]:
        return self.awaited(*NULLS_OF.get(self._operator.how, ()))

    def times_of(self, side: Side, batch: Batch) -> Times:
        if batch.times is None:
            which = "left" if side is LEFT else "right"
            problem = f"it joins by event time, and its {which} stream has none: give the source event_time="
            raise RecordError(self.context.name, problem)
        return batch.times

    def due(self, side: Side, times: Times, rows: pa.RecordBatch) -> Times:
        """Return the time until which a row of right can be joined; a newer row may supersede it before."""
        if side is LEFT:
            return times
        return np.full(len(times), MAX_TIME - 1) if self._operator.max_age is None else times + self._operator.max_age

    def advance(self, watermark: int, emit: Emit) -> None:
        left, right = self.state.logs[LEFT], self.state.logs[RIGHT]
        for block in self.state.due_in(LEFT, self.watermark, watermark):
            earliest = None if self._operator.max_age is None else block.times - self._operator.max_age
            found, rows = newest(block, right, earliest, self._operator.left_keys, self._operator.right_keys)
            if rows is not None:
                emit(self._columns.pairs(block.rows.filter(pa.array(found)), rows, block.times[found]))
            if self._operator.how == "left" and not found.all():
                alone = block.filter(~found)
                emit(self._columns.left_only(alone.rows, self.state.columns.get(RIGHT), alone.times))
        self.watermark = watermark
        left.forget(watermark)
        right.forget(watermark)
