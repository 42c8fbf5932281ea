"""Joins each row of left with the newest row of right of its key that is not later: a row of left waits until the watermark has passed it.

Of rows of right with equal times the greatest one counts, compared column by column, so that the result doesn't depend on their arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch, Times
from ..errors import RecordError
from ..joins.block import Block
from ..joins.join_columns import JoinColumns
from ..joins.newest import newest, superseded
from ..joins.segment import sorted_rows
from ..joins.sides import LEFT, RIGHT, key_names, side_of
from ..keyed_state.join_rows import JoinRows
from ..keys.encoding import key_hashes
from ..protocol.elements import MAX_TIME, MIN_TIME
from .base import Context, Emit
from .join import LATE
from .keyed import KeyedInstance, KeyedOperator


@dataclass(frozen=True, eq=False)
class JoinAsof(KeyedOperator):
    """`max_age`: how much earlier right's row may be, in microseconds, None for any."""

    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    how: Literal["left", "inner"]
    max_age: int | None
    suffix: str

    needs_columns = True

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        return key_names(len(self.left_keys))

    def open(self, context: Context) -> JoinAsofInstance:
        return JoinAsofInstance(self, context)

    def describe(self) -> str:
        age = "" if self.max_age is None else f", at most {self.max_age / 1e6:g} s older"
        return f"{self.how}, the newest row of right that is not later{age}"


class JoinAsofInstance(KeyedInstance):
    """Its state is the rows of left that wait, and the rows of right that a later row of left may join."""

    state: JoinRows

    def __init__(self, operator: JoinAsof, context: Context) -> None:
        super().__init__(context, operator.keys, JoinRows(context, operator.left_keys, operator.right_keys))
        self._operator = operator
        self._columns = JoinColumns(context.name, operator.left_keys, operator.right_keys, operator.suffix)
        self.watermark = MIN_TIME
        self.state.logs[RIGHT].drops = lambda block: superseded(block, operator.right_keys, self.watermark)

    def process(self, batch: Batch, emit: Emit) -> None:
        side = side_of(batch.rows.schema)
        rows = side.rows(batch.rows)
        self.state.learn(side, rows.schema)
        if not batch.num_rows:
            return
        self.note_rows(batch.rows)
        if batch.times is None:
            which = "left" if side is LEFT else "right"
            problem = f"it joins by event time, and its {which} stream has none: give the source event_time="
            raise RecordError(self.context.name, problem)
        hashes = key_hashes(self.key_columns(batch.rows), self.context.name)
        block = sorted_rows(Block.of(rows, hashes, batch.times, batch.times if side is LEFT else self._due(batch.times)))
        late = block.times < self.watermark
        if late.any():
            gone = block.filter(late)
            self.late_records += len(gone)
            emit(Batch(gone.rows, gone.times), LATE[side])
            block = block.filter(~late)
        self.state.append(side, block)

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

    def _due(self, times: Times) -> npt.NDArray[np.int64]:
        """Until when a row of right can be joined for sure; a newer row may supersede it before."""
        return np.full(len(times), MAX_TIME - 1) if self._operator.max_age is None else times + self._operator.max_age
