"""Splits: pieces of files that a worker reads one after another, and the watermark over them.

Splits are numbered (`ordinal`) in the order in which they are listed, the same in every worker. Split `o` belongs to worker `o %
parallelism`, until a reassignment (`share.py`). A reader reads its splits in that order. Its position has its unread splits, and
those that it or earlier readers have partly read (`split_position.py`).

Invariant: the watermark is at most the event time of every record that the reader has yet to emit, as long as no record is older
than `max_delay` before the newest one ahead of it in its split; and it never falls.

>>> import pyarrow as pa
>>> files = {"a": [10, 20], "b": [30], "c": [40, 50]}
>>> def open_split(split, batch_rows):
...     yield pa.record_batch({"ts": files[split.path]})
>>> splits = [Split(path, ordinal, min_time=min(files[path])) for ordinal, path in enumerate(files)]
>>> reader = SplitReader("read", splits, open_split, index=0, parallelism=2, event_time=EventTime("ts", unit="us"))
>>> reader.poll(100).times.tolist(), reader.watermark(), reader.poll(100).times.tolist(), reader.poll(100), reader.finished
([10, 20], 20, [40, 50], None, True)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.errors import ConnectorError
from ...engine.protocol.elements import MAX_TIME, MIN_TIME
from ...engine.source import SourceReader
from ...engine.time.event_time import EventTime
from ..share import Share
from .split_position import PartlyRead, SplitPosition

LEAST_DECODED = 131_072
"""The least rows to decode at once, because fewer cost more per row. A poll for fewer gets a slice."""


@dataclass(frozen=True, slots=True)
class Split:
    """A file or a part of it, read by one worker from its first row to its last.

    `row_groups` (Parquet) and `byte_range` are half-open ranges; both None means the whole file. `min_time` and `max_time` bound
    the event times inside, in microseconds; None if unknown before the split is read. `unwanted`: the flow drops all its rows, so it
    isn't read.
    """

    path: str
    ordinal: int
    row_groups: tuple[int, int] | None = None
    byte_range: tuple[int, int] | None = None
    min_time: int | None = None
    max_time: int | None = None
    unwanted: bool = False


OpenSplit = Callable[[Split, int], Iterator[pa.RecordBatch]]
"""A function that opens a split: an iterator over its rows, always in the same order, in batches of about the given number of rows.

Raises ConnectorError naming the file. A generator's `finally` closes the file: it is closed when the reader is.
"""


class SplitReader(SourceReader):
    """A reader of one worker's splits in the order of their ordinals.

    `splits` are all known splits of all workers, ascending by ordinal. With `complete=False` more may follow: a subclass overrides
    `discover`, which calls `extend` and, once nothing can follow, `complete`.
    """

    def __init__(
        self,
        operator: str,
        splits: Sequence[Split],
        open_split: OpenSplit,
        *,
        index: int,
        parallelism: int,
        event_time: EventTime | None = None,
        complete: bool = True,
    ) -> None:
        self._operator, self._splits, self._open_split, self._event_time = operator, splits, open_split, event_time
        self._complete = complete
        self._share = Share.of(index, parallelism)
        self._partly: dict[int, PartlyRead] = {}
        self._unread = UnreadSplits()
        self._open: SplitRows | None = None
        self._listed_to = 0
        self._newest_listed = MIN_TIME
        self._watermark = MIN_TIME
        self.extend(splits)

    def poll(self, max_rows: int) -> Batch | None:
        while True:
            if self._open is None and not self._open_next(max(max_rows, LEAST_DECODED)):
                return None
            assert self._open is not None
            batch = self._open.read(max_rows)
            if batch is not None:
                return batch
            self._open = None

    @property
    def finished(self) -> bool:
        return self._complete and self._open is None and not self._unread and not self._partly

    def discover(self) -> None:
        """Look for more splits. Called by `poll` when all known splits are read and more may follow; must not wait."""

    def extend(self, splits: Iterable[Split]) -> None:
        """Add newly listed splits (of all workers, ascending by ordinal, above all earlier ones)."""
        for split in splits:
            self._listed_to = split.ordinal + 1
            if split.max_time is not None:
                self._newest_listed = max(self._newest_listed, split.max_time)
            if split.ordinal in self._partly:
                self._unread.append(split, self._partly[split.ordinal].bound)
            elif split.ordinal in self._share:
                self._unread.append(split, MIN_TIME if split.min_time is None else split.min_time)

    def complete(self) -> None:
        """Declare that no more splits will follow."""
        self._complete = True

    def watermark(self) -> int:
        if self._event_time is None or self.finished:
            return MAX_TIME
        bound = self._unread.bound
        if self._open is not None:
            bound = min(bound, self._open.bound)
        if not self._complete:
            bound = min(bound, self._newest_listed - self._event_time.max_delay)
        self._watermark = max(self._watermark, bound)
        return self._watermark

    def position(self) -> dict[str, Any]:
        """Return the encoded `SplitPosition`."""
        self.watermark()
        partly = [*self._partly.values()] if self._open is None else [self._open.partly_read, *self._partly.values()]
        next_unread = self._unread.first if self._unread else self._listed_to
        return SplitPosition(
            self._share.since(next_unread),
            tuple(partly),
            self._newest_listed,
            watermark=self._watermark,
            finished=self.finished,
        ).encode()

    def seek(self, position: Any) -> None:
        sought = SplitPosition.decode(position)
        self._share, self._partly = sought.share, {split.ordinal: split for split in sought.partly}
        self._unread, self._listed_to = UnreadSplits(), 0
        self.extend(self._splits)
        self._newest_listed = max(self._newest_listed, sought.newest_listed)
        self._watermark = sought.watermark

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _open_next(self, batch_rows: int) -> bool:
        if not self._unread and not self._complete:
            self.discover()
        if not self._unread:
            if self._complete and self._partly:
                raise self._changed(next(iter(self._partly.values())), "that split no longer exists")
            return False
        while (split := self._unread.popleft()).unwanted:
            self._partly.pop(split.ordinal, None)
            if not self._unread:
                return self._open_next(batch_rows)
        partly = self._partly.pop(split.ordinal, None)
        if partly is not None and partly.path != split.path:
            raise self._changed(partly, f"this is now {split.path}")
        self._open = SplitRows(split, self._open_split(split, batch_rows), self._event_time, self._operator, partly)
        return True

    def _changed(self, partly: PartlyRead, now: str) -> ConnectorError:
        return ConnectorError(
            f"operator `{self._operator}`: the checkpoint stopped after {partly.rows} rows of split {partly.ordinal}, {partly.path}, "
            f"but {now}: the input's files have changed; restore them, or start without the checkpoint"
        )


class SplitRows:
    """An open split, which cuts its batches to size, skips rows emitted before, and tracks its event time."""

    def __init__(
        self, split: Split, batches: Iterator[pa.RecordBatch], event_time: EventTime | None, operator: str, partly: PartlyRead | None
    ) -> None:
        self._split, self._batches, self._event_time, self._operator = split, batches, event_time, operator
        self._rows_given, self._newest = (0, None) if partly is None else (partly.rows, partly.newest)
        self._skip = self._rows_given
        self._pending: Batch | None = None

    @property
    def bound(self) -> int:
        """A lower bound of the event times of all later rows, in microseconds; `MIN_TIME` if unknown."""
        known = MIN_TIME if self._split.min_time is None else self._split.min_time
        if self._newest is None or self._event_time is None:
            return known
        return max(known, self._newest - self._event_time.max_delay)

    @property
    def partly_read(self) -> PartlyRead:
        return PartlyRead(self._split.ordinal, self._split.path, self._rows_given, self._newest, self.bound)

    def read(self, max_rows: int) -> Batch | None:
        """Return the next rows, or None at the end of the split."""
        batch = self._pending or self._decode()
        if batch is None:
            return None
        self._pending = batch.slice(max_rows, batch.num_rows - max_rows) if batch.num_rows > max_rows else None
        batch = batch.slice(0, max_rows) if self._pending is not None else batch
        self._rows_given += batch.num_rows
        if batch.times is not None:
            newest = int(batch.times.max())
            self._newest = newest if self._newest is None else max(self._newest, newest)
        return batch

    def close(self) -> None:
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()

    def _decode(self) -> Batch | None:
        for rows in self._batches:
            skipped = min(self._skip, rows.num_rows)
            self._skip -= skipped
            rest = rows.slice(skipped) if skipped else rows
            if rest.num_rows:
                return Batch(rest, None if self._event_time is None else self._event_time.extract(rest, self._operator))
        if self._skip:
            raise ConnectorError(
                f"operator `{self._operator}`: {self._split.path} has {self._skip} rows fewer than when the checkpoint was taken; "
                "restore the file, or start without the checkpoint"
            )
        return None


class UnreadSplits:
    """A queue of splits that has the smallest bound of their event times, in constant amortised time."""

    def __init__(self) -> None:
        self._splits: deque[Split] = deque()
        self._minima: deque[tuple[int, int]] = deque()

    def __bool__(self) -> bool:
        return bool(self._splits)

    @property
    def first(self) -> int:
        return self._splits[0].ordinal

    @property
    def bound(self) -> int:
        return self._minima[0][1] if self._minima else MAX_TIME

    def append(self, split: Split, bound: int) -> None:
        while self._minima and self._minima[-1][1] >= bound:
            self._minima.pop()
        self._minima.append((split.ordinal, bound))
        self._splits.append(split)

    def popleft(self) -> Split:
        split = self._splits.popleft()
        if self._minima[0][0] == split.ordinal:
            self._minima.popleft()
        return split
