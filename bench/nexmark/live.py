"""NexMark's events in real time: an event is emitted once it is due by the clock, also by a job that resumes from a savepoint.

So a stall counts for every result that it delays, and a job that was stopped catches up.

>>> source = LiveEvents("bid", begun=1000.0, rate=100.0, events=50, clock=lambda: 1000.1)
>>> reader = source.reader(0, 1)
>>> reader.poll(100).rows["seq"].to_pylist(), reader.poll(100), source.rate
([4, 5, 6, 7, 8, 9], None, 92.0)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import evenflow as ef

from ...connectors.nexmark.numbering import EPOCH, PLACES, Numbering, StreamName
from ...connectors.nexmark.settings import NexmarkSettings
from ...connectors.nexmark.source import BASE_TIME, STREAMS, NexmarkRows
from ...engine.batch import Batch
from ...engine.protocol.elements import MAX_TIME
from ...engine.source import Source, SourceReader
from .queries.events import Events, side_table

NO_HOT = 1
"""One in this many bids and auctions goes to another than the hot key: all of them."""

POLL = 0.002
"""Seconds between two polls for events that are due."""


class LiveEvents(Source):
    """The rows of a stream without hot keys; `rate` events of all streams a second from the time `begun` on (seconds since the epoch).

    Event time advances as fast, from `base_time` (ms). `events`: their number, None for no end. `readers` can't be changed.
    """

    guarantee = "exactly once (rows are a function of seq)"
    timed = True

    def __init__(
        self,
        stream: StreamName,
        *,
        begun: float,
        rate: float,
        events: int | None = None,
        base_time: int = BASE_TIME,
        readers: int = 1,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.parallelism = stream, readers
        self.rate = rate * len(PLACES[stream]) / EPOCH
        self._begun, self._events_rate, self._events, self._clock = begun, rate, events, clock
        self._numbering = Numbering(stream)
        self._content = NexmarkRows(NexmarkSettings(0, base_time, rate, NO_HOT, NO_HOT, NO_HOT), self._numbering)

    def reader(self, index: int, parallelism: int) -> LiveReader:
        return LiveReader(self, index, parallelism)

    def due(self) -> int:
        """Return the number of rows due by now, of all readers."""
        passed = max(0, int((self._clock() - self._begun) * self._events_rate))
        return self._numbering.rows_before(passed if self._events is None else min(passed, self._events))

    def ended(self, row: int) -> bool:
        """Return True if the stream ends before row `row`."""
        return self._events is not None and row >= self._numbering.rows_before(self._events)

    def batch(self, first: int, end: int, step: int) -> Batch:
        """Return every `step`-th row from `first` on, before `end`."""
        return self._content.batch(np.arange(first, end, step))

    def time_of(self, row: int) -> int:
        """Return the event time of a row, microseconds."""
        return self._content.earliest(row)

    def write(self, folder: Path) -> None:
        """Write all rows as Parquet, for an oracle."""
        assert self._events is not None
        folder.mkdir(parents=True)
        pq.write_table(pa.Table.from_batches([self.batch(0, self._numbering.rows_before(self._events), 1).rows]), folder / "0.parquet")


class LiveReader(SourceReader):
    """Reads every `step`-th row from `index` on."""

    def __init__(self, source: LiveEvents, index: int, step: int) -> None:
        self._source, self._next, self._step = source, index, step

    def poll(self, max_rows: int) -> Batch | None:
        first, end = self._next, min(self._source.due(), self._next + self._step * max_rows)
        if end <= first:
            return None
        self._next += len(range(first, end, self._step)) * self._step
        return self._source.batch(first, end, self._step)

    @property
    def finished(self) -> bool:
        return self._source.ended(self._next)

    def watermark(self) -> int:
        return MAX_TIME if self.finished else self._source.time_of(self._next)

    def position(self) -> int:
        return self._next

    def seek(self, position: Any) -> None:
        self._next = position

    def backlog(self) -> int:
        return len(range(self._next, self._source.due(), self._step))

    def ready_in(self) -> float:
        return POLL


def live(flow: ef.Dataflow, **arguments: Any) -> Events:
    """Return the three streams in real time; `arguments` of `LiveEvents`."""

    def stream(name: StreamName) -> Callable[[], ef.Stream]:
        return lambda: flow.read(LiveEvents(name, **arguments))

    person, auction, bid = (stream(name) for name in STREAMS)
    return Events(person, auction, bid, side_table())
