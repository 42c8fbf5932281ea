"""Running aggregates per key, over everything seen so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates.base import AggregateFunction
from ..batch import Batch
from ..changes import Changes
from ..keys import encode_keys
from ..routing import Move
from ..state_places import open_table
from ..summary import PANE, Carry, Summariser, Summary
from ..table import Table
from .base import Context, Emit, Operator
from .combine import Combine, Summarise, latest
from .keyed import Departing, KeyedOperator

CHUNK = 16_384
"""Keys of a chunk of a snapshot."""


class AggregateRunning(KeyedOperator):
    """Emits key columns and aggregates: with `updates`, a row per changed key and batch; without, a row per key at the end."""

    def __init__(
        self, keys: tuple[str, ...], functions: dict[str, AggregateFunction], *, updates: bool, behind_combiner: bool = False
    ) -> None:
        self.keys, self.functions, self.updates, self.behind_combiner = keys, functions, updates, behind_combiner
        self.needs_state = updates

    def combined(self) -> tuple[Operator, Operator]:
        behind = AggregateRunning(self.keys, self.functions, updates=self.updates, behind_combiner=True)
        return Combine(self.keys, self.functions, None), behind

    def open(self, context: Context) -> None:
        super().open(context)
        self.summarise = Summarise(context.name, self.keys, self.functions, None, self._rebound)
        self.table: Table = open_table(self.summariser, context)
        self.needs_state = self.updates or self.table.passes_on

    @property
    def summariser(self) -> Summariser:
        return self.summarise.summariser

    def process(self, batch: Batch, emit: Emit) -> None:
        summary, times = self._summary(batch)
        self.note_load(summary.keys, summary.rows)
        changed = self.table.merge(summary)
        if self.updates:
            self._emit(changed, times, emit)

    def depart(self, move: Move) -> Departing:
        return self.table.depart(move)

    def install(self, state: Batch) -> None:
        self.table.install(state)

    def check_restored(self, schema: pa.Schema) -> None:
        if PANE in schema.names:
            raise TypeError("it is of aggregates in windows")

    def snapshot(self) -> Iterator[Batch]:
        binding = self.summariser.binding
        return (self.summariser.to_batch(summary, None, None, binding) for summary in self.table.frozen(CHUNK))

    def changes(self) -> Changes | None:
        return self.table.changes()

    def delta(self, changes: Changes) -> Iterator[Batch]:
        return self.table.delta(changes, CHUNK)

    def finish(self, emit: Emit) -> None:
        if not self.updates:
            for summary in self.table.everything():
                self._emit(summary, None, emit)

    def state_bytes(self) -> int:
        return self.table.nbytes

    def close(self) -> None:
        if hasattr(self, "table"):
            self.table.close()

    def describe(self) -> str:
        return f"{', '.join(self.functions)} by {', '.join(self.keys)}, emitting {'updates' if self.updates else 'at the end'}"

    def _rebound(self, carry: Carry) -> None:
        self.table.carry(carry)

    def _summary(self, batch: Batch) -> tuple[Summary, npt.NDArray[np.int64] | None]:
        if not self.behind_combiner:
            summary, codes, _ = self.summarise(batch)
            return summary, latest(batch, codes, len(summary))
        received, _ = self.summariser.from_batch(batch)
        summary = self.summariser.combine([received])
        if summary is received:
            return summary, batch.times
        return summary, None if batch.times is None else self._latest_times(received, batch.times, len(summary))

    def _latest_times(self, received: Summary, times: npt.NDArray[np.int64], groups: int) -> npt.NDArray[np.int64]:
        keys = encode_keys(pa.record_batch(list(received.keys), names=list(self.keys)), self.keys, self.context.name)
        newest = np.full(groups, np.iinfo(np.int64).min)
        np.maximum.at(newest, keys.codes, times)
        return newest

    def _emit(self, summary: Summary, times: Any, emit: Emit) -> None:
        columns = [*summary.keys, *self.summariser.results(summary)]
        emit(Batch(pa.RecordBatch.from_arrays(columns, names=[*self.keys, *self.functions]), times))
