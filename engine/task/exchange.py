"""Exchanges, which route a task's output to channels, with small buffers that keep batches full.

A buffer is sent when it has `batch_rows` rows, when its oldest batch has waited `linger`, or when the worker is idle. A watermark
or a latency mark is sent after the rows before it, but doesn't flush them, so signals never cut batches into pieces.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

import pyarrow as pa

from ..batch import Batch
from ..protocol.effects import Sent
from ..protocol.elements import MAX_TIME, MIN_TIME, Element, End, LatencyMark, Marker, Rewind, Watermark
from ..protocol.handover_step import HandoverStep
from ..protocol.ids import ChannelId
from ..types.exact import common_schema


class Buffer:
    """The batches that wait for one channel."""

    __slots__ = ("batches", "channel", "marks", "rows", "since")

    def __init__(self, channel: ChannelId) -> None:
        self.channel = channel
        self.batches: list[Batch] = []
        self.marks: list[LatencyMark] = []
        self.rows = 0
        self.since = 0.0

    def add(self, batch: Batch, now: float) -> None:
        if not self.batches:
            self.since = now
        self.batches.append(batch)
        self.rows += batch.num_rows

    def flush(self, out: list[Sent]) -> None:
        if self.batches:
            ready = self.batches if len(self.batches) == 1 else map(Batch.concat, runs(self.batches))
            out.extend(Sent(self.channel, batch) for batch in ready)
            self.batches, self.rows = [], 0
        if self.marks:
            out.extend(Sent(self.channel, mark) for mark in self.marks)
            self.marks = []


def shape(batch: Batch) -> tuple[list[str], bool]:
    """Return the properties that batches must share to be sent as one: their columns, and whether they have event times."""
    return batch.rows.schema.names, batch.times is not None


def runs(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Yield the batches in order, in the longest runs that can be sent as one batch: same shape, compatible types.

    A column of nulls is compatible with any type. Other types are never mixed, because that would convert values.
    """
    for _, alike in groupby(batches, shape):
        run: list[Batch] = []
        common = pa.schema([])
        for batch in alike:
            schema = batch.rows.schema
            merged = common_schema(common, schema) if run else schema
            if merged is None:
                yield run
                run, merged = [], schema
            run.append(batch)
            common = merged
        yield run


class Exchange(ABC):
    """The channels from one output port of this task to the workers of one downstream stage; while `paused`, nothing is sent."""

    paused = False

    def __init__(self, channels: Sequence[ChannelId], batch_rows: int) -> None:
        self.buffers = [Buffer(channel) for channel in channels]
        self.batch_rows = batch_rows
        self.watermark = MIN_TIME
        self.sent_watermark = MIN_TIME
        self._marked = 0

    def advance(self, time: int) -> None:
        """Advance event time; it is sent behind the rows before it."""
        self.watermark = time

    @abstractmethod
    def push(self, batch: Batch, now: float, out: list[Sent]) -> None:
        """Route a batch; full buffers are sent through `out`."""

    def mark(self, mark: LatencyMark, out: list[Sent]) -> None:
        """Pass a latency mark on behind the rows before it, to one channel after the other."""
        self._marked = (self._marked + 1) % len(self.buffers)
        self.buffers[self._marked].marks.append(mark)

    def flush(self, out: list[Sent]) -> None:
        """Send all waiting rows, and the newest watermark after them."""
        for buffer in self.buffers:
            buffer.flush(out)
        if self.watermark > self.sent_watermark:
            self.sent_watermark = self.watermark
            out.extend(Sent(buffer.channel, Watermark(self.sent_watermark)) for buffer in self.buffers)

    def broadcast(self, element: Element, out: list[Sent]) -> None:
        """Send a signal on every channel, after everything before it."""
        self.flush(out)
        out.extend(Sent(buffer.channel, element) for buffer in self.buffers)

    def attach(self, place: int, channel: ChannelId, out: list[Sent]) -> None:
        """Add the channel to a new worker, and tell it the current watermark. A channel that is at this place ends."""
        for buffer in self.buffers[place : place + 1]:
            buffer.flush(out)
            out.append(Sent(buffer.channel, End()))
        self.buffers[place : place + 1] = [Buffer(channel)]
        if self.sent_watermark > MIN_TIME:
            out.append(Sent(channel, Watermark(self.sent_watermark)))

    def detach(self, channels: Collection[ChannelId], out: list[Sent]) -> None:
        """End these channels, after their waiting rows."""
        for buffer in self.buffers:
            if buffer.channel in channels:
                buffer.flush(out)
                out.append(Sent(buffer.channel, End()))
        self.buffers = [buffer for buffer in self.buffers if buffer.channel not in channels]

    def rewind(self, time: int, out: list[Sent]) -> None:
        """Continue event time from `time`, which may be earlier than the last watermark.

        This worker takes over records that another had not read.
        """
        self.flush(out)
        self.watermark = self.sent_watermark = time
        out.extend(Sent(buffer.channel, Rewind(time)) for buffer in self.buffers)

    @property
    def waiting_since(self) -> float | None:
        """Return the arrival of the oldest waiting batch, None if nothing waits."""
        return min([b.since for b in self.buffers if b.batches], default=None)

    @property
    def waits(self) -> bool:
        """True if a flush would send anything."""
        if self.watermark > self.sent_watermark:
            return True
        for buffer in self.buffers:  # noqa: SIM110 -- called after every step; a generator would cost three times as much
            if buffer.batches or buffer.marks:
                return True
        return False

    def _add(self, buffer: Buffer, batch: Batch, now: float, out: list[Sent]) -> None:
        buffer.add(batch, now)
        if buffer.rows >= self.batch_rows:
            buffer.flush(out)


class KeyedExchange(Exchange):
    """An exchange to a stage with keyed state, whose workers need markers."""

    def flush(self, out: list[Sent]) -> None:
        if not self.paused:
            super().flush(out)

    def switch(self, step: HandoverStep, out: list[Sent]) -> None:
        """Send markers to the workers that give or take state in `step`, after everything before; rows follow by its table."""
        affected = sorted({worker for move in step.moves for worker in (move.source, move.target)})
        for worker in affected:
            self.buffers[worker].flush(out)
            out.append(Sent(self.buffers[worker].channel, Marker(step.version)))
        self.paused = step.pause


class BroadcastExchange(KeyedExchange):
    """An exchange that sends every record to every worker.

    `untimed`: its records have no event time, so no worker waits for them.
    """

    def __init__(self, channels: Sequence[ChannelId], batch_rows: int, *, untimed: bool) -> None:
        super().__init__(channels, batch_rows)
        self._untimed = untimed
        if untimed:
            self.watermark = MAX_TIME

    def advance(self, time: int) -> None:
        if not self._untimed:
            super().advance(time)

    def push(self, batch: Batch, now: float, out: list[Sent]) -> None:
        for buffer in self.buffers:
            self._add(buffer, batch, now, out)


class RebalanceExchange(Exchange):
    """An exchange that deals rows out to the workers in turn, so that their numbers of rows differ by one at most.

    Dealing whole batches would not do: a sender waits for the one worker that still has a large one, while others have none.
    """

    _next = 0

    def push(self, batch: Batch, now: float, out: list[Sent]) -> None:
        workers, start = len(self.buffers), 0
        each, more = divmod(batch.num_rows, workers)
        for turn in range(workers if each else max(more, 1)):
            length = each + (turn < more)
            self._add(self.buffers[(self._next + turn) % workers], batch.slice(start, length), now, out)
            start += length
        self._next = (self._next + more) % workers
