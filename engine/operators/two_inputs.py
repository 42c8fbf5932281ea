"""The base of operators with two keyed inputs whose rows they keep: batches are split by side, and late rows go to side outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch, Times
from ..columns import Columns
from ..context import Context, Emit
from ..joins.block import Block
from ..joins.key_types import never_equal
from ..joins.segment import sorted_rows
from ..joins.sides import LEFT, RIGHT, Side, key_names, side_of
from ..keyed_state.kinds.join_rows import JoinRows
from ..keys.encoding import key_hashes
from ..protocol.elements import MIN_TIME
from ..state_description import columns_text
from .keyed import KeyedInstance, KeyedOperator

LATE = {LEFT: "late_left", RIGHT: "late_right"}
"""The ports of late rows, by their side."""


@dataclass(frozen=True, eq=False)
class TwoInputs(KeyedOperator):
    """An operator with two inputs. `left_keys`, `right_keys`: their key columns, in pairs; `keys`: the names in the common form.

    `schemas`: the columns of each side, if the plan knows them.
    """

    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    schemas: Mapping[Side, pa.Schema] = field(default_factory=dict, kw_only=True)

    needs_columns = True

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        return key_names(len(self.left_keys))

    def given_settings(self) -> dict[str, Any]:
        return self.settings_without("schemas")

    def knowing(self, inputs: Sequence[Columns]) -> TwoInputs:
        found = zip((LEFT, RIGHT), (known.schema() for known in inputs), strict=True)
        return replace(self, schemas={side: schema for side, schema in found if schema is not None})

    def key_traits(self) -> dict[str, str]:
        """Return the keys of both inputs, for `state_description`."""
        return {"keys of left": columns_text(self.left_keys), "keys of right": columns_text(self.right_keys)}

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        return keys_problem(self.left_keys, self.right_keys, inputs)


def keys_problem(left_keys: Sequence[str], right_keys: Sequence[str], inputs: Sequence[Columns]) -> str | None:
    """Describe why these keys of two inputs can't be equal, by the known types; None if they can."""
    (left, right), names = inputs, zip(left_keys, right_keys, strict=True)
    return never_equal(names, map(left.type_of, left_keys), map(right.type_of, right_keys))


class TwoInputsInstance(KeyedInstance):
    """An instance that keeps rows of both sides; `watermark` is its event time."""

    state: JoinRows

    def __init__(self, operator: TwoInputs, context: Context) -> None:
        KeyedInstance.__init__(self, context, operator.keys, JoinRows(context, operator.left_keys, operator.right_keys, operator.schemas))
        self.watermark = MIN_TIME

    def awaited(self, *sides: Side) -> tuple[Side, ...]:
        """Return the sides among these whose columns are not known yet."""
        return tuple(side for side in sides if side not in self.state.columns)

    @abstractmethod
    def times_of(self, side: Side, batch: Batch) -> Times:
        """Return the event times of a batch's rows. Raises RecordError if it has none and they are needed."""

    @abstractmethod
    def due(self, side: Side, times: Times, rows: pa.RecordBatch) -> Times:
        """Return the time at which each row is decided."""

    def late(self, times: Times) -> npt.NDArray[np.bool_]:
        """Return a mask of the late rows, shape (rows,)."""
        return times < self.watermark

    def take(self, side: Side, block: Block, emit: Emit) -> None:
        """Keep rows that are not late, at least one."""
        self.state.append(side, block)

    def process(self, batch: Batch, emit: Emit) -> None:
        side = side_of(batch.rows.schema)
        rows = self.state.learn(side, side.rows(batch.rows))
        if not batch.num_rows:
            return
        self.note_rows(batch.rows, side.dealt)
        times = self.times_of(side, batch)
        hashes = key_hashes(self.key_columns(batch.rows), self.context.name)
        block = sorted_rows(Block.of(rows, hashes, times, self.due(side, times, rows)))
        late = self.late(block.times)
        if late.any():
            gone = self.state.reported(side, block.filter(late))
            if len(gone):
                self.late_records += len(gone)
                emit(Batch(gone.rows, gone.times), LATE[side])
            block = block.filter(~late)
        if len(block):
            self.take(side, block, emit)
