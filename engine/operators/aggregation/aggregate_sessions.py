"""Aggregates per key and session.

A session's result is emitted once, when the watermark is *greater* than the session's end: a row at the end itself would still
join it. A record is late if the session that it makes or joins ends before the watermark; it is counted, and goes to the side
output `late`.

Invariant: the sessions of a key in the state are further apart than the gap, and none ends before the watermark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...aggregates.base import AggregateFunction, described_parts, read_by
from ...aggregates.event_times import EventTimeBound
from ...aggregates.partial_aggregates import PartialAggregates
from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...keyed_state.kinds.opening import open_series
from ...keyed_state.series import Codes, Positions, Series, SeriesRows, joined
from ...keys.encoding import encode_keys
from ...keys.unkeyed import described, shown
from ...needed import Needed
from ...protocol.elements import MIN_TIME
from ...state_description import StateDescription, columns_text
from ...time.sessions import SessionWindows
from ..base import Operator
from ..keyed import KeyedInstance
from ..result_columns import result_columns
from .aggregating import AggregatingOperator
from .combine import BatchAggregator, Combine
from .window_bounds import END, START, TIMESTAMP, described_windows, timestamps

_BOUNDS: Mapping[str, AggregateFunction] = {"__first": EventTimeBound(latest=False), "__last": EventTimeBound(latest=True)}
"""The times of a session's first and last row, as aggregates like the user's."""


@dataclass(frozen=True, eq=False)
class AggregateSessions(AggregatingOperator):
    """An aggregation in sessions, with key columns, `window_start`, `window_end` (timestamps, UTC) and aggregates as results.

    The event time of a result is its end.
    """

    keys: tuple[str, ...]
    functions: Mapping[str, AggregateFunction]
    windows: SessionWindows

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return result_columns(inputs[0], self.keys, self.functions, "aggregate", {START: TIMESTAMP, END: TIMESTAMP})

    def state_description(self) -> StateDescription:
        traits = {"keys": columns_text(shown(self.keys)), "windows": described_windows(self.windows)}
        return StateDescription("aggregates in sessions", traits, *described_parts(self.functions))

    def open(self, context: Context) -> AggregateSessionsInstance:
        batch_aggregator = BatchAggregator(context.name, self.keys, {**_BOUNDS, **self.functions}, self.windows)
        return AggregateSessionsInstance(self, context, batch_aggregator, open_series(batch_aggregator.aggregator, context, falls_due=True))

    def combined(self) -> tuple[Operator, Operator]:
        return Combine(self.keys, {**_BOUNDS, **self.functions}, self.windows), self

    def needs(self, wanted: Needed | None) -> Needed | None:
        return read_by(self.functions.values())

    def describe(self) -> str:
        return f"{', '.join(self.functions)} {described(self.keys)} in {self.windows.describe()}"


class AggregateSessionsInstance(KeyedInstance):
    """An instance whose state is a series of sessions per key, each at the time of its last row.

    Whether a record is late depends on the sessions that it joins, so it needs its key's state.
    """

    state: Series

    def __init__(self, operator: AggregateSessions, context: Context, batch_aggregator: BatchAggregator, series: Series) -> None:
        super().__init__(context, operator.keys, series)
        self.gap = operator.windows.gap
        self.batch_aggregator, self.aggregator = batch_aggregator, batch_aggregator.aggregator
        self.watermark = MIN_TIME
        self._names = [*shown(operator.keys), START, END, *operator.functions]

    def process(self, batch: Batch, emit: Emit) -> None:
        partial, of_records, _ = self.batch_aggregator.received(batch)
        keys = encode_keys(pa.record_batch(list(partial.keys), names=list(self.keys)), self.keys, self.context.name)
        self._note_keys(keys.columns, keys.codes, partial)
        found = self.state.read(keys.columns)
        rows = SeriesRows(keys.codes, _last(partial), replace(partial, keys=()))
        if len(found):
            rows = joined(found.at(np.arange(len(found))), rows)
        codes, sessions, session_of = self._sessions(rows)
        late = self._ends(sessions) < self.watermark
        if late.any():
            self._late(batch, partial, of_records, late[session_of[len(rows.codes) - len(partial) :]], emit)
            kept = np.flatnonzero(~late)
            codes, sessions = codes[kept], sessions.take(kept)
        self.state.write(SeriesRows(codes, _last(sessions), sessions))

    def advance(self, watermark: int, emit: Emit) -> None:
        if watermark > MIN_TIME + self.gap:
            for sessions, _ in self.state.take_before(watermark - self.gap):
                self._emit(sessions, emit)
        self.watermark = watermark

    def _sessions(self, rows: SeriesRows) -> tuple[Codes, PartialAggregates, Codes]:
        """Merge rows of one session. Return the key's code of each session, the sessions, and each row's session."""
        order, session_of_ordered = sessions_of(rows.codes, _first(rows.partial), _last(rows.partial), self.gap)
        session_of = np.empty(len(order), np.int64)
        session_of[order] = session_of_ordered
        count = int(session_of_ordered[-1]) + 1
        codes = np.empty(count, np.int64)
        codes[session_of] = rows.codes
        return codes, self.aggregator.grouped([rows.partial], (), session_of, count), session_of

    def _ends(self, sessions: PartialAggregates) -> Positions:
        return _last(sessions) + self.gap

    def _note_keys(self, columns: list[pa.Array], codes: Codes, partial: PartialAggregates) -> None:
        if self.context.load.due():
            counts = np.zeros(len(columns[0]), np.int64)
            np.add.at(counts, codes, partial.rows)
            self._note(columns, counts)

    def _late(self, batch: Batch, partial: PartialAggregates, of_records: Codes | None, rows: npt.NDArray[np.bool_], emit: Emit) -> None:
        self.late_records += int(partial.rows[rows].sum())
        if of_records is not None and rows.any():
            emit(batch.filter(rows[of_records]), "late")

    def _emit(self, sessions: PartialAggregates, emit: Emit) -> None:
        sessions = sessions.take(np.argsort(_last(sessions), kind="stable"))
        ends = self._ends(sessions)
        bounds = [timestamps(_first(sessions)), timestamps(ends)]
        columns = [*sessions.keys[: len(shown(self.keys))], *bounds, *self.aggregator.results(sessions)[len(_BOUNDS) :]]
        emit(Batch(pa.RecordBatch.from_arrays(columns, names=self._names), ends))


def sessions_of(codes: Codes, first: Positions, last: Positions, gap: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Return the rows in order of their key and `first`, and the number of each ordered row's session, rising.

    A row begins a session if it begins more than `gap` after all earlier rows of its key have ended.

    >>> sessions_of(np.array([0, 1, 0, 0]), np.array([50, 0, 10, 0]), np.array([60, 9, 20, 5]), 5)
    (array([3, 2, 0, 1]), array([0, 0, 1, 2]))
    """
    span = int(last.max()) - int(first.min()) + gap + 1
    starts, ends = first - first.min(), last - first.min() + gap
    if (int(codes.max()) + 1) * span >= 2**63:
        bounds, places = np.unique(np.concatenate([starts, ends]), return_inverse=True)
        starts, ends, span = places[: len(starts)], places[len(starts) :], len(bounds)
    before = codes.astype(np.int64) * span
    starts, ends = before + starts, before + ends
    order = np.argsort(starts)  # equal ones are in one session, so their order doesn't matter
    reached = np.maximum.accumulate(ends[order])
    begins = np.ones(len(order), np.int64)
    begins[1:] = starts[order][1:] > reached[:-1]
    return order, np.cumsum(begins) - 1


def _first(sessions: PartialAggregates) -> Positions:
    times: Positions = sessions.parts[0][0]
    return times


def _last(sessions: PartialAggregates) -> Positions:
    times: Positions = sessions.parts[1][0]
    return times
