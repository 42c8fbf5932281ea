"""The receiving end of one channel: who may send on it, what comes next, and what it is owed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.protocol.elements import Element
from .credit import ChannelLimits, ReceiverCredit
from .frames import ChannelDecoder
from .outbox import COPY_BELOW


class Inbox:
    """One incoming channel from the transport with the routing id `peer`."""

    def __init__(self, peer: bytes, decoder: ChannelDecoder, limits: ChannelLimits) -> None:
        self.peer = peer
        self.credit = ReceiverCredit(limits)
        self._decoder = decoder

    def take(self, header_size: int, header: tuple[Any, ...], frames: Sequence[Any]) -> Element:
        """The element of a message; `frames` are ZeroMQ's. Raises ProtocolError for a wrong one: the channel then can't be read on."""
        element = self._decoder.decode(header, [_aligned(frame) for frame in frames])
        if type(element) is Batch:
            self.credit.arrived(header_size + sum(map(len, frames)))
        return element


def _aligned(frame: Any) -> Any:
    """The frame's memory if it is large and aligned for Arrow, else a copy: small frames lie anywhere in ZeroMQ's read buffer."""
    if len(frame) < COPY_BELOW:
        return frame.bytes
    buffer = pa.py_buffer(frame)
    return buffer if buffer.address % 8 == 0 else frame.bytes
