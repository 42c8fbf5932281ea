"""Aggregates per key and event-time window.

A window's result is emitted once, when the watermark has passed its end; a record that comes after all of its windows were
emitted is late: it is counted, and goes out on the port `late`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates.base import AggregateFunction
from ..aggregates.binding import Binding
from ..batch import Batch
from ..elements import MIN_TIME
from ..keys import encode_keys, key_hashes
from ..pane import Pane
from ..routing import Move
from ..summary import Carry, Summariser, Summary
from ..windows import Windows
from .base import Context, Emit, Operator
from .combine import Combine, Summarise
from .keyed import Departing, KeyedOperator

CHUNK = 32_768
"""Keys of a chunk of a snapshot."""

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
        self.panes: dict[int, Pane] = {}
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
        self._append(summary, panes)

    def advance(self, watermark: int, emit: Emit) -> None:
        for end in self._ends(self.watermark, watermark):
            self._emit_window(end, emit)
        self.watermark = watermark
        for pane in [pane for pane in self.panes if self.windows.last_end(pane) <= watermark]:
            del self.panes[pane]

    def depart(self, move: Move) -> Departing:
        return _DepartingPanes(self, move)

    def install(self, state: Batch) -> None:
        summary, panes = self.summariser.from_batch(state)
        if panes is not None:
            self._append(summary, panes)

    def snapshot(self) -> Iterator[Batch]:
        return self._chunks([(start, list(pane.log)) for start, pane in self.panes.items()], self.summariser.binding)

    def _chunks(self, panes: Sequence[tuple[int, Sequence[Summary]]], binding: Binding | None) -> Iterator[Batch]:
        """The summaries of panes as they lie; what a summary holds is never changed in place."""
        for start, log in panes:
            for summary in log:
                for first in range(0, len(summary), CHUNK):
                    piece = summary.take(np.arange(first, min(first + CHUNK, len(summary))))
                    yield self.summariser.to_batch(piece, None, np.full(len(piece), start, np.int64), binding)

    def state_bytes(self) -> int:
        return sum(pane.nbytes(self.summariser) for pane in self.panes.values())

    def describe(self) -> str:
        return f"{', '.join(self.functions)} by {', '.join(self.keys)} in {self.windows.describe()} windows"

    def _rebound(self, carry: Carry) -> None:
        """Types have come late or have widened."""
        for pane in self.panes.values():
            pane.carry(carry)

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

    def _append(self, summary: Summary, panes: npt.NDArray[np.int64]) -> None:
        starts = distinct(panes)
        for start in starts:
            rows = summary if len(starts) == 1 else summary.take(np.flatnonzero(panes == start))
            self.panes.setdefault(start, Pane()).append(rows, self.summariser)

    def _late(self, batch: Batch, summary: Summary, codes: npt.NDArray[Any] | None, rows: npt.NDArray[np.bool_], emit: Emit) -> None:
        self.late_records += int(summary.rows[rows].sum())
        if codes is not None:
            emit(batch.filter(rows[codes]), "late")

    def _ends(self, after: int, until: int) -> list[int]:
        """Ends of the windows that have panes, in (after, until], rising."""
        slide = self.windows.slide
        ends: set[int] = set()
        for pane in self.panes:
            first = self.windows.first_end(pane)
            if first <= after:
                first += ((after - first) // slide + 1) * slide
            ends.update(range(first, min(self.windows.last_end(pane), until) + 1, slide))
        return sorted(ends)

    def _emit_window(self, end: int, emit: Emit) -> None:
        start = end - self.windows.size
        panes = [self.panes[p] for p in range(start, end, self.windows.pane) if p in self.panes]
        if len(panes) == 1:
            summary = panes[0].combined(self.summariser)
        else:
            summary = self.summariser.combine([s for pane in panes for s in pane.log])
        n = len(summary)
        bounds = [pa.array(np.full(n, t, np.int64)).cast(pa.timestamp("us")).cast(_TIMESTAMP) for t in (start, end)]
        columns = [*summary.keys, *bounds, *self.summariser.results(summary)]
        rows = pa.RecordBatch.from_arrays(columns, names=[*self.keys, "window_start", "window_end", *self.functions])
        emit(Batch(rows, np.full(n, end - 1, np.int64)))


def distinct(panes: npt.NDArray[np.int64]) -> list[int]:
    """The different panes, rising; most summaries have one, and one whose rows were all late has none."""
    if not len(panes) or (panes == panes[0]).all():
        return panes[:1].tolist()  # type: ignore[no-any-return]
    return np.unique(panes).tolist()  # type: ignore[no-any-return]


class _DepartingPanes(Departing):
    """The leaving keys' part of every pane, cut out at once, so that the windows that stay can go on."""

    def __init__(self, operator: AggregateWindows, move: Move) -> None:
        self._summariser, self._binding = operator.summariser, operator.summariser.binding
        self._left: list[tuple[int, Summary]] = []
        for start, pane in list(operator.panes.items()):
            summary = pane.combined(self._summariser)
            leaving = move.selects(key_hashes(summary.keys, operator.context.name), operator.context.key_groups)
            if leaving.any():
                self._left.append((start, summary.take(np.flatnonzero(leaving))))
                pane.replace(summary.take(np.flatnonzero(~leaving)))
                if not len(pane):
                    del operator.panes[start]

    def some(self, keys: int) -> Batch | None:
        if not self._left:
            return None
        start, summary = self._left.pop()
        if len(summary) > keys:
            self._left.append((start, summary.take(np.arange(keys, len(summary)))))
            summary = summary.take(np.arange(keys))
        return self._summariser.to_batch(summary, None, np.full(len(summary), start, np.int64), self._binding)

    def of(self, columns: Sequence[pa.Array]) -> Batch | None:
        return None
