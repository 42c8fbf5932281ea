"""Aggregates per key and event-time window.

A window's result is emitted once, when the watermark has passed its end. A record that comes after all of its windows were emitted is late:
it is counted, and leaves by the port `late`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates.base import AggregateFunction
from ..aggregates.partial_aggregates import PartialAggregates
from ..batch import Batch
from ..keyed_state.opening import open_panes
from ..keyed_state.panes import Panes, distinct
from ..keys.encoding import encode_keys
from ..protocol.elements import MIN_TIME
from ..time.windows import Windows
from .base import Context, Emit, Operator
from .combine import BatchAggregator, Combine
from .keyed import KeyedInstance, KeyedOperator
from .window_bounds import END, START, bounds_of


@dataclass(frozen=True, eq=False)
class AggregateWindows(KeyedOperator):
    """Emits key columns, `window_start`, `window_end` (timestamps, UTC) and the aggregates."""

    keys: tuple[str, ...]
    functions: Mapping[str, AggregateFunction]
    windows: Windows
    behind_combiner: bool = field(default=False, kw_only=True)

    def open(self, context: Context) -> AggregateWindowsInstance:
        batch_aggregator = BatchAggregator(context.name, self.keys, self.functions, self.windows)
        return AggregateWindowsInstance(self, context, batch_aggregator, open_panes(batch_aggregator.aggregator, context))

    def combined(self) -> tuple[Operator, Operator]:
        return Combine(self.keys, self.functions, self.windows), replace(self, behind_combiner=True)

    def describe(self) -> str:
        return f"{', '.join(self.functions)} by {', '.join(self.keys)} in {self.windows.describe()} windows"


class AggregateWindowsInstance(KeyedInstance):
    """Its state is the panes that some window still needs."""

    state: Panes
    merges_state = True

    def __init__(self, operator: AggregateWindows, context: Context, batch_aggregator: BatchAggregator, panes: Panes) -> None:
        super().__init__(context, operator.keys, panes)
        self.windows, self.behind_combiner = operator.windows, operator.behind_combiner
        self.batch_aggregator, self.aggregator = batch_aggregator, batch_aggregator.aggregator
        self.watermark = MIN_TIME
        self._names = [*operator.keys, START, END, *operator.functions]

    def process(self, batch: Batch, emit: Emit) -> None:
        if self.behind_combiner:
            partial, panes = self.aggregator.from_batch(batch)
            codes = None
        else:
            partial, codes, panes = self.batch_aggregator(batch)
        if panes is None:
            raise ValueError("partial aggregates for windows came without panes")
        self._note_panes(partial, panes)
        late = np.array([pane for pane in distinct(panes) if self.windows.last_end(pane) <= self.watermark], np.int64)
        if len(late):
            rows = np.isin(panes, late)
            self._late(batch, partial, codes, rows, emit)
            kept = np.flatnonzero(~rows)
            partial, panes = partial.take(kept), panes[kept]
        self.state.append(partial, panes)

    def advance(self, watermark: int, emit: Emit) -> None:
        for end in self._ends(self.watermark, watermark):
            self._emit_window(end, emit)
        self.watermark = watermark
        self.state.drop([pane for pane in self.state.starts() if self.windows.last_end(pane) <= watermark])

    def _note_panes(self, partial: PartialAggregates, panes: npt.NDArray[np.int64]) -> None:
        """Note the load, if it is due. A key in several panes counts once, with all its records."""
        if not self.context.load.due():
            return
        if (panes == panes[0]).all():
            self._note(partial.keys, partial.rows)
            return
        keys = encode_keys(pa.record_batch(list(partial.keys), names=list(self.keys)), self.keys, self.context.name)
        counts = np.zeros(keys.count, np.int64)
        np.add.at(counts, keys.codes, partial.rows)
        self._note(keys.columns, counts)

    def _late(
        self, batch: Batch, partial: PartialAggregates, codes: npt.NDArray[Any] | None, rows: npt.NDArray[np.bool_], emit: Emit
    ) -> None:
        self.late_records += int(partial.rows[rows].sum())
        if codes is not None:
            emit(batch.filter(rows[codes]), "late")

    def _ends(self, after: int, until: int) -> list[int]:
        """The ends in (after, until] of windows that have panes, rising."""
        slide = self.windows.slide
        ends: set[int] = set()
        for pane in self.state.starts():
            first = self.windows.first_end(pane)
            if first <= after:
                first += ((after - first) // slide + 1) * slide
            ends.update(range(first, min(self.windows.last_end(pane), until) + 1, slide))
        return sorted(ends)

    def _emit_window(self, end: int, emit: Emit) -> None:
        start = end - self.windows.size
        for partial in self.state.window(self._panes_between(start, end)):
            n = len(partial)
            columns = [*partial.keys, *bounds_of(start, end, n), *self.aggregator.results(partial)]
            rows = pa.RecordBatch.from_arrays(columns, names=self._names)
            emit(Batch(rows, np.full(n, end - 1, np.int64)))

    def _panes_between(self, start: int, end: int) -> list[int]:
        """The panes with keys in [start, end), rising. It scans the window's panes or those with keys, whichever are fewer."""
        there, width = self.state.starts(), self.windows.pane
        if len(there) < (end - start) // width:
            return sorted(pane for pane in there if start <= pane < end)
        return [pane for pane in range(start, end, width) if pane in there]
