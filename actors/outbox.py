"""The sending end of one channel: messages leave in order, and a batch waits while the channel has no credit.

A signal needs no credit, but never overtakes a batch.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import zmq

from ..engine.batch import Batch
from ..engine.elements import Element
from .credit import ChannelLimits, SenderCredit
from .frames import ChannelEncoder

COPY_BELOW = 65_536
"""Frames under this many bytes are copied: below it, sharing memory with ZeroMQ costs more processor time than the copy (measured)."""


class Outbox:
    """One outgoing channel over `socket`, which other channels to the same worker share."""

    def __init__(self, socket: zmq.Socket[bytes], encoder: ChannelEncoder, limits: ChannelLimits) -> None:
        self.socket = socket
        self.credit = SenderCredit(limits)
        self.queued_bytes = 0
        self._encoder = encoder
        self._waiting: deque[tuple[int, list[Any]]] = deque()

    @property
    def blocked(self) -> bool:
        """Whether a batch waits for credit (and whatever came after it waits too)."""
        return bool(self._waiting)

    def send(self, element: Element) -> None:
        """Send it, or keep it in its place. Raises RecordError for a batch that can't be sent."""
        frames = self._encoder.encode(element)
        size = sum(map(len, frames)) if type(element) is Batch else 0
        if self._waiting or (size and not self.credit.admits(size)):
            self._waiting.append((size, frames))
            self.queued_bytes += size
        else:
            self._leave(size, frames)

    def restore(self, batches: int, size: int) -> None:
        """Credit has come back: send what it allows. Raises ProtocolError for credit that was never spent."""
        self.credit.restore(batches, size)
        while self._waiting:
            size, frames = self._waiting[0]
            if size and not self.credit.admits(size):
                return
            self._waiting.popleft()
            self.queued_bytes -= size
            self._leave(size, frames)

    def abandon(self) -> None:
        """The receiver has left: what waits for its credit is void."""
        self._waiting.clear()
        self.queued_bytes = 0

    def _leave(self, size: int, frames: list[Any]) -> None:
        if size:
            self.credit.spend(size)
        send, last = self.socket.send, len(frames) - 1
        for index, frame in enumerate(frames):
            send(frame, zmq.SNDMORE if index < last else 0, copy=len(frame) < COPY_BELOW)
