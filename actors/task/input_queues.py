"""What has come in for a task and waits for its turn, by channel: the channel that is furthest behind in event time goes first.

A task's event time is the minimum over its channels. What comes on a channel ahead of the others must be kept until they have caught up. In
order of arrival a source that happens to be read faster would run away from the others, and the task would come to keep most of its stream.
Here those ahead wait while there is more than the task can take: they run out of credit, and their senders slow down. As nothing waits for
what has not come, an idle input stops nobody.

Invariants: each channel is first in, first out. A signal at the head of its channel goes before all batches. Of any `TURNS` elements at
least one is the one that has waited longest, so that no channel is passed over for long.

>>> queues = InputQueues()
>>> for channel, element in [(1, Watermark(70)), (2, Watermark(50)), (1, LatencyMark(0)), (2, LatencyMark(0))]:
...     queues.put(channel, element)
>>> [queues.take()[0] for _ in range(len(queues))]
[1, 2, 2, 1]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ...engine.batch import Batch
from ...engine.protocol.elements import MIN_TIME, Element, End, LatencyMark, Rewind, Watermark
from ...engine.protocol.ids import ChannelId

TURNS = 4
"""Of this many elements one is taken in order of arrival, whatever its channel's event time."""

WAITS = Batch, LatencyMark
"""What doesn't go before batches: it tells nothing, and is to wait as long as records do."""


class InputQueues:
    """Used by one thread. A channel without any watermark counts as behind all others."""

    def __init__(self) -> None:
        self._queues: dict[ChannelId, deque[tuple[int, Element]]] = {}
        """Those that are not empty; each element with the number of its arrival."""
        self._times: dict[ChannelId, int] = {}
        self._arrived = self._taken = 0

    def __len__(self) -> int:
        return self._arrived - self._taken

    def put(self, channel: ChannelId, element: Element) -> None:
        """An element has come in."""
        self._queues.setdefault(channel, deque()).append((self._arrived, element))
        self._arrived += 1

    def take(self) -> tuple[ChannelId, Element]:
        """The element whose turn it is, and its channel; there must be one."""
        self._taken += 1
        channel = min(self._queues, key=self._arrival if self._taken % TURNS == 0 else self._place)
        queue = self._queues[channel]
        _, element = queue.popleft()
        if not queue:
            del self._queues[channel]
        if isinstance(element, Watermark | Rewind):
            self._times[channel] = element.time
        elif isinstance(element, End):
            self._times.pop(channel, None)
        return channel, element

    def batches(self) -> Iterator[Batch]:
        """The batches that wait."""
        return (element for queue in self._queues.values() for _, element in queue if type(element) is Batch)

    def _place(self, channel: ChannelId) -> tuple[bool, int, int]:
        arrival, head = self._queues[channel][0]
        return isinstance(head, WAITS), self._times.get(channel, MIN_TIME), arrival

    def _arrival(self, channel: ChannelId) -> int:
        return self._queues[channel][0][0]
