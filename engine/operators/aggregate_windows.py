"""Aggregates per key and event-time window.

A window's result is emitted once, when the watermark has passed its end; a record that comes after all of its windows were
emitted is late: it is counted, and goes out on the port `late`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates.base import AggregateFunction
from ..batch import Batch
from ..changes import Changes
from ..elements import MIN_TIME
from ..keys import encode_keys
from ..panes import Panes, distinct
from ..routing import Move
from ..state_places import open_panes
from ..summary import PANE, Carry, Summariser, Summary
from ..windows import Windows
from .base import Context, Emit, Operator
from .combine import Combine, Summarise
from .keyed import Departing, KeyedOperator

_TIMESTAMP = pa.timestamp("us", tz="UTC")


class AggregateWindows(KeyedOperator):
    """Emits key columns, `window_start`, `window_end` (timestamps, UTC) and the aggregates."""

    ports = ("out", "late")
    needs_state = False

    def __init__(
        self, keys: tuple[str, ...], functions: dict[str, AggregateFunction], windows: Windows, *, behind_combiner: bool = False
    ) -> None:
        self.keys, self.functions, self.windows, self.behind_combiner = keys, functions, windows, behind_combiner

    def combined(self) -> tuple[Operator, Operator]:
        return (
            Combine(self.keys, self.functions, self.windows),
            AggregateWindows(self.keys, self.functions, self.windows, behind_combiner=True),
        )

    def open(self, context: Context) -> None:
        super().open(context)
        self.summarise = Summarise(context.name, self.keys, self.functions, self.windows, self._rebound)
        self.panes: Panes = open_panes(self.summariser, context)
        self.needs_state = self.panes.passes_on
        self.watermark = MIN_TIME
        self.late_records = 0

    @property
    def summariser(self) -> Summariser:
        return self.summarise.summariser

    def process(self, batch: Batch, emit: Emit) -> None:
        if self.behind_combiner:
            summary, panes = self.summariser.from_batch(batch)
            codes = None
        else:
            summary, codes, panes = self.summarise(batch)
        if panes is None:
            raise ValueError("a summary for windows came without panes")
        self._note_panes(summary, panes)
        late = np.array([pane for pane in distinct(panes) if self.windows.last_end(pane) <= self.watermark], np.int64)
        if len(late):
            rows = np.isin(panes, late)
            self._late(batch, summary, codes, rows, emit)
            kept = np.flatnonzero(~rows)
            summary, panes = summary.take(kept), panes[kept]
        self.panes.append(summary, panes)

    def advance(self, watermark: int, emit: Emit) -> None:
        for end in self._ends(self.watermark, watermark):
            self._emit_window(end, emit)
        self.watermark = watermark
        self.panes.drop([pane for pane in self.panes.starts() if self.windows.last_end(pane) <= watermark])

    def depart(self, move: Move) -> Departing:
        return self.panes.depart(move)

    def install(self, state: Batch) -> None:
        self.panes.install(state)

    def check_restored(self, schema: pa.Schema) -> None:
        if PANE not in schema.names:
            raise TypeError("it is not of aggregates in windows")

    def snapshot(self) -> Iterator[Batch]:
        return self.panes.snapshot()

    def changes(self) -> Changes | None:
        return self.panes.changes()

    def delta(self, changes: Changes) -> Iterator[Batch]:
        return self.panes.delta(changes)

    def state_bytes(self) -> int:
        return self.panes.nbytes

    def close(self) -> None:
        if hasattr(self, "panes"):
            self.panes.close()

    def describe(self) -> str:
        return f"{', '.join(self.functions)} by {', '.join(self.keys)} in {self.windows.describe()} windows"

    def _rebound(self, carry: Carry) -> None:
        """Types have come late or have widened."""
        self.panes.carry(carry)

    def _note_panes(self, summary: Summary, panes: npt.NDArray[np.int64]) -> None:
        """Note the load, if it is due; a key that is in several panes is counted once, with all its records."""
        if not self.context.load.due():
            return
        if (panes == panes[0]).all():
            self._note(summary.keys, summary.rows)
            return
        keys = encode_keys(pa.record_batch(list(summary.keys), names=list(self.keys)), self.keys, self.context.name)
        counts = np.zeros(keys.count, np.int64)
        np.add.at(counts, keys.codes, summary.rows)
        self._note(keys.columns, counts)

    def _late(self, batch: Batch, summary: Summary, codes: npt.NDArray[Any] | None, rows: npt.NDArray[np.bool_], emit: Emit) -> None:
        self.late_records += int(summary.rows[rows].sum())
        if codes is not None:
            emit(batch.filter(rows[codes]), "late")

    def _ends(self, after: int, until: int) -> list[int]:
        """Ends of the windows that have panes, in (after, until], rising."""
        slide = self.windows.slide
        ends: set[int] = set()
        for pane in self.panes.starts():
            first = self.windows.first_end(pane)
            if first <= after:
                first += ((after - first) // slide + 1) * slide
            ends.update(range(first, min(self.windows.last_end(pane), until) + 1, slide))
        return sorted(ends)

    def _emit_window(self, end: int, emit: Emit) -> None:
        start = end - self.windows.size
        for summary in self.panes.window(self._panes_between(start, end)):
            n = len(summary)
            bounds = [pa.array(np.full(n, t, np.int64)).cast(pa.timestamp("us")).cast(_TIMESTAMP) for t in (start, end)]
            columns = [*summary.keys, *bounds, *self.summariser.results(summary)]
            rows = pa.RecordBatch.from_arrays(columns, names=[*self.keys, "window_start", "window_end", *self.functions])
            emit(Batch(rows, np.full(n, end - 1, np.int64)))

    def _panes_between(self, start: int, end: int) -> list[int]:
        """The panes there are in [start, end), rising: looked for where there are fewer, among those of the window or those with keys."""
        there, width = self.panes.starts(), self.windows.pane
        if len(there) < (end - start) // width:
            return sorted(pane for pane in there if start <= pane < end)
        return [pane for pane in range(start, end, width) if pane in there]
