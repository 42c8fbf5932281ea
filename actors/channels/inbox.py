"""The receiving end of one channel: its sender, the next expected message, and the credit owed to the sender."""

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
    """The incoming channel from the transport with the routing id `peer`."""

    def __init__(self, peer: bytes, decoder: ChannelDecoder, limits: ChannelLimits) -> None:
        self.peer = peer
        self.credit = ReceiverCredit(limits)
        self._decoder = decoder

    def take(self, header_size: int, header: tuple[Any, ...], frames: Sequence[Any]) -> Element:
        """Decode a message; `frames` are ZeroMQ's.

        Raises ProtocolError for a wrong one, after which the channel can't be read.
        """
        element = self._decoder.decode(header, [_aligned(frame) for frame in frames])
        if type(element) is Batch:
            self.credit.arrived(header_size + sum(map(len, frames)))
        return element


def _aligned(frame: Any) -> Any:
    """Return the frame's memory if it is large and aligned for Arrow, else a copy: ZeroMQ's read buffer doesn't align small
    frames.
    """
    if len(frame) < COPY_BELOW:
        return frame.bytes
    buffer = pa.py_buffer(frame)
    return buffer if buffer.address % 8 == 0 else frame.bytes
