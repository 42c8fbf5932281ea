"""Aggregates per key and event-time window.

A window's result is emitted once, when the watermark has passed its end, or as its `Emission` says. A record that arrives after
all of its windows and the allowed lateness have passed is late: it is counted, and goes to the side output `late`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...aggregates.base import AggregateFunction, described_parts, read_by
from ...aggregates.partial_aggregates import PartialAggregates
from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...keyed_state.kinds.opening import open_panes
from ...keyed_state.panes import Panes, distinct
from ...keys.encoding import encode_keys
from ...keys.unkeyed import described, shown
from ...needed import Needed
from ...protocol.elements import MIN_TIME
from ...state_description import StateDescription, columns_text, seconds_text
from ...time.windows import Windows
from ...updates import Updates
from ..base import Operator
from ..keyed import KeyedInstance
from ..result_columns import result_columns
from .aggregating import AggregatingOperator
from .changed_keys import ChangedKeys, KeyColumns
from .combine import BatchAggregator, Combine
from .emission import ONCE, Emission
from .window_bounds import END, START, TIMESTAMP, bounds_of, described_windows


@dataclass(frozen=True, eq=False)
class AggregateWindows(AggregatingOperator):
    """An aggregation in windows, with key columns, `window_start`, `window_end` (timestamps, UTC) and aggregates as results."""

    keys: tuple[str, ...]
    functions: Mapping[str, AggregateFunction]
    windows: Windows
    emission: Emission = field(default=ONCE, kw_only=True)

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return result_columns(inputs[0], self.keys, self.functions, "aggregate", {START: TIMESTAMP, END: TIMESTAMP})

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return None if self.emission.once else Updates((*shown(self.keys), START, END))

    def state_description(self) -> StateDescription:
        traits = {"keys": columns_text(shown(self.keys)), "windows": described_windows(self.windows)}
        traits["lateness"] = seconds_text(self.emission.lateness)
        return StateDescription("aggregates in windows", traits, *described_parts(self.functions))

    def open(self, context: Context) -> AggregateWindowsInstance:
        batch_aggregator = BatchAggregator(context.name, self.keys, self.functions, self.windows)
        return AggregateWindowsInstance(self, context, batch_aggregator, open_panes(batch_aggregator.aggregator, context))

    def combined(self) -> tuple[Operator, Operator]:
        return Combine(self.keys, self.functions, self.windows), self

    def needs(self, wanted: Needed | None) -> Needed | None:
        return read_by(self.functions.values())

    def describe(self) -> str:
        when = self.emission.describe()
        return f"{', '.join(self.functions)} {described(self.keys)} in {self.windows.describe()} windows{when and f', {when}'}"


class AggregateWindowsInstance(KeyedInstance):
    """An instance whose state is the panes that some window still needs, also for corrections."""

    state: Panes
    merges_state = True

    def __init__(self, operator: AggregateWindows, context: Context, batch_aggregator: BatchAggregator, panes: Panes) -> None:
        super().__init__(context, operator.keys, panes)
        self.windows = operator.windows
        self.batch_aggregator, self.aggregator = batch_aggregator, batch_aggregator.aggregator
        self.emission, self.watermark = operator.emission, MIN_TIME
        self._changed = ChangedKeys(self.aggregator)
        panes.when_installed(self._note_installed)
        self._names = [*shown(operator.keys), START, END, *operator.functions]

    def process(self, batch: Batch, emit: Emit) -> None:
        partial, codes, panes = self.batch_aggregator.received(batch)
        if panes is None:
            raise ValueError("partial aggregates for windows arrived without panes")
        self._note_panes(partial, panes)
        late = np.array([pane for pane in distinct(panes) if self._closed(pane, self.watermark)], np.int64)
        if len(late):
            rows = np.isin(panes, late)
            self._late(batch, partial, codes, rows, emit)
            kept = np.flatnonzero(~rows)
            partial, panes = partial.take(kept), panes[kept]
        self.state.append(partial, panes)
        self._note_changes(partial, panes)

    def advance(self, watermark: int, emit: Emit) -> None:
        before = self.watermark
        if self.emission.once:
            for end in self._ends(before, watermark):
                self._emit_window(end, emit)
        else:
            self._emit_changed(before, watermark, emit)
        self.watermark = watermark
        closed = [pane for pane in self.state.starts() if self._closed(pane, watermark)]
        self.state.drop(closed)
        self._changed.drop(closed)

    def _closed(self, pane: int, watermark: int) -> bool:
        """Return True if a record in this pane is too late for all its windows."""
        return self.windows.last_end(pane) + self.emission.lateness <= watermark

    def _emit_changed(self, before: int, watermark: int, emit: Emit) -> None:
        """Emit windows that end, close or may be emitted now, if they changed since they were last emitted."""
        updates, lateness = self.emission.updates, self.emission.lateness
        due = self.emission.due(before, watermark)
        for end in sorted({*self._ends(before, watermark), *self._changed_ends(before - lateness)}):
            ends = before < end <= watermark
            if ends and not updates:
                self._emit_window(end, emit)
            elif ends or end + lateness <= watermark or (due and (updates or end <= before)):
                self._emit_window(end, emit, self._changed.since_emitted(end, self._panes_between(end - self.windows.size, end)))
            else:
                continue
            self._changed.emitted(end)
        if due:
            self._changed.forget()
        self._changed.next()

    def _changed_ends(self, after: int) -> set[int]:
        """Return the ends after `after` of windows with panes that changed."""
        slide, ends = self.windows.slide, set[int]()
        for pane in self._changed.panes:
            ends.update(end for end in range(self.windows.first_end(pane), self.windows.last_end(pane) + 1, slide) if end > after)
        return ends

    def _note_changes(self, partial: PartialAggregates, panes: npt.NDArray[np.int64]) -> None:
        """Note the changed keys, if windows are emitted more than once."""
        if self.emission.once:
            return
        starts = distinct(panes)
        for start in starts:
            if self.emission.updates or self.windows.first_end(start) <= self.watermark:
                where = None if len(starts) == 1 else pa.array(panes == start)
                self._changed.note(start, partial.keys if where is None else [column.filter(where) for column in partial.keys])

    def _note_installed(self, partial: PartialAggregates | None, panes: npt.NDArray[np.int64] | None) -> None:
        """Count installed state as changed, since it is unknown what was emitted of it."""
        if partial is not None and panes is not None:
            self._note_changes(partial, panes)
        elif not self.emission.once:
            for start in self.state.starts():
                self._changed.note(start, None)

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
        """Return the ends in (after, until] of windows that have panes, rising."""
        slide = self.windows.slide
        ends: set[int] = set()
        for pane in self.state.starts():
            first = self.windows.first_end(pane)
            if first <= after:
                first += ((after - first) // slide + 1) * slide
            ends.update(range(first, min(self.windows.last_end(pane), until) + 1, slide))
        return sorted(ends)

    def _emit_window(self, end: int, emit: Emit, keys: KeyColumns = None) -> None:
        """Emit the rows of the window that ends at `end`, those of `keys` or all."""
        start = end - self.windows.size
        panes = self._panes_between(start, end)
        if not panes or (keys is not None and not len(keys)):
            return
        for partial in self.state.window(panes) if keys is None else self.state.of_keys(panes, keys):
            n = len(partial)
            if not n:
                continue  # all keys have departed
            columns = [*partial.keys[: len(shown(self.keys))], *bounds_of(start, end, n), *self.aggregator.results(partial)]
            rows = pa.RecordBatch.from_arrays(columns, names=self._names)
            emit(Batch(rows, np.full(n, end - 1, np.int64)))

    def _panes_between(self, start: int, end: int) -> list[int]:
        """Return the panes with keys in [start, end), rising.

        It scans the window's panes or those with keys, whichever are fewer.
        """
        there, width = self.state.starts(), self.windows.pane
        if len(there) < (end - start) // width:
            return sorted(pane for pane in there if start <= pane < end)
        return [pane for pane in range(start, end, width) if pane in there]
