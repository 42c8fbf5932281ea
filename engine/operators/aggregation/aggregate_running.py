"""Aggregates without windows: running results per key over all records so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...aggregates.base import AggregateFunction, described_parts, read_by
from ...aggregates.partial_aggregates import PartialAggregates
from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...keyed_state.kinds.opening import open_table
from ...keyed_state.table import AggregateTable
from ...keys.encoding import encode_keys
from ...needed import Needed
from ...protocol.read_value import ReadValue
from ...state_description import PartsChange, StateDescription, columns_text
from ...updates import Updates
from ..base import Operator
from ..keyed import KeyedInstance
from ..result_columns import result_columns
from ..state_reader import SavedPart, StateReader, empty, install, reading_context
from .aggregating import AggregatingOperator
from .combine import BatchAggregator, Combine, latest


@dataclass(frozen=True, eq=False)
class AggregateRunning(AggregatingOperator):
    """An aggregation without windows, with key columns and aggregates as results.

    With `updates` it emits a row per changed key and batch; without, a row per key at the end.
    """

    keys: tuple[str, ...]
    functions: Mapping[str, AggregateFunction]
    updates: bool = field(kw_only=True)

    readable: ClassVar[bool] = True

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return result_columns(inputs[0], self.keys, self.functions, "aggregate")

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return Updates(self.keys, weighed=True) if self.updates else None

    @property
    def reads_weights(self) -> bool:
        return not self.unweighed

    @property
    def unweighed(self) -> list[str]:
        """Return the names of the aggregates that can't take rows back."""
        return [name for name, function in self.functions.items() if function.weighed() is None]

    def state_description(self) -> StateDescription:
        return StateDescription("running aggregates", {"keys": columns_text(self.keys)}, *described_parts(self.functions))

    def open(self, context: Context) -> AggregateRunningInstance:
        batch_aggregator = BatchAggregator(context.name, self.keys, self.functions, None)
        return AggregateRunningInstance(self, context, batch_aggregator, open_table(batch_aggregator.aggregator, context))

    def reader(self) -> StateReader:
        return AggregateReader(self)

    def combined(self) -> tuple[Operator, Operator]:
        return Combine(self.keys, self.functions, None), self

    def needs(self, wanted: Needed | None) -> Needed | None:
        return read_by(self.functions.values())

    def describe(self) -> str:
        return f"{', '.join(self.functions)} by {', '.join(self.keys)}, emitting {'updates' if self.updates else 'at the end'}"


class AggregateRunningInstance(KeyedInstance):
    """An instance whose state is a row per key."""

    state: AggregateTable

    def __init__(self, operator: AggregateRunning, context: Context, batch_aggregator: BatchAggregator, table: AggregateTable) -> None:
        super().__init__(context, operator.keys, table)
        self.updates = operator.updates
        self.merges_state = not operator.updates
        self.batch_aggregator, self.aggregator = batch_aggregator, batch_aggregator.aggregator
        self._names = [*operator.keys, *operator.functions]

    def process(self, batch: Batch, emit: Emit) -> None:
        partial, times = self._partial(batch)
        self.note_load(partial.keys, partial.rows)
        changed = self.state.merge(partial)
        if self.updates:
            self._emit(changed, times, emit)

    def key_types(self) -> Sequence[pa.DataType]:
        return self.state.key_types

    def read(self, key: Sequence[pa.Array]) -> ReadValue | None:
        places, found = self.state.known(key)
        row = self._row(replace(found, keys=tuple(key))) if len(places) else None
        return None if row is None else ReadValue.of_row(row)

    def _row(self, found: PartialAggregates) -> pa.RecordBatch | None:
        """Return the row of the only group in `found`, None if it has no rows left."""
        return pa.RecordBatch.from_arrays([*found.keys, *self.aggregator.results(found)], names=self._names)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the row of every key that has rows, in pieces."""
        for partial in self.state.everything():
            yield pa.RecordBatch.from_arrays([*partial.keys, *self.aggregator.results(partial)], names=self._names)

    def finish(self, emit: Emit) -> None:
        if not self.updates:
            for rows in self.rows():
                emit(Batch(rows))

    def _partial(self, batch: Batch) -> tuple[PartialAggregates, npt.NDArray[np.int64] | None]:
        received, codes, _ = self.batch_aggregator.received(batch)
        if codes is not None:
            return received, latest(batch, codes, len(received))
        partial = self.aggregator.combine([received])
        if partial is received:
            return partial, batch.times
        return partial, None if batch.times is None else self._latest_times(received, batch.times, len(partial))

    def _latest_times(self, received: PartialAggregates, times: npt.NDArray[np.int64], groups: int) -> npt.NDArray[np.int64]:
        keys = encode_keys(pa.record_batch(list(received.keys), names=list(self.keys)), self.keys, self.context.name)
        newest = np.full(groups, np.iinfo(np.int64).min)
        np.maximum.at(newest, keys.codes, times)
        return newest

    def _emit(self, partial: PartialAggregates, times: Any, emit: Emit) -> None:
        columns = [*partial.keys, *self.aggregator.results(partial)]
        emit(Batch(pa.RecordBatch.from_arrays(columns, names=self._names), times))


@dataclass(frozen=True, eq=False)
class AggregateReader(StateReader):
    """Makes a table of the rows of a running aggregation."""

    operator: AggregateRunning

    def table(self, operator: str, parts: Iterable[SavedPart], change: PartsChange | None) -> pa.Table:
        instance = self.operator.open(reading_context(operator))
        for part in parts:
            install(instance.state, operator, part, change)
        rows = list(instance.rows())
        return pa.Table.from_batches(rows) if rows else empty([*self.operator.keys, *self.operator.functions])
