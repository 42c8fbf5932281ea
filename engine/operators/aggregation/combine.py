"""The combiner before the exchange: a batch becomes a row of partial aggregates per key (and pane).

It relieves hot keys: one row per key crosses the network, however many records the key has in a batch. Where nearly every record
has a key of its own, combining saves nothing, and would take most of the time of a small batch: such batches pass uncombined,
without the columns that no aggregate reads. One in `EVERY` is combined to check if that still holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...aggregates.base import AggregateFunction, read_by
from ...aggregates.partial_aggregates import PartialAggregates, PartialAggregator, is_partial
from ...aggregates.weighed import WeighedAggregator
from ...batch import Batch, Times
from ...context import Context, Emit
from ...keys.direct import PLACES, direct_keys, is_coded, plain
from ...keys.encoding import compact, encode_keys
from ...keys.unkeyed import EVERYTHING
from ...time.sessions import SessionWindows
from ...time.windows import Windows
from ...weights import WEIGHT
from ..base import Operator, OperatorInstance
from .window_bounds import timed

SUFFIX = ".combine"
"""The suffix of the combiner's name. Errors name the aggregate, which the user knows."""

WORTH = 0.5
"""The largest fraction of a batch's rows that combining may leave to be worth its time."""

EVERY = 32
"""One in this many batches is combined while batches pass uncombined."""


class BatchAggregator:
    """Computes the partial aggregates of a batch: by key, and by pane if there are windows."""

    def __init__(
        self,
        operator: str,
        keys: tuple[str, ...],
        functions: Mapping[str, AggregateFunction],
        windows: Windows | SessionWindows | None,
        *,
        weighed: bool = False,
    ) -> None:
        self.operator, self.keys, self.windows = operator, keys, windows
        read = read_by(functions.values())
        more = [key for key in keys if key != EVERYTHING] + [WEIGHT] * weighed
        self._needed = None if read is None else read.with_names(more)
        self.aggregator = (WeighedAggregator if weighed else PartialAggregator)(operator, keys, functions)
        self._seen, self._coded = pa.schema([]), False

    def __call__(self, batch: Batch) -> tuple[PartialAggregates, npt.NDArray[Any], npt.NDArray[np.int64] | None]:
        """Return partial aggregates, each record's row in them, shape (records,), and with windows each row's pane (microseconds)."""
        keys = encode_keys(batch.rows, self.keys, self.operator)
        if self.windows is None:
            return self.aggregator.aggregate(batch, keys.codes, keys.columns, keys.count), keys.codes, None
        starts, pane = panes_of(timed(batch, self.windows, self.operator), self.windows)
        if pane is None:
            partial = self.aggregator.aggregate(batch, keys.codes, keys.columns, keys.count)
            return partial, keys.codes, np.full(len(partial), starts[0], np.int64)
        present, codes = compact(pane * keys.count + keys.codes, len(starts) * keys.count)
        where = pa.array(present % keys.count)
        partial = self.aggregator.aggregate(batch, codes, [c.take(where) for c in keys.columns], len(present))
        return partial, codes, starts[present // keys.count]

    def combined(self, batch: Batch) -> tuple[PartialAggregates, Times | None, npt.NDArray[np.int64] | None]:
        """Return the partial aggregates, their newest event times, and their panes, as a combiner sends them.

        Partial aggregates of windows have no event times: they are not read, and the panes tell the time.
        """
        direct = self._direct(batch)
        if direct is not None:
            return direct
        partial, codes, panes = self(batch)
        return partial, latest(batch, codes, len(partial)) if self.windows is None else None, panes

    def _direct(self, batch: Batch) -> tuple[PartialAggregates, Times | None, npt.NDArray[np.int64] | None] | None:
        """Return the same as `combined`, found by a direct-address table; None if that would not pay off."""
        keys = direct_keys(batch.rows, self.keys, self.operator)
        if keys is None or not self.aggregator.fixed_width(batch.rows.schema):
            return None
        starts, pane = (None, None) if self.windows is None else panes_of(timed(batch, self.windows, self.operator), self.windows)
        size = keys.size if pane is None or starts is None else keys.size * len(starts)
        if size > PLACES * batch.num_rows:
            return None
        codes = keys.codes
        if pane is not None:
            codes = pane * keys.size
            codes += keys.codes
        every = self.aggregator.aggregate(batch, codes, (), size)
        present = np.flatnonzero(every.rows != 0)
        partial = replace(every.take(present), keys=(keys.column(present % keys.size),))
        if starts is not None:
            return partial, None, starts[present // keys.size]
        return partial, None if batch.times is None else _newest(batch.times, codes, size)[present], None

    def received(self, batch: Batch) -> tuple[PartialAggregates, npt.NDArray[Any] | None, npt.NDArray[np.int64] | None]:
        """Return the same as a call, also for a combined batch: its rows may share a key (and pane), and there are no codes."""
        if is_partial(batch.rows):
            partial, panes = self.aggregator.from_batch(batch)
            return partial, None, panes
        return self(batch)

    def needed(self, batch: Batch) -> Batch:
        """Return the batch without columns that neither an aggregate nor a key needs, and with dictionaries of texts decoded."""
        schema = batch.rows.schema
        if not schema.equals(self._seen):
            self._seen, self._coded = schema, any(map(is_coded, schema.types))
        names = schema.names if self._needed is None else self._needed.among(schema.names)
        if len(names) < batch.rows.num_columns:
            batch = batch.with_rows(batch.rows.select(names))
        return batch.with_rows(plain(batch.rows)) if self._coded else batch


@dataclass(frozen=True, eq=False)
class Combine(Operator):
    """The operator before the exchange of an aggregate."""

    keys: tuple[str, ...]
    functions: Mapping[str, AggregateFunction]
    windows: Windows | SessionWindows | None
    weights: bool = field(default=False, kw_only=True)
    """True if its rows have weights."""

    def open(self, context: Context) -> CombineInstance:
        return CombineInstance(self, context)

    def describe(self) -> str:
        return "one row per key and batch"


class CombineInstance(OperatorInstance):
    """An instance of `Combine`. It keeps no records, only the types seen so far and how many batches still pass uncombined."""

    def __init__(self, operator: Combine, context: Context) -> None:
        super().__init__(context)
        self.batch_aggregator = BatchAggregator(
            context.name.removesuffix(SUFFIX), operator.keys, operator.functions, operator.windows, weighed=operator.weights
        )
        self._passing = 0

    def process(self, batch: Batch, emit: Emit) -> None:
        if self._passing:
            self._passing -= 1
            emit(self.batch_aggregator.needed(batch))
            return
        partial, times, panes = self.batch_aggregator.combined(batch)
        emit(self.batch_aggregator.aggregator.to_batch(partial, times, panes))
        if len(partial) > WORTH * batch.num_rows:
            self._passing = EVERY - 1


def panes_of(times: Times, windows: Windows | SessionWindows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
    """Return the panes of `times`: their starts, ascending, and the index of each row's pane, None if all rows are in one.

    Panes without rows may be among them.
    """
    first, newest = windows.pane_of(np.array([times.min(), times.max()])).tolist()
    if first == newest:
        return np.array([first]), None
    width = windows.pane
    last = (newest - first) // width
    if last == 1:
        return np.array([first, first + width]), (times >= first + width).astype(np.int64)
    place = times - first
    place //= width
    if last > len(place):  # one stray time must not cost memory for all the panes up to it
        distinct, place = np.unique(place, return_inverse=True)
    else:
        distinct = np.arange(last + 1)
    return first + distinct * width, place


def latest(batch: Batch, codes: npt.NDArray[Any], groups: int) -> npt.NDArray[np.int64] | None:
    """Return the newest event time of each group, shape (groups,)."""
    if batch.times is None:
        return None
    if groups == len(codes):
        times = np.empty(groups, np.int64)
        times[codes] = batch.times
        return times
    return _newest(batch.times, codes, groups)


def _newest(times: Times, codes: npt.NDArray[Any], groups: int) -> Times:
    """Return the newest time of each group, shape (groups,)."""
    newest = np.full(groups, np.iinfo(np.int64).min)
    np.maximum.at(newest, codes, times)
    return newest
