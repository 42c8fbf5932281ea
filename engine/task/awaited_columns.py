"""The hold of a join's event time until the columns of both sides are known, so that rows without a partner have all columns.

Mostly the plan knows them. Otherwise, as behind a function without `schema=`, the first rows of a side show them, or the side
ends without any. Invariant: two workers that hand a key over have the same event time when its state changes hands. So batches
behind a marker count once the hand-over is done. A new worker may know less than the workers that give it keys, because an input
that showed the columns has ended, or showed them before the job was restored. The state that it gets brings the columns that they
know, and their event time.

>>> awaited = AwaitedColumns((RIGHT,))
>>> awaited.hold([1, 2])
True
>>> awaited.note(1, LEFT), awaited.hold([1, 2]), awaited.hold([1])
(None, True, False)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..joins.sides import LEFT, RIGHT, Side
from ..protocol.ids import ChannelId

PATIENCE = 10.0
"""The seconds after which a join that still waits for columns is reported."""


class AwaitedColumns:
    """The sides whose columns are `missing`: the join must know them."""

    def __init__(self, missing: Sequence[Side]) -> None:
        self._missing = set(missing)
        self._sides: dict[ChannelId, Side] = {}
        self._behind: dict[ChannelId, Side] = {}
        self._since: float | None = None

    def note(self, channel: ChannelId, side: Side, *, behind: bool = False) -> None:
        """Note a batch of this side on `channel`; `behind`: it follows a marker of a hand-over that isn't done."""
        (self._behind if behind else self._sides)[channel] = side
        if not behind:
            self._missing.discard(side)

    def thaw(self, unknown: Sequence[Side]) -> None:
        """Note that the hand-over is done; `unknown`: the sides whose columns neither rows nor state have told."""
        for channel, side in self._behind.items():
            self.note(channel, side)
        self._behind.clear()
        self._missing.intersection_update(unknown)

    def hold(self, channels: Iterable[ChannelId]) -> bool:
        """Return True while a side is missing that may still arrive on one of `channels`, those that have not ended."""
        if self._missing:
            sides = {self._sides.get(channel) for channel in channels}
            if None not in sides:
                self._missing &= sides
        return bool(self._missing)

    def problem(self, now: float) -> str | None:
        """Return a report about a join that has waited for long, once."""
        if not self._missing:
            return None
        if self._since is None:
            self._since = now
        if now - self._since < PATIENCE:
            return None
        self._since = float("inf")
        which = " and ".join(f"its {side.dealt} stream" for side in (LEFT, RIGHT) if side in self._missing)
        return f"it waits for the first row of {which}, to know its columns: declare them with schema= where its rows are created"
