"""Aggregates per key and count window: every `every` rows of a key, over the last `size`.

Rows count in the order of their arrival, which is kept per key and channel. Invariant: a key's series has its count of rows, at
position `_COUNT`, and without a gap the panes that a later window needs, each at its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...aggregates.base import AggregateFunction, described_parts, read_by
from ...aggregates.kept_values import in_groups
from ...aggregates.partial_aggregates import PartialAggregates, PartialAggregator
from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...keyed_state.kinds.opening import open_series
from ...keyed_state.series import Codes, FoundRows, Series, SeriesRows, joined
from ...keys.encoding import EncodedKeys, compact, encode_keys
from ...keys.unkeyed import described, shown
from ...needed import Needed
from ...state_description import StateDescription, columns_text
from ...time.row_windows import RowWindows
from ..keyed import KeyedInstance
from ..result_columns import result_columns
from .aggregating import AggregatingOperator

END_ROW = "window_end_row"
"""The column with the number of a window's last row among those of its key, the first being 1."""

_COUNT = -1
"""The position of a row without values, whose count of records is the key's."""

_AT_ONCE = 1 << 20
"""The number of panes that are combined at once."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AggregateRows(AggregatingOperator):
    """An aggregation in count windows, with key columns, `window_end_row` and the aggregates as results.

    A result has the event time of its window's last row.
    """

    keys: tuple[str, ...]
    functions: Mapping[str, AggregateFunction]
    windows: RowWindows

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return result_columns(inputs[0], self.keys, self.functions, "aggregate", {END_ROW: pa.int64()})

    def state_description(self) -> StateDescription:
        traits = {"keys": columns_text(shown(self.keys)), "windows": self.windows.describe()}
        return StateDescription("aggregates in windows of rows", traits, *described_parts(self.functions))

    def open(self, context: Context) -> AggregateRowsInstance:
        aggregator = PartialAggregator(context.name, self.keys, self.functions)
        return AggregateRowsInstance(self, context, aggregator, open_series(aggregator, context, falls_due=False))

    def needs(self, wanted: Needed | None) -> Needed | None:
        return read_by(self.functions.values())

    def describe(self) -> str:
        return f"{', '.join(self.functions)} {described(self.keys)} in {self.windows.describe()}"


@dataclass(frozen=True, slots=True)
class _Came:
    """The rows of a batch by key: `order` has their indices, key after key, and a key's begin at `begins`.

    `before`, `after`: the number of the key's rows before this batch and with it.
    """

    order: npt.NDArray[np.intp]
    begins: Ints
    before: Ints
    after: Ints


class AggregateRowsInstance(KeyedInstance):
    """An instance with a series of panes per key. A row's pane depends on the key's earlier rows, so it needs the state."""

    state: Series

    def __init__(self, operator: AggregateRows, context: Context, aggregator: PartialAggregator, series: Series) -> None:
        super().__init__(context, operator.keys, series)
        self.size, self.every, self.pane = operator.windows.size, operator.windows.every, operator.windows.pane
        self.aggregator = aggregator
        self._names = [*shown(operator.keys), END_ROW, *operator.functions]

    def process(self, batch: Batch, emit: Emit) -> None:
        keys = encode_keys(batch.rows, self.keys, self.context.name)
        self.aggregator.bind(batch.rows.schema)
        arrived = np.bincount(keys.codes, minlength=keys.count)
        self.note_load(keys.columns, arrived)
        found = self.state.read(keys.columns)
        before = np.zeros(keys.count, np.int64)
        if len(found):
            counts = found.at(np.flatnonzero(found.positions == _COUNT))
            before[counts.codes] = counts.partial.rows
        ends = np.cumsum(arrived)
        came = _Came(np.arange(batch.num_rows)[in_groups(keys.codes, keys.count)], ends - arrived, before, before + arrived)
        panes = self._partial(batch, keys.codes, came)
        if len(found):
            panes = self._with_found(panes, found, came)
        self._emit(self._windows(came), panes, keys, came, batch, emit)
        self._write(panes, found, came)

    def _partial(self, batch: Batch, codes: Codes, came: _Came) -> SeriesRows:
        """Return the rows of the batch as panes."""
        number = np.empty(len(codes), np.int64)
        of = codes[came.order]
        number[came.order] = np.arange(len(codes)) - came.begins[of] + came.before[of]
        first = came.before // self.pane
        pane = number // self.pane - first[codes]
        span = int(pane.max()) + 1
        present, groups = compact(codes.astype(np.int64) * span + pane, len(first) * span)
        partial = self.aggregator.aggregate(batch, groups, (), len(present))
        return SeriesRows(present // span, first[present // span] + present % span, partial)

    def _with_found(self, panes: SeriesRows, found: FoundRows, came: _Came) -> SeriesRows:
        """Return the panes of the batch with the found ones that change or whose window ends with this batch."""
        ends = came.after // self.every > came.before // self.every
        changes = found.positions == came.before[found.codes] // self.pane
        needed = np.flatnonzero((found.positions != _COUNT) & (changes | ends[found.codes]))
        return self._merged(joined(found.at(needed), panes)) if len(needed) else panes

    def _merged(self, rows: SeriesRows) -> SeriesRows:
        """Return panes by key and number, each once; of equal ones the first in `rows` has the earlier records."""
        order = np.argsort(rows.positions, kind="stable")
        order = order[in_groups(rows.codes[order], int(rows.codes.max()) + 1)]
        codes, positions = rows.codes[order], rows.positions[order]
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (codes[1:] != codes[:-1]) | (positions[1:] != positions[:-1])
        groups = np.empty(len(order), np.int64)
        groups[order] = np.cumsum(begins) - 1
        firsts = np.flatnonzero(begins)
        return SeriesRows(codes[firsts], positions[firsts], self.aggregator.grouped([rows.partial], (), groups, len(firsts)))

    def _windows(self, came: _Came) -> tuple[Codes, Ints]:
        """Return the keys' codes and the end rows of the windows that this batch completes.

        They are in the order of their last rows' arrival.
        """
        first, last = came.before // self.every + 1, came.after // self.every
        counts = last - first + 1
        codes = np.repeat(np.arange(len(counts)), counts)
        ends = (np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts) + first[codes]) * self.every
        order = np.argsort(self._places(codes, ends, came), kind="stable")
        return codes[order], ends[order]

    def _places(self, codes: Codes, ends: Ints, came: _Came) -> npt.NDArray[np.intp]:
        """Return the indices of windows' last rows in the batch."""
        places: npt.NDArray[np.intp] = came.order[came.begins[codes] + ends - came.before[codes] - 1]
        return places

    def _emit(self, windows: tuple[Codes, Ints], panes: SeriesRows, keys: EncodedKeys, came: _Came, batch: Batch, emit: Emit) -> None:
        for codes, ends, partial in self._results(*windows, panes, keys.count):
            of = pa.array(codes)
            columns = [column.take(of) for column in keys.columns[: len(shown(self.keys))]]
            rows = pa.RecordBatch.from_arrays([*columns, pa.array(ends), *self.aggregator.results(partial)], names=self._names)
            emit(Batch(rows, None if batch.times is None else batch.times[self._places(codes, ends, came)]))

    def _results(self, codes: Codes, ends: Ints, panes: SeriesRows, keys: int) -> Iterator[tuple[Codes, Ints, PartialAggregates]]:
        """Yield the windows' keys, end rows and partial aggregates, some windows at a time."""
        begins = np.searchsorted(panes.codes, np.arange(keys))
        last = ends // self.pane
        first = np.maximum(last - self.size // self.pane, 0)
        counts = last - first
        places = begins[codes] + first - panes.positions[begins[codes]]
        cuts = np.searchsorted(np.cumsum(counts), np.arange(_AT_ONCE, int(counts.sum()) + _AT_ONCE, _AT_ONCE), side="right")
        start = 0
        for cut in np.unique(np.maximum(cuts, 1)).tolist():
            some, start = slice(start, cut), cut
            number = counts[some]
            window = np.repeat(np.arange(len(number)), number)
            where = np.arange(len(window)) - np.repeat(np.cumsum(number) - number, number) + places[some][window]
            yield codes[some], ends[some], self.aggregator.grouped([panes.partial.take(where)], (), window, len(number))

    def _write(self, panes: SeriesRows, found: FoundRows, came: _Came) -> None:
        """Write the changed panes that the next windows need, and the counts; unchanged panes stay."""
        needed = ((came.after // self.every + 1) * self.every - self.size) // self.pane
        changed = came.before // self.pane
        written = _taken(panes, np.flatnonzero(panes.positions >= np.maximum(needed, changed)[panes.codes]))
        stays = (found.positions != _COUNT) & (found.positions >= needed[found.codes]) & (found.positions < changed[found.codes])
        empty = tuple(accumulator.empty(len(needed)) for accumulator in self.aggregator.accumulators)
        counts = SeriesRows(np.arange(len(needed)), np.full(len(needed), _COUNT), PartialAggregates((), came.after, empty))
        self.state.write(joined(written, counts), np.flatnonzero(stays))


def _taken(rows: SeriesRows, where: npt.NDArray[np.intp]) -> SeriesRows:
    return replace(rows, codes=rows.codes[where], positions=rows.positions[where], partial=rows.partial.take(where))
