"""The source of items in memory: a list of dicts, or of plain values (column `item`).

Worker `i mod parallelism` reads item `i`, until a reassignment (`share.py`), so that the workers advance through event time
together.

>>> reader = from_items([{"word": "a", "n": 1}, {"word": "b", "n": 2}]).reader(0, 1)
>>> reader.poll(10).to_rows(), reader.finished
([{'word': 'a', 'n': 1}, {'word': 'b', 'n': 2}], True)
>>> from_items([1, 2, 3]).reader(0, 1).poll(10).to_rows()
[{'item': 1}, {'item': 2}, {'item': 3}]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from ...engine.batch import ITEM, Batch
from ...engine.columns import UNKNOWN, Columns
from ...engine.errors import FlowError, RecordError
from ...engine.protocol.elements import MAX_TIME, MIN_TIME
from ...engine.source import Source, SourceReader
from ...engine.time.duration import Duration, microseconds
from ...engine.time.event_time import EventTime
from ...engine.types.frames import FRAMES, frame_as_arrow
from ...engine.types.python_values import REFUSALS
from ...engine.types.value_column import ValueColumn, shown
from ..share import Share, share_out


def from_items(
    items: Iterable[Any], *, event_time: str | None = None, unit: str = "ms", max_delay: Duration = 0, name: str = "from_items"
) -> ItemsSource:
    """Read `items`: dicts become rows (a key that a dict lacks is null), other values rows of the one column `item`.

    `items` may also be a frame, whose rows and types are kept: a pyarrow Table or RecordBatch, a pandas or Polars DataFrame, or
    anything else with `__arrow_c_stream__`. The index of a pandas DataFrame is dropped, unless it has a name, under which it is a
    column.

    `event_time` names the column that holds the event time: timestamps, dates, or integers that count `unit` since the Unix
    epoch; an item may be up to `max_delay` older than one before it. Raises RecordError for an item whose type doesn't fit the
    others'.

    >>> from_items([{"n": 1}, {"n": "two"}])
    Traceback (most recent call last):
        ...
    evenflow.engine.errors.RecordError: operator `from_items`: item 1, column `n`: 'two' is a str, but the values before it are int64
      record: {'n': 'two'}
    """
    spec = None if event_time is None else EventTime(event_time, unit, microseconds(max_delay, "max_delay"))
    table = frame_as_arrow(items, name)
    if table is not None:
        return ItemsSource(_one_batch(table, name), spec, name)
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise FlowError(f"{name}({items!r:.200}): expected a list of dicts or of values, or {FRAMES}")
    return ItemsSource(rows_of(list(items), name), spec, name)


def _one_batch(table: pa.Table, name: str) -> pa.RecordBatch:
    if not table.num_columns:
        raise FlowError(f"{name}: the table has no columns")
    batches = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    if len(batches) > 1:
        raise FlowError(f"{name}: a column of the table has more than 2 GB of texts: write it to Parquet, and use ef.read_parquet")
    return batches[0]


class ItemsSource(Source):
    """A source of rows in memory, which are sent to each reading worker as Arrow columns."""

    def __init__(self, rows: pa.RecordBatch, event_time: EventTime | None, name: str) -> None:
        self.name, self._rows, self._event_time = name, rows, event_time
        self.timed, self.time_column = event_time is not None, None if event_time is None else event_time.column

    def start(self) -> None:
        if self._event_time is not None and self._rows.num_rows:
            self._event_time.extract(self._rows, self.name)

    def known_columns(self) -> Columns:
        nothing = not self._rows.num_rows and self._rows.schema.types == [pa.null()]
        return UNKNOWN if nothing else Columns.of(self._rows.schema)

    def reader(self, index: int, parallelism: int) -> ItemsReader:
        return ItemsReader(self._rows, self._event_time, self.name, Share.of(index, parallelism))

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        shares = [Share.decode(position["share"]) for position in positions]
        shared = share_out(shares, parallelism, self.name)
        going_on = [position for position, share in zip(positions, shares, strict=True) if not self._ends(share)] or positions
        newest = min(position["newest"] for position in going_on)
        return [{"share": share.encode(), "newest": newest} for share in shared]

    def earliest(self, position: Any) -> int:
        if self._event_time is None or self._ends(Share.decode(position["share"])):
            return MAX_TIME
        return int(position["newest"]) - self._event_time.max_delay

    def _ends(self, share: Share) -> bool:
        return share.lowest >= int(self._rows.num_rows)


class ItemsReader(SourceReader):
    """A reader of one worker's items, ascending by number. Its position has the remaining ones and the newest event time before
    them.
    """

    def __init__(self, rows: pa.RecordBatch, event_time: EventTime | None, name: str, share: Share) -> None:
        self._rows, self._event_time, self._name = rows, event_time, name
        self._max_delay = 0 if event_time is None else event_time.max_delay
        self._newest = MIN_TIME + self._max_delay
        self._take(share)

    def poll(self, max_rows: int) -> Batch | None:
        if self.finished:
            return None
        batch = self._batch.slice(self._given, max_rows)
        self._given += batch.num_rows
        if batch.times is not None:
            self._newest = max(self._newest, int(batch.times.max()))
        return batch

    @property
    def finished(self) -> bool:
        return self._given == self._batch.num_rows

    def watermark(self) -> int:
        return MAX_TIME if self.finished or self._batch.times is None else self._newest - self._max_delay

    def position(self) -> dict[str, Any]:
        first = self._rows.num_rows if self.finished else int(self._numbers[self._given])
        return {"share": self._share.since(first).encode(), "newest": self._newest}

    def seek(self, position: Any) -> None:
        self._newest = position["newest"]
        self._take(Share.decode(position["share"]))

    def _take(self, share: Share) -> None:
        self._share, self._numbers, self._given = share, share.below(self._rows.num_rows), 0
        rows = self._rows.take(pa.array(self._numbers))
        self._batch = Batch(rows, self._event_time.extract(rows, self._name) if self._event_time is not None and rows.num_rows else None)


def rows_of(items: Sequence[Any], operator: str, known: dict[str, ValueColumn] | None = None) -> pa.RecordBatch:
    """Convert `items` to a record batch. Raises RecordError naming the first item that doesn't fit, and its column.

    `known`: the columns of earlier items, to which the types of these are added.
    """
    known = {} if known is None else known
    if not items:
        return pa.record_batch({ITEM: pa.nulls(0)})
    if not isinstance(items[0], Mapping):
        _refuse_mixed_shapes(items, operator, rows=False)
        values = {ITEM: items}
    else:
        _refuse_mixed_shapes(items, operator, rows=True)
        names = list(dict.fromkeys(chain(known, chain.from_iterable(items))))
        if not names:
            raise RecordError(operator, "item 0 has no columns", record=items[0])
        values = {name: [item.get(name) for item in items] for name in names}
    columns = [known.get(name) or ValueColumn(name) for name in values]
    arrays = [_encoded(column, values[column.name], items, operator) for column in columns]
    for column, array in zip(columns, arrays, strict=True):
        column.learn(array)
        known[column.name] = column
    return pa.record_batch(arrays, names=list(values))


def _refuse_mixed_shapes(items: Sequence[Any], operator: str, *, rows: bool) -> None:
    expected = "a dict" if rows else "a plain value"
    for index, item in enumerate(items):
        if isinstance(item, Mapping) is not rows:
            problem = f"item {index} is {type(item).__name__}, but item 0 is {expected}: give either only dicts or only plain values"
            raise RecordError(operator, problem, record=item)
        if rows and not all(isinstance(name, str) for name in item):
            raise RecordError(operator, f"item {index} has a key that is not a string; column names are strings", record=item)


def _encoded(column: ValueColumn, values: Sequence[Any], items: Sequence[Any], operator: str) -> pa.Array:
    try:
        return column.encoded(values)
    except REFUSALS as error:
        misfit = column.first_misfit(values)
        before = "which has no Arrow type" if misfit.kind is None else f"but the values before it are {misfit.kind}"
        problem = f"item {misfit.place}, column `{column.name}`: {shown(misfit.value)} is a {type(misfit.value).__name__}, {before}"
        raise RecordError(operator, problem, record=items[misfit.place]) from error
