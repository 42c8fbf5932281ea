"""A source that calls a user's generator, which yields rows and the position after them, for each of some partitions.

>>> def numbers(partition, position):
...     for n in range(position or 0, 3):
...         yield {"n": n}, n + 1
>>> source = from_generator(numbers)
>>> first, second = source.reader(0, 1), source.reader(0, 1)
>>> first.poll(1).to_rows()
[{'n': 0}]
>>> second.seek(first.position())
>>> second.poll(1).to_rows()
[{'n': 1}]
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.columns import UNKNOWN, Columns
from ...engine.errors import ConnectorError, FlowError, RecordError
from ...engine.functions.user_function import check_function
from ...engine.protocol.elements import MAX_TIME, MIN_TIME
from ...engine.source import Source, SourceReader, SplitFigures
from ...engine.time.duration import Duration, seconds
from ...engine.time.event_time import EventTime
from ...engine.types.python_values import REFUSALS
from ...engine.types.value_column import ValueColumn
from ...state.packing import pack_value
from ..formats.inferred import Types, schema_of
from ..positions import check_all_readers
from ..quiet import CLOCKS, Clocks, Quiet, event_time_of, idle_advice
from .items import rows_of

Generate = Callable[[int, Any], Iterator[Any]]
"""A function of a partition's number and a position."""

GATHERING = 0.01
"""Seconds for which a poll collects rows that a generator yields one by one."""


def from_generator(
    function: Generate,
    *,
    partitions: int = 1,
    event_time: str | None = None,
    unit: str = "ms",
    max_delay: Duration = 0,
    idle_after: Duration | None = None,
    schema: Types | None = None,
    poll_every: Duration = "100ms",
    name: str = "from_generator",
) -> GeneratorSource:
    """Read the rows that `function(partition, position)` yields, for the partitions 0, 1, ... of `partitions`; one worker reads a
    partition.

    The function, most often a generator, yields pairs `(rows, position)`: a dict or a list of dicts, and any value of None,
    numbers, strings, bytes, lists, tuples and dicts. Called with that position it must yield the rows that follow, always the
    same: then every row counts once, also after a recovery. The first call has the position None. The function yields None when
    it has no rows now, and is resumed after `poll_every`. While it blocks, for example on a server's response, its worker does
    nothing else. It returns at the end of its partition.

    `schema` sets the columns and their types; without it types widen with the values. A column that a row lacks is null.
    `event_time`, `unit` and `max_delay` are as in `from_items`, within a partition: a partition without rows holds event time
    back. With `idle_after`, one that has yielded nothing but None for that long counts with the clock's time less `max_delay`. A
    row that it yields later is late if it is older, so give `idle_after` only for event times that follow the clock.

    An exception of the function fails the job with a ConnectorError that names the partition. A row that doesn't fit, would change
    in the types of `schema`, or has a column that `schema` doesn't declare, fails it with a RecordError.
    """
    if not isinstance(partitions, int) or isinstance(partitions, bool) or partitions < 1:
        raise FlowError(f"{name}: partitions is {partitions!r}; it must be a whole number of at least 1")
    spec = event_time_of(event_time, unit, max_delay, idle_after, name=name, ends=None)
    checked: Generate = check_function(function, name, "partition", "position", yields=True)
    return GeneratorSource(checked, partitions, spec, schema_of(schema, name), seconds(poll_every, "poll_every"), name)


class GeneratorSource(Source):
    """The source that `from_generator` creates."""

    guarantee = "exactly once (calls the function with the checkpointed positions)"
    split_word = "partition"
    may_change = frozenset({"poll_every"})

    def __init__(
        self, function: Generate, partitions: int, event_time: EventTime | None, schema: pa.Schema, poll_every: float, name: str
    ) -> None:
        self.name, self._function, self._partitions = name, function, partitions
        self._event_time, self._schema, self._poll_every = event_time, schema, poll_every
        self.timed, self.time_column = event_time is not None, None if event_time is None else event_time.column
        self.idle_advice = idle_advice(event_time, "partition")

    def continuing(self, other: Source) -> Source:
        return self

    def known_columns(self) -> Columns:
        return Columns.of(self._schema) if self._schema.names else UNKNOWN

    def reader(self, index: int, parallelism: int) -> GeneratorReader:
        partitions = [_Partition(number) for number in range(index, self._partitions, parallelism)]
        return GeneratorReader(
            self._function, partitions, self._event_time, self._schema, self._poll_every, self.name, (index, parallelism)
        )

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        check_all_readers((tuple(position["reader"]) for position in positions), self.name)
        partitions = sorted((partition for position in positions for partition in position["partitions"]), key=itemgetter(0))
        watermark = min((_watermark(position) for position in positions if position["partitions"]), default=MIN_TIME)
        return [
            {
                "reader": [index, parallelism],
                "partitions": [each for each in partitions if each[0] % parallelism == index],
                "watermark": watermark,
            }
            for index in range(parallelism)
        ]

    def earliest(self, position: Any) -> int:
        if self._event_time is None:
            return MAX_TIME
        newest = [partition[3] for partition in position["partitions"]]
        bound = min((_bound(time, self._event_time.max_delay) for time in newest), default=MAX_TIME)
        return max(bound, _watermark(position))


def _watermark(position: Any) -> int:
    """Return the watermark in a reader's position; those of earlier versions have none."""
    return int(position.get("watermark", MIN_TIME))


class _Partition:
    """A partition: `given` rows after `position` were emitted, and `newest` is the newest event time of all (microseconds)."""

    quiet: Quiet

    def __init__(self, number: int, position: Any = None, given: int = 0, newest: int | None = None) -> None:
        self.number, self.position, self.given, self.newest = number, position, given, newest
        self.generator: Iterator[Any] | None = None
        self.rows: list[Any] = []
        """The rows yielded last; `given` rows of them were emitted, and `behind` is the position after them."""
        self.behind: Any = position
        self.skip = given

    def encode(self) -> list[Any]:
        return [self.number, self.position, self.given, self.newest]

    def take(self, rows: list[Any], behind: Any) -> None:
        """Take `rows` and the position after them from the generator; some may have been emitted before the seek."""
        self.rows, self.behind = rows, behind
        self.given = min(self.skip, len(rows))
        self.skip -= self.given
        self.pass_given()

    def pass_given(self) -> None:
        """Advance past the yielded rows if all were emitted."""
        if self.given >= len(self.rows):
            self.position, self.given, self.rows = self.behind, self.skip, []


def _bound(newest: int | None, max_delay: int) -> int:
    return MIN_TIME if newest is None else newest - max_delay


def _number(partition: _Partition) -> int:
    return partition.number


class GeneratorReader(SourceReader):
    """A reader that polls the generators of one worker's partitions in turn. Its position has the unfinished partitions."""

    def __init__(
        self,
        function: Generate,
        partitions: Sequence[_Partition],
        event_time: EventTime | None,
        schema: pa.Schema,
        poll_every: float,
        name: str,
        reader: tuple[int, int],
        clocks: Clocks = CLOCKS,
    ) -> None:
        self._function, self._event_time, self._schema, self._clocks = function, event_time, schema, clocks
        self._partitions = deque(partitions)
        self._open()
        self._poll_every, self._name, self._reader = poll_every, name, reader
        self._watermark = MIN_TIME
        self._columns: dict[str, ValueColumn] = {}
        """The columns of the rows so far, if there is no `schema`: their types widen."""

    def poll(self, max_rows: int) -> Batch | None:
        for partition in list(self._partitions):
            look = partition.quiet.look()
            rows = self._gather(partition, max_rows)
            if partition in self._partitions:
                self._partitions.rotate(-1)
            if not rows:
                partition.quiet.found_nothing(look)
            else:
                partition.quiet.gave()
                batch = self._batch(rows)
                if batch.times is not None:
                    newest = int(batch.times.max())
                    partition.newest = newest if partition.newest is None else max(partition.newest, newest)
                return batch
        return None

    @property
    def finished(self) -> bool:
        return not self._partitions

    def watermark(self) -> int:
        if self._event_time is None or self.finished:
            return MAX_TIME
        delay = self._event_time.max_delay
        bound = min(max(_bound(partition.newest, delay), partition.quiet.bound) for partition in self._partitions)
        self._watermark = max(self._watermark, bound)
        return self._watermark

    def position(self) -> dict[str, Any]:
        self.watermark()
        partitions = [partition.encode() for partition in self._partitions]
        return {"reader": list(self._reader), "partitions": partitions, "watermark": self._watermark}

    def seek(self, position: Any) -> None:
        self._partitions, self._watermark = deque(_Partition(*partition) for partition in position["partitions"]), _watermark(position)
        self._open()

    def split_figures(self) -> list[SplitFigures]:
        partitions = sorted(self._partitions, key=_number)
        return [SplitFigures(str(each.number), newest=each.newest, idle=each.quiet.is_idle) for each in partitions]

    def ready_in(self) -> float:
        return self._poll_every

    def close(self) -> None:
        for partition in self._partitions:
            close = getattr(partition.generator, "close", None)
            if close is not None:
                close()

    def _open(self) -> None:
        for partition in self._partitions:
            partition.quiet = Quiet(self._event_time, self._clocks)

    def _gather(self, partition: _Partition, max_rows: int) -> list[Any]:
        """Collect the rows that the partition yields within a short time. A finished partition is dropped."""
        rows, until = list[Any](), time.monotonic() + GATHERING
        while len(rows) < max_rows:
            if partition.given < len(partition.rows):
                rows += (given := partition.rows[partition.given : partition.given + max_rows - len(rows)])
                partition.given += len(given)
                partition.pass_given()
            elif (rows and time.monotonic() > until) or not self._advance(partition):
                break
        return rows

    def _advance(self, partition: _Partition) -> bool:
        """Resume the partition's generator; return True if it yielded rows."""
        yielded: Any = None
        try:
            if partition.generator is None:
                partition.generator = iter(self._function(partition.number, partition.position))
            yielded = next(partition.generator)
        except StopIteration:
            if partition.skip:
                raise self._wrong(partition, f"ended {partition.skip} rows before the position of the checkpoint") from None
            self._partitions.remove(partition)
            return False
        except Exception as error:
            raise self._wrong(partition, f"raised {type(error).__name__}: {error}") from error
        if yielded is None:
            return False
        if not isinstance(yielded, tuple) or len(yielded) != 2 or not isinstance(yielded[0], (list, Mapping)):
            raise self._wrong(partition, f"yielded {yielded!r:.200}; expected a row (a dict) or a list of rows, and a position")
        rows, behind = yielded
        try:
            pack_value(behind)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._wrong(partition, f"yielded the position {behind!r:.200}, which can't be saved: {error}") from error
        partition.take([rows] if isinstance(rows, Mapping) else rows, behind)
        return True

    def _batch(self, rows: list[Any]) -> Batch:
        batch = rows_of(rows, self._name, self._columns) if not self._schema.names else self._declared(rows)
        return Batch(batch, None if self._event_time is None else self._event_time.extract(batch, self._name))

    def _declared(self, rows: list[Any]) -> pa.RecordBatch:
        """Convert rows to the columns of `schema`. Raises RecordError naming the first row that doesn't fit."""
        wrong = next((row for row in rows if not isinstance(row, Mapping)), None)
        if wrong is not None:
            raise RecordError(self._name, f"a row is {type(wrong).__name__}: yield dicts", record=wrong)
        self._refuse_undeclared(rows)
        arrays = []
        for field in self._schema:
            column, values = ValueColumn(field.name, field.type), [row.get(field.name) for row in rows]
            try:
                arrays.append(column.encoded(values))
            except REFUSALS as error:
                misfit = column.first_misfit(values)
                raise RecordError(self._name, f"a row does not fit `schema`: {misfit.problem()}", record=rows[misfit.place]) from error
        fields = [field.with_type(array.type) for field, array in zip(self._schema, arrays, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _refuse_undeclared(self, rows: list[Mapping[Any, Any]]) -> None:
        """Raise RecordError for the first row with a column that `schema` doesn't declare, since its values would be lost."""
        declared = set(self._schema.names)
        for row in rows:
            if not declared.issuperset(row):
                other = next(name for name in row if name not in declared)
                problem = f"a row has the column `{other}`, which `schema` doesn't declare (it has {', '.join(self._schema.names)})"
                raise RecordError(self._name, f"{problem}: declare it, or yield rows without it", record=row)

    def _wrong(self, partition: _Partition, problem: str) -> ConnectorError:
        return ConnectorError(f"operator `{self._name}`: the generator of partition {partition.number} {problem}")
