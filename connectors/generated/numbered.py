"""Sources whose rows are a function of their number: 0, 1, 2 and so on, paced or as fast as the job accepts them.

Worker `index` of `parallelism` emits the rows with `number mod parallelism == index`, ascending. After a reassignment
(`share.py`) it emits several such progressions, each ascending.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...engine.batch import Batch
from ...engine.columns import Columns
from ...engine.protocol.elements import MAX_TIME
from ...engine.source import Source, SourceReader
from ..share import ENDLESS, Share, share_out

CREATED = "created"
"""The optional column of the time at which a row was due."""


class NumberedRows(ABC):
    """A pure function from a row's number to its content, with the event time in `time_column` if that is set. Picklable."""

    time_column: ClassVar[str | None] = None

    @abstractmethod
    def batch(self, numbers: npt.NDArray[np.int64]) -> Batch:
        """Return the rows of `numbers` (at least one, ascending) with their event times."""

    @abstractmethod
    def earliest(self, number: int) -> int:
        """Return a lower bound (microseconds) of the event times of all rows from `number` on."""


class NumberedSource(Source):
    """A source of `total` rows, endless if it is None; `rate` rows per second in total, None for as many as the job accepts.

    `begun`: the time of `clock` at which the first row is due; None: at the first poll of a reader.
    """

    may_change = frozenset({"rate", "every", "rows_per_batch"})
    guarantee = "exactly once (rows are a function of seed and seq; seeks to the checkpointed rows)"

    def __init__(
        self,
        name: str,
        rows: NumberedRows,
        rate: float | None,
        every: float,
        total: int | None,
        rows_per_batch: int,
        created: bool,
        clock: Callable[[], float],
        begun: float | None = None,
    ) -> None:
        self.name, self.rate, self._rows, self._every = name, rate, rows, every
        self.time_column = rows.time_column
        self._end = ENDLESS if total is None else total
        self._rows_per_batch, self._created, self._clock, self._begun = rows_per_batch, created, clock, begun

    def known_columns(self) -> Columns:
        known = Columns.of(self._rows.batch(np.zeros(1, np.int64)).rows.schema)
        return known.having({CREATED: pa.int64()}) if self._created else known

    def continuing(self, other: Source) -> Source:
        return self

    def reader(self, index: int, parallelism: int) -> NumberedReader:
        pace = None if self.rate is None else Pace(self.rate / parallelism, self._every, self._clock, self._begun)
        return NumberedReader(self._rows, Share.of(index, parallelism), self._end, pace, self._rows_per_batch, self._created)

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        return [share.encode() for share in share_out([Share.decode(position) for position in positions], parallelism, self.name)]

    def earliest(self, position: Any) -> int:
        first = Share.decode(position).lowest
        return MAX_TIME if first >= self._end else self._rows.earliest(first)


class Pace:
    """A schedule of `rate` rows per second in batches of `every` seconds. It starts at `begun`, or at the first call."""

    def __init__(self, rate: float, every: float, clock: Callable[[], float], begun: float | None = None) -> None:
        self._rate, self._clock = rate, clock
        self._batch = max(1, int(rate * every))
        self._begun = None if begun is None else (begun, time.time_ns() + int((begun - clock()) * 1e9))

    def due(self, given: int) -> int:
        """Return how many rows to emit now, after `given`: 0 until a small batch is due."""
        rows = self.behind(given)
        return rows if rows >= self._batch else 0

    def behind(self, given: int) -> int:
        """Return how many rows are due by now and not among the `given`."""
        return int(self._elapsed() * self._rate) - given

    def wait(self, given: int) -> float:
        """Return the seconds until `due(given)` is above 0."""
        return max(1e-6, (given + self._batch) / self._rate - self._elapsed())

    def due_at(self, given: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the time (wall clock, ns) at which each row, counted from 0, was due. Call it after `due`."""
        wall = 0 if self._begun is None else self._begun[1]
        return wall + (given * (1e9 / self._rate)).astype(np.int64)

    def _elapsed(self) -> float:
        now = self._clock()
        if self._begun is None:
            self._begun = (now, time.time_ns())
        return now - self._begun[0]


class NumberedReader(SourceReader):
    """A reader of the rows of its share below `end`, always from the progression that is furthest behind.

    Its position is the rest of the share.
    """

    def __init__(self, rows: NumberedRows, share: Share, end: int, pace: Pace | None, rows_per_batch: int, created: bool) -> None:
        self._rows, self._share, self._end = rows, share, end
        self._pace, self._rows_per_batch, self._created = pace, rows_per_batch, created
        self._given = 0

    def poll(self, max_rows: int) -> Batch | None:
        rows = self._share.first
        count = min(max_rows, self._rows_per_batch, len(range(rows.start, min(rows.stop, self._end), rows.step)))
        if self._pace is not None:
            count = min(count, self._pace.due(self._given))
        if count <= 0:
            return None
        batch = self._rows.batch(np.arange(rows.start, rows.start + count * rows.step, rows.step))
        if self._created:
            created = pa.array(self._due_at(np.arange(self._given, self._given + count)))
            batch = batch.with_rows(batch.rows.append_column(CREATED, created))
        self._share = self._share.without_first(count)
        self._given += count
        return batch

    @property
    def finished(self) -> bool:
        return self._share.lowest >= self._end

    def watermark(self) -> int:
        return MAX_TIME if self.finished else self._rows.earliest(self._share.lowest)

    def position(self) -> list[Any]:
        return self._share.encode()

    def seek(self, position: Any) -> None:
        self._share, self._given = Share.decode(position), 0

    def backlog(self) -> int | None:
        return None if self._pace is None else self._pace.behind(self._given)

    def ready_in(self) -> float:
        return 0.0 if self._pace is None else self._pace.wait(self._given)

    def _due_at(self, given: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.full(len(given), time.time_ns()) if self._pace is None else self._pace.due_at(given)
