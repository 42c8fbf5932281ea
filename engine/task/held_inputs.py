"""Inputs whose elements wait until others have caught up, so that records keep their order when another worker sends them.

A worker that takes the place of another sends on a channel of its own, and so does a source worker that continues with another's
splits. What comes on that channel was read later than what the other has sent. So it waits until the other's channel has ended, or
has told where it continues (`Rewind`).

Invariant: the elements of a channel are released in the order of their arrival.

>>> from evenflow.engine.protocol.elements import Watermark
>>> inputs = HeldInputs()
>>> inputs.hold(ChannelId(3), behind=[ChannelId(1), ChannelId(2)])
>>> inputs.keep(ChannelId(3), Watermark(50)), inputs.keep(ChannelId(1), Watermark(40))
(True, False)
>>> inputs.caught_up(ChannelId(1)), inputs.caught_up(ChannelId(2))
([], [(3, Watermark(time=50))])
"""

from __future__ import annotations

from collections.abc import Iterable

from ..protocol.elements import Element
from ..protocol.ids import ChannelId


class HeldInputs:
    """The held inputs of one task."""

    def __init__(self) -> None:
        self._behind: dict[ChannelId, set[ChannelId]] = {}
        self._kept: dict[ChannelId, list[Element]] = {}

    @property
    def count(self) -> int:
        """Return the number of elements that wait."""
        return sum(map(len, self._kept.values()))

    def hold(self, channel: ChannelId, behind: Iterable[ChannelId]) -> None:
        """Keep what arrives on `channel` until all of `behind` have caught up."""
        if others := set(behind):
            self._behind[channel] = others

    def holds(self, channel: ChannelId) -> bool:
        """Return True if elements of the channel are kept now."""
        return channel in self._behind

    def keep(self, channel: ChannelId, element: Element) -> bool:
        """Keep an element if its channel is held; return True if so."""
        if channel not in self._behind:
            return False
        self._kept.setdefault(channel, []).append(element)
        return True

    def caught_up(self, channel: ChannelId) -> list[tuple[ChannelId, Element]]:
        """Note that a channel has ended or told where it continues. Return the elements that no longer wait, by channel."""
        released: list[tuple[ChannelId, Element]] = []
        for held, others in list(self._behind.items()):
            others.discard(channel)
            if not others:
                del self._behind[held]
                released += [(held, element) for element in self._kept.pop(held, ())]
        return released
