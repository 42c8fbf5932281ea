"""Running aggregates over aggregates: they emit rows with weights for a reader that adds them up, or read such rows, or both.

A key's old row is computed from the operator's own state, before the batch changes it. So it is the row that was emitted, whatever
has moved, was restored or replayed in between, and no order of messages can mislead a reader. Invariant: the rows with weights
emitted for a key so far add up to its present row.

A group is there while more rows were added to it than taken back. A group without rows is removed from the state; readers of plain
updates get a last row of it, with counts of 0 and nulls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...aggregates.base import AggregateFunction
from ...aggregates.numbers.count import Count
from ...aggregates.partial_aggregates import PartialAggregates
from ...aggregates.weighed import WeighedAggregator
from ...batch import Batch, Times
from ...columns import Columns
from ...context import Context, Emit
from ...keyed_state.kinds.opening import open_table
from ...keyed_state.table import AggregateTable
from ...needed import Needed
from ...state_description import StateDescription
from ...weights import WEIGHT, WEIGHTS, with_weight
from ..base import Operator
from .aggregate_running import AggregateRunning, AggregateRunningInstance
from .combine import BatchAggregator, Combine

Mask = npt.NDArray[np.bool_]

LEFT: Mapping[str, AggregateFunction] = {WEIGHT: Count()}
"""The number of rows that are left in a group, the first aggregate. It may be negative until an earlier row arrives."""


@dataclass(frozen=True, eq=False)
class AggregateWeights(AggregateRunning):
    """A running aggregation whose input or output has weights.

    `rows`: describes its input with weights, None if that is append-only. `plain`, `weights`: it emits updates, and rows with
    weights. `origins`: the operators whose rows it reads with weights.
    """

    rows: str | None = field(kw_only=True)
    origins: tuple[str, ...] = field(default=(), kw_only=True)
    plain: bool = field(kw_only=True)
    weights: bool = field(kw_only=True)

    ports = ("out", WEIGHTS)

    @property
    def reads_weights(self) -> bool:
        return self.rows is not None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        types = {name: kind for name, kind in inputs[0].types.items() if name != WEIGHT}
        return super().known_columns([replace(inputs[0], types=types)])

    def state_description(self) -> StateDescription:
        plain = super().state_description()
        if self.rows is None:
            return plain
        because = "would take back rows that it never added"
        return replace(plain, traits={**plain.traits, "rows": self.rows}, closed=frozenset(self.functions), because=because)

    def needs(self, wanted: Needed | None) -> Needed | None:
        needed = super().needs(wanted)
        return needed if needed is None or self.rows is None else needed.with_names([WEIGHT])

    def open(self, context: Context) -> AggregateWeightsInstance:
        batch_aggregator = BatchAggregator(context.name, self.keys, self._kept(), None, weighed=self.reads_weights)
        return AggregateWeightsInstance(self, context, batch_aggregator, open_table(batch_aggregator.aggregator, context))

    def combined(self) -> tuple[Operator, Operator]:
        return Combine(self.keys, self._kept(), None, weights=self.reads_weights), self

    def _kept(self) -> Mapping[str, AggregateFunction]:
        """Return the aggregates that the state holds."""
        if self.rows is None:
            return self.functions
        taking_back = {name: function.weighed() for name, function in self.functions.items()}
        return {**LEFT, **{name: function for name, function in taking_back.items() if function is not None}}


class AggregateWeightsInstance(AggregateRunningInstance):
    """An instance that compares a key's row before and after each batch."""

    def __init__(self, operator: AggregateWeights, context: Context, batch_aggregator: BatchAggregator, table: AggregateTable) -> None:
        super().__init__(operator, context, batch_aggregator, table)
        self.merges_state = False
        self.plain, self.weights = operator.plain, operator.weights
        self._own = len(LEFT) if operator.reads_weights else 0
        """The number of aggregates that are not the user's."""

    def process(self, batch: Batch, emit: Emit) -> None:
        partial, times = self._partial(batch)
        self.note_load(partial.keys, partial.rows)
        keys, n = partial.keys, len(partial)
        places, before = self.state.known(keys)
        was, old = np.zeros(n, np.bool_), None
        if len(places):
            was[places] = self._there(before)
            if self.updates:  # before the merge: a user's aggregate may change its accumulator
                old = self._results(replace(before, keys=tuple(key.take(pa.array(places)) for key in keys)))
        after = self.state.merge(partial)
        there = self._there(after)
        self._remove_gone(after)
        if self.updates:
            new = self._results(after)
            if self.plain:
                self._emit_updates(new, was, there, times, emit)
            if self.weights:
                self._emit_weights(old, places, new, was, there, times, emit)

    def rows(self) -> Iterator[pa.RecordBatch]:
        for partial in self.state.everything():
            there = self._there(partial)
            if there.any():
                yield self._results(partial if there.all() else partial.take(np.flatnonzero(there)))

    def _row(self, found: PartialAggregates) -> pa.RecordBatch | None:
        return self._results(found) if self._there(found).all() else None

    def _there(self, partial: PartialAggregates) -> Mask:
        """Return a mask of the groups that have rows."""
        if not self._own:
            return np.ones(len(partial), np.bool_)
        there: Mask = partial.parts[0][0] > 0
        return there

    def _remove_gone(self, after: PartialAggregates) -> None:
        if isinstance(self.aggregator, WeighedAggregator):
            gone = self.aggregator.are_gone(after)
            if gone.any():
                where = pa.array(gone)
                self.state.remove([key.filter(where) for key in after.keys])

    def _results(self, partial: PartialAggregates) -> pa.RecordBatch:
        """Return the rows of groups. Sums of rows that overtook each other may have no variance: that is no fault."""
        with np.errstate(invalid="ignore"):
            results = self.aggregator.results(partial)
        return pa.RecordBatch.from_arrays([*partial.keys, *results[self._own :]], names=self._names)

    def _emit_updates(self, new: pa.RecordBatch, was: Mask, there: Mask, times: Times | None, emit: Emit) -> None:
        """Emit the row of each changed group, and a row of nothing for those whose last row has gone."""
        if there.all():
            emit(Batch(new, times))
            return
        changed = [Batch(new, times).filter(there)]
        gone = was & ~there
        if gone.any() and isinstance(self.aggregator, WeighedAggregator):
            where = pa.array(gone)
            keys = [new.column(place).filter(where) for place in range(len(self.keys))]
            nothing = self._results(self.aggregator.of_nothing(keys))
            changed.append(Batch(nothing, None if times is None else times[gone]))
        changed = [batch for batch in changed if batch.num_rows]
        if changed:
            emit(Batch.concat(changed))

    def _emit_weights(
        self,
        old: pa.RecordBatch | None,
        places: npt.NDArray[np.intp],
        new: pa.RecordBatch,
        was: Mask,
        there: Mask,
        times: Times | None,
        emit: Emit,
    ) -> None:
        """Emit the old row of each changed group with weight -1, and the new one with weight 1, in one batch."""
        changed = np.ones(len(was), np.bool_)
        if old is not None:
            changed[places] = ~_same(old, new if len(places) == new.num_rows else new.take(pa.array(places)))
            changed |= was != there
        pieces = []
        if old is not None:
            minus = (was & changed)[places]
            pieces.append(Batch(with_weight(old, -1), None if times is None else times[places]).filter(minus))
        pieces.append(Batch(with_weight(new, 1), times).filter(there & changed))
        pieces = [piece for piece in pieces if piece.num_rows]
        if pieces:
            emit(Batch.concat(pieces), WEIGHTS)


def _same(old: pa.RecordBatch, new: pa.RecordBatch) -> Mask:
    """Return a mask of the rows that are certainly equal, shape (rows,)."""
    same = np.ones(old.num_rows, np.bool_)
    for before, after in zip(old.columns, new.columns, strict=True):
        same &= _equal(before, after)
    return same


def _equal(before: pa.Array, after: pa.Array) -> Mask:
    if before.type != after.type or pa.types.is_nested(before.type) or pa.types.is_dictionary(before.type):
        return np.zeros(len(before), np.bool_)
    if pa.types.is_null(before.type):
        return np.ones(len(before), np.bool_)
    equal: Mask = pc.fill_null(pc.equal(before, after), False).to_numpy(zero_copy_only=False)
    if before.null_count and after.null_count:
        equal = equal | pc.and_(before.is_null(), after.is_null()).to_numpy(zero_copy_only=False)
    return equal
