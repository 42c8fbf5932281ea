"""The event time of a task: the minimum over the watermarks of its input channels.

Invariant: it rises only, but for a source task that takes over earlier records. A channel that is frozen at its marker counts with the time
that it had then, even once it has ended. While the inputs are expected to tell their times anew, event time stands still.

>>> time = EventTime(channels=[1, 2])
>>> time.hear(1, 50), time.hear(2, 20), time.over_channels
(None, None, 20)
>>> time.rises_to(20), time.rises_to(20)
(True, False)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..protocol.elements import MIN_TIME
from ..protocol.ids import ChannelId


class EventTime:
    """Times in microseconds. `channels`: the newest watermark of each that has not ended; `watermark`: what the task has come to."""

    def __init__(self, channels: Iterable[ChannelId]) -> None:
        self.channels = dict.fromkeys(channels, MIN_TIME)
        self.watermark = MIN_TIME
        self._frozen: dict[ChannelId, int] = {}
        self._rewinding: set[ChannelId] = set()
        self._expecting = False

    def add(self, channel: ChannelId) -> None:
        """A worker joins that sends on `channel`."""
        self.channels[channel] = MIN_TIME

    def hear(self, channel: ChannelId, watermark: int) -> None:
        """A watermark has come; one that goes back changes nothing."""
        self.channels[channel] = max(self.channels[channel], watermark)

    def end(self, channel: ChannelId) -> None:
        """Nothing follows on `channel`."""
        del self.channels[channel]
        self._rewinding.discard(channel)

    def freeze(self, channel: ChannelId) -> None:
        """Count `channel` from now on as it is, until `thaw`."""
        self._frozen[channel] = self.channels[channel]

    def thaw(self) -> None:
        """Count every channel as it is."""
        self._frozen.clear()

    @property
    def frozen(self) -> bool:
        """Whether a channel is counted as it was."""
        return bool(self._frozen)

    @property
    def frozen_channels(self) -> Collection[ChannelId]:
        """The channels that are counted as they were."""
        return self._frozen.keys()

    @property
    def counted(self) -> set[ChannelId]:
        """The channels that count: those that have not ended, or had not when they were frozen."""
        return {*self.channels, *self._frozen}

    def expect(self, channels: Iterable[ChannelId]) -> None:
        """Stand still until these inputs have told their times anew, or have ended."""
        self._rewinding = {channel for channel in channels if channel in self.channels}
        self._expecting = True

    def rewind(self, channel: ChannelId, time: int) -> None:
        """The input goes on from `time`, which may be earlier than what it said. What the task has come to stays: senders rewind together,
        and none behind the earliest of what they had all told.
        """
        self.channels[channel] = time
        self._rewinding.discard(channel)

    def all_rewound(self) -> bool:
        """Whether all that were expected have told their times; true once."""
        if not self._expecting or self._rewinding:
            return False
        self._expecting = False
        return True

    @property
    def over_channels(self) -> int:
        """The minimum over the inputs, of which there is at least one."""
        if not self._frozen:
            return min(self.channels.values())
        going = [time for channel, time in self.channels.items() if channel not in self._frozen]
        return min([*going, *self._frozen.values()])

    def rises_to(self, time: int) -> bool:
        """Go on to `time`; whether it is later than what the task has come to."""
        if time <= self.watermark or self._expecting:
            return False
        self.watermark = time
        return True
