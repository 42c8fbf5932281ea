"""The channels for state between two workers of an operator: their ids follow from the numbers of the workers.

No plan lists them, because there is one for each pair of workers, and few pairs exchange state. Invariant: no two pairs have the same
channel, and no channel of records has such an id.

>>> channel = state_channel(WorkerNumber(3), WorkerNumber(1025))
>>> is_state_channel(channel), receiver_of(channel)
(True, 1025)
>>> is_state_channel(ChannelId(1_000_000))
False
"""

from __future__ import annotations

from .ids import ChannelId, WorkerNumber

_BITS = 31
_FIRST = 1 << 2 * _BITS
"""Above all channels of records, and small enough for an int64 (`actors/channels/headers.py`)."""


def state_channel(sender: WorkerNumber, receiver: WorkerNumber) -> ChannelId:
    """Return the channel for state from one worker to another."""
    return ChannelId(_FIRST | sender << _BITS | receiver)


def is_state_channel(channel: ChannelId) -> bool:
    """Return True if the channel is for state rather than records."""
    return channel >= _FIRST


def receiver_of(channel: ChannelId) -> WorkerNumber:
    """Return the worker to which a channel for state leads."""
    return WorkerNumber(channel & ((1 << _BITS) - 1))
