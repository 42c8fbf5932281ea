"""The event time of a task: the minimum over the watermarks of its input channels.

Invariant: it only rises, except in a source task that takes over earlier records. A channel that is frozen at its marker counts
with its time of then, even once it has ended. While inputs are expected to rewind, event time stands still.

>>> time = TaskEventTime(channels=[1, 2])
>>> time.observe(1, 50), time.observe(2, 20), time.over_channels
(None, None, 20)
>>> time.rises_to(20), time.rises_to(20)
(True, False)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..protocol.elements import MIN_TIME
from ..protocol.ids import ChannelId


class TaskEventTime:
    """The event time of a task in microseconds, `watermark`. `channels`: the newest watermark of each that has not ended."""

    def __init__(self, channels: Iterable[ChannelId]) -> None:
        self.channels = dict.fromkeys(channels, MIN_TIME)
        self.watermark = MIN_TIME
        self._frozen: dict[ChannelId, int] = {}
        self._rewinding: set[ChannelId] = set()
        self._expecting = False

    def add(self, channel: ChannelId) -> None:
        """Add the channel of a worker that joins."""
        self.channels[channel] = MIN_TIME

    def observe(self, channel: ChannelId, watermark: int) -> None:
        """Note a watermark; a lower one than before changes nothing."""
        self.channels[channel] = max(self.channels[channel], watermark)

    def end(self, channel: ChannelId) -> None:
        """Remove `channel`, which has ended."""
        del self.channels[channel]
        self._rewinding.discard(channel)

    def freeze(self, channel: ChannelId) -> None:
        """Count `channel` from now on with its present time, until `thaw`."""
        self._frozen[channel] = self.channels[channel]

    def thaw(self) -> None:
        """Count every channel with its own time."""
        self._frozen.clear()

    @property
    def frozen(self) -> bool:
        """True if a channel is frozen."""
        return bool(self._frozen)

    @property
    def frozen_channels(self) -> Collection[ChannelId]:
        """Return the frozen channels."""
        return self._frozen.keys()

    @property
    def counted(self) -> set[ChannelId]:
        """Return the channels that count: those that have not ended, or had not when they were frozen."""
        return {*self.channels, *self._frozen}

    def expect(self, channels: Iterable[ChannelId]) -> None:
        """Stand still until these inputs have rewound or ended."""
        self._rewinding = {channel for channel in channels if channel in self.channels}
        self._expecting = True

    @property
    def awaited(self) -> Collection[ChannelId]:
        """Return the inputs that are expected to rewind or to end."""
        return self._rewinding

    def rewind(self, channel: ChannelId, time: int) -> None:
        """Continue the input from `time`, which may be earlier than its watermark.

        The task's watermark stays: senders rewind together, and none behind the earliest of their watermarks.
        """
        self.channels[channel] = time
        self._rewinding.discard(channel)

    def all_rewound(self) -> bool:
        """Return True, once, when all expected inputs have rewound."""
        if not self._expecting or self._rewinding:
            return False
        self._expecting = False
        return True

    @property
    def over_channels(self) -> int:
        """Return the minimum over the inputs, at least one."""
        if not self._frozen:
            return min(self.channels.values())
        going = [time for channel, time in self.channels.items() if channel not in self._frozen]
        return min([*going, *self._frozen.values()])

    def rises_to(self, time: int) -> bool:
        """Advance to `time`; return True if it is later than the present watermark."""
        if time <= self.watermark or self._expecting:
            return False
        self.watermark = time
        return True
