"""The sending end of one channel: messages are sent in order, and a batch waits while the channel has no credit.

A signal needs no credit, but never overtakes a batch. On a channel of records a batch is sent in pieces that the receiver
processes quickly (`in_flight.py`); on one of state it is sent whole.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, NamedTuple

import zmq

from ...engine.batch import Batch
from ...engine.errors import ProtocolError
from ...engine.protocol.elements import Element
from .credit import ChannelLimits, SenderCredit
from .frames import ChannelEncoder
from .in_flight import InFlightLimit

COPY_BELOW = 65_536
"""Smaller frames are copied, because sharing their memory with ZeroMQ takes more processor time (measured)."""


class _Message(NamedTuple):
    """An encoded message. `size` in bytes and `rows` of a batch; both 0 for a signal."""

    size: int
    rows: int
    frames: list[Any]


class Outbox:
    """The outgoing channel over `socket`, which other channels to the same worker share; without a `limit` batches stay whole."""

    def __init__(self, socket: zmq.Socket[bytes], encoder: ChannelEncoder, limits: ChannelLimits, limit: InFlightLimit | None) -> None:
        self.socket = socket
        self.credit = SenderCredit(limits)
        self._in_flight = limit
        self._encoder = encoder
        self._waiting: deque[Element] = deque()
        self._head: _Message | None = None

    @property
    def blocked(self) -> bool:
        """True if a batch, and every later element, waits for credit."""
        return self._head is not None

    @property
    def queued_bytes(self) -> int:
        """The approximate size of the waiting elements."""
        return sum(element.nbytes for element in self._waiting if type(element) is Batch) + (self._head.size if self._head else 0)

    def send(self, element: Element) -> None:
        """Send an element, or queue it. Raises RecordError for a batch that can't be sent, ProtocolError if the receiver rejects this
        process.
        """
        self._waiting.append(element)
        if self._head is None:
            self._send_waiting()

    def restore(self, batches: int, size: int) -> None:
        """Add returned credit, and send what it allows. Raises ProtocolError for credit that was never spent."""
        self.credit.restore(batches, size)
        if self._in_flight is not None:
            self._in_flight.done(batches, time.monotonic())
        self._send_waiting()

    def abandon(self) -> None:
        """Drop waiting elements, because the receiver has left."""
        self._waiting.clear()
        self._head = None

    def _send_waiting(self) -> None:
        while self._head is not None or self._waiting:
            head = self._head = self._head or self._next()
            if not self._admits(head):
                return
            self._head = None
            self._leave(head)

    def _next(self) -> _Message:
        """Return the next message. Batches are cut only now, when the receiver's speed is known."""
        element = self._waiting.popleft()
        if type(element) is not Batch:
            return _Message(0, 0, self._encoder.encode(element))
        if self._in_flight is not None and element.num_rows > (most := self._in_flight.piece):
            self._waiting.appendleft(element.slice(most, element.num_rows - most))
            element = element.slice(0, most)
        frames = self._encoder.encode(element)
        return _Message(sum(map(len, frames)), element.num_rows, frames)

    def _admits(self, message: _Message) -> bool:
        if not message.size:
            return True
        return self.credit.admits(message.size) and (self._in_flight is None or self._in_flight.admits(message.rows))

    def _leave(self, message: _Message) -> None:
        if message.size:
            self.credit.spend(message.size)
            if self._in_flight is not None:
                self._in_flight.spend(message.rows, time.monotonic())
        send, last = self.socket.send, len(message.frames) - 1
        try:
            for index, frame in enumerate(message.frames):
                send(frame, zmq.NOBLOCK | (zmq.SNDMORE if index < last else 0), copy=len(frame) < COPY_BELOW)
        except zmq.Again as error:  # ZeroMQ queues without limit, but it has dropped the queue of a peer that sends it away
            raise ProtocolError(f"channel {self._encoder.channel}: its receiver rejected the connection: not a key of its job") from error
