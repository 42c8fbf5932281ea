"""The description of a channel: plain data, made by the plan and sent to the workers at its ends."""

from __future__ import annotations

from dataclasses import dataclass

from ..protocol.ids import ChannelId, WorkerId


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """A channel for records between two workers (their names)."""

    id: ChannelId
    sender: WorkerId
    receiver: WorkerId
