"""Elements that wait to be processed by a task, by channel: the channel that is furthest behind in event time goes first.

A task's event time is the minimum over its channels. Elements of a channel ahead of the others must be kept until these have
caught up. In order of arrival a source that is read faster would run away from the others, and the task would have to keep most
of its stream. Here the channels ahead wait while there is more than the task can process: they run out of credit, and their
senders slow down. As elements only wait for others that have arrived, an idle input blocks no channel.

Invariants: each channel is first in, first out. A signal at the head of its channel goes before all batches. At least one of any
`TURNS` elements is the one that has waited longest, so that no channel is skipped for long.

>>> queues = InputQueues()
>>> for channel, element in [(1, Watermark(70)), (2, Watermark(50)), (1, LatencyMark(0)), (2, LatencyMark(0))]:
...     queues.put(channel, element)
>>> [queues.take()[0] for _ in range(len(queues))]
[1, 2, 2, 1]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from ...engine.batch import Batch
from ...engine.protocol.elements import MIN_TIME, Element, End, LatencyMark, Rewind, Watermark
from ...engine.protocol.ids import ChannelId

TURNS = 4
"""One of this many elements is taken in order of arrival, independent of its channel's event time."""

WAITS = Batch, LatencyMark
"""Elements that don't precede batches: a latency mark must wait as long as records do."""

Place: TypeAlias = tuple[bool, int, int]
"""True if the head of a channel waits, the channel's event time, and the number of the head's arrival: the smallest goes first."""

MOST_TAKEN = 4
"""The most entries of the heap of places for each channel."""


JOINED = 1024
"""The most rows of batches that are processed together because they wait behind each other."""


class InputQueues:
    """The queues of one task. Used by one thread. A channel without any watermark counts as behind all others."""

    def __init__(self) -> None:
        self._queues: dict[ChannelId, deque[tuple[int, Element]]] = {}
        """The queues that are not empty; each element with the number of its arrival."""
        self._times: dict[ChannelId, int] = {}
        self._arrived = self._taken = 0
        self._by_place: list[tuple[Place, ChannelId]] = []
        self._by_arrival: list[tuple[int, ChannelId]] = []
        """Heaps of the heads of all channels; also with heads that have been taken, known by the numbers of their arrivals."""

    def __len__(self) -> int:
        return self._arrived - self._taken

    def put(self, channel: ChannelId, element: Element) -> None:
        """Add an element."""
        queue = self._queues.setdefault(channel, deque())
        queue.append((self._arrived, element))
        self._arrived += 1
        if len(queue) == 1:
            self._note_head(channel)

    def take(self) -> tuple[ChannelId, Element]:
        """Remove and return the next element and its channel; there must be one."""
        self._taken += 1
        channel = self._longest_waiting() if self._taken % TURNS == 0 else self._first_in_place()
        queue = self._queues[channel]
        _, element = queue.popleft()
        if isinstance(element, Watermark | Rewind):
            self._times[channel] = element.time
        elif isinstance(element, End):
            self._times.pop(channel, None)
        if queue:
            self._note_head(channel)
        else:
            del self._queues[channel]
        return channel, element

    def take_more(self, channel: ChannelId, batch: Batch) -> list[Batch]:
        """Remove and return the batches right behind `batch`, which was just taken, as long as they are small and of the same columns.

        Few rows at a time cost a task several times as much as many: so a worker that has fallen behind catches up.
        """
        queue, more, rows = self._queues.get(channel), list[Batch](), batch.num_rows
        while queue and type(head := queue[0][1]) is Batch and (rows := rows + head.num_rows) <= JOINED and _alike(head, batch):
            more.append(head)
            queue.popleft()
        if more:
            self._taken += len(more)
            if queue:
                self._note_head(channel)
            else:
                del self._queues[channel]
        return more

    def batches(self) -> Iterator[Batch]:
        """Yield the waiting batches."""
        return (element for queue in self._queues.values() for _, element in queue if type(element) is Batch)

    def _note_head(self, channel: ChannelId) -> None:
        arrival, head = self._queues[channel][0]
        heappush(self._by_place, ((isinstance(head, WAITS), self._times.get(channel, MIN_TIME), arrival), channel))
        heappush(self._by_arrival, (arrival, channel))
        if len(self._by_place) > MOST_TAKEN * len(self._queues):  # stale entries of heads that were taken in order of arrival
            self._by_place = [entry for entry in self._by_place if self._is_head(entry[0][2], entry[1])]
            heapify(self._by_place)

    def _first_in_place(self) -> ChannelId:
        while True:
            (_, _, arrival), channel = heappop(self._by_place)
            if self._is_head(arrival, channel):
                return channel

    def _longest_waiting(self) -> ChannelId:
        while True:
            arrival, channel = heappop(self._by_arrival)
            if self._is_head(arrival, channel):
                return channel

    def _is_head(self, arrival: int, channel: ChannelId) -> bool:
        queue = self._queues.get(channel)
        return queue is not None and queue[0][0] == arrival


def _alike(batch: Batch, other: Batch) -> bool:
    return (batch.times is None) == (other.times is None) and batch.rows.schema.equals(other.rows.schema, check_metadata=True)
