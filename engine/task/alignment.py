"""The alignment of barriers: elements behind a barrier wait until the barrier has arrived on every input.

(Carbone et al., "Lightweight asynchronous snapshots for distributed dataflows", 2015.) An input that has ended counts as having
every barrier.

Invariant: the elements of a channel are released in the order of their arrival.

>>> from evenflow.engine.protocol.elements import Watermark
>>> alignment = Alignment("count-0")
>>> alignment.arrive(1, Barrier(7))
>>> alignment.hold(1, Watermark(50)), alignment.complete({1, 2}), alignment.complete({1})
(None, None, Barrier(checkpoint=7, base=0, last=False))
>>> alignment.release()
[(1, Watermark(time=50))]
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ProtocolError
from ..protocol.elements import Barrier, Element
from ..protocol.ids import ChannelId


class Alignment:
    """The alignment of one checkpoint at a time.

    `channels`: those on which its barrier has arrived; empty between checkpoints.
    """

    def __init__(self, task: str) -> None:
        self._task = task
        self.channels: set[ChannelId] = set()
        self._barrier: Barrier | None = None
        self._held: dict[ChannelId, list[Element]] = {}

    @property
    def begun(self) -> bool:
        """True if a barrier is awaited on some channel."""
        return self._barrier is not None

    @property
    def held(self) -> int:
        """Return the number of elements that wait."""
        return sum(map(len, self._held.values()))

    def arrive(self, channel: ChannelId, barrier: Barrier) -> None:
        """Note that a barrier has arrived. Raises ProtocolError if another one is awaited."""
        if self._barrier is not None and barrier != self._barrier:
            problem = f"barrier {barrier.checkpoint} on channel {channel} while aligning {self._barrier.checkpoint}"
            raise ProtocolError(f"task {self._task}: {problem}")
        self._barrier = barrier
        self.channels.add(channel)

    def hold(self, channel: ChannelId, element: Element) -> None:
        """Keep an element behind the barrier."""
        self._held.setdefault(channel, []).append(element)

    def complete(self, inputs: Iterable[ChannelId]) -> Barrier | None:
        """Return the barrier, once it has arrived on all `inputs` that have not ended."""
        return self._barrier if self.channels.issuperset(inputs) else None

    def release(self) -> list[tuple[ChannelId, Element]]:
        """End the alignment and return the held elements, by channel; they may contain the next barrier."""
        held, self._held = self._held, {}
        self._barrier = None
        self.channels.clear()
        return [(channel, element) for channel, elements in held.items() for element in elements]
