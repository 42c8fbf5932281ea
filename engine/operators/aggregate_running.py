"""Running aggregates per key, over everything seen so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates.base import AggregateFunction
from ..batch import Batch
from ..keys import encode_keys
from ..state_places import open_table
from ..summary import Summary
from ..table import Table
from .base import Context, Emit, Operator
from .combine import Combine, Summarise, latest
from .keyed import KeyedInstance, KeyedOperator


@dataclass(frozen=True, eq=False)
class AggregateRunning(KeyedOperator):
    """Emits key columns and aggregates: with `updates`, a row per changed key and batch; without, a row per key at the end."""

    keys: tuple[str, ...]
    functions: Mapping[str, AggregateFunction]
    updates: bool = field(kw_only=True)
    behind_combiner: bool = field(default=False, kw_only=True)

    def open(self, context: Context) -> AggregateRunningInstance:
        summarise = Summarise(context.name, self.keys, self.functions, None)
        return AggregateRunningInstance(self, context, summarise, open_table(summarise.summariser, context))

    def combined(self) -> tuple[Operator, Operator]:
        return Combine(self.keys, self.functions, None), replace(self, behind_combiner=True)

    def describe(self) -> str:
        return f"{', '.join(self.functions)} by {', '.join(self.keys)}, emitting {'updates' if self.updates else 'at the end'}"


class AggregateRunningInstance(KeyedInstance):
    """Its state is a row per key."""

    state: Table

    def __init__(self, operator: AggregateRunning, context: Context, summarise: Summarise, table: Table) -> None:
        super().__init__(context, operator.keys, table)
        self.updates, self.behind_combiner = operator.updates, operator.behind_combiner
        self.merges_state = not operator.updates
        self.summarise, self.summariser = summarise, summarise.summariser
        self._names = [*operator.keys, *operator.functions]

    def process(self, batch: Batch, emit: Emit) -> None:
        summary, times = self._summary(batch)
        self.note_load(summary.keys, summary.rows)
        changed = self.state.merge(summary)
        if self.updates:
            self._emit(changed, times, emit)

    def finish(self, emit: Emit) -> None:
        if not self.updates:
            for summary in self.state.everything():
                self._emit(summary, None, emit)

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
        emit(Batch(pa.RecordBatch.from_arrays(columns, names=self._names), times))
