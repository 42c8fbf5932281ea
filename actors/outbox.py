"""The sending end of one channel: messages leave in order, and a batch waits while the channel has no credit.

A signal needs no credit, but never overtakes a batch. On a channel of records a batch leaves in pieces that the receiver is soon through
with (`drain.py`); on one of state it leaves whole.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import zmq

from ..engine.batch import Batch
from ..engine.elements import Element
from .credit import ChannelLimits, SenderCredit
from .drain import DrainWindow
from .frames import ChannelEncoder

COPY_BELOW = 65_536
"""Frames under this many bytes are copied: below it, sharing memory with ZeroMQ costs more processor time than the copy (measured)."""


class _Message(NamedTuple):
    """`size` in bytes and `rows` of a batch; both 0 for a signal."""

    size: int
    rows: int
    frames: list[Any]


class Outbox:
    """One outgoing channel over `socket`, which other channels to the same worker share; without a `window` batches stay whole."""

    def __init__(self, socket: zmq.Socket[bytes], encoder: ChannelEncoder, limits: ChannelLimits, window: DrainWindow | None) -> None:
        self.socket = socket
        self.credit = SenderCredit(limits)
        self.queued_bytes = 0
        self._window = window
        self._encoder = encoder
        self._waiting: deque[_Message] = deque()

    @property
    def blocked(self) -> bool:
        """Whether a batch waits for credit (and whatever came after it waits too)."""
        return bool(self._waiting)

    def send(self, element: Element) -> None:
        """Send it, or keep it in its place. Raises RecordError for a batch that can't be sent."""
        if type(element) is not Batch:
            self._put(_Message(0, 0, self._encoder.encode(element)))
            return
        for piece in self._pieces(element):
            frames = self._encoder.encode(piece)
            self._put(_Message(sum(map(len, frames)), piece.num_rows, frames))

    def restore(self, batches: int, size: int) -> None:
        """Credit has come back: send what it allows. Raises ProtocolError for credit that was never spent."""
        self.credit.restore(batches, size)
        if self._window is not None:
            self._window.done(batches, time.monotonic())
        while self._waiting and self._admits(self._waiting[0]):
            message = self._waiting.popleft()
            self.queued_bytes -= message.size
            self._leave(message)

    def abandon(self) -> None:
        """The receiver has left: what waits for its credit is void."""
        self._waiting.clear()
        self.queued_bytes = 0

    def _pieces(self, batch: Batch) -> Iterator[Batch]:
        most = batch.num_rows if self._window is None else self._window.piece
        if batch.num_rows <= most:
            return iter((batch,))
        return (batch.slice(start, min(most, batch.num_rows - start)) for start in range(0, batch.num_rows, most))

    def _put(self, message: _Message) -> None:
        if self._waiting or not self._admits(message):
            self._waiting.append(message)
            self.queued_bytes += message.size
        else:
            self._leave(message)

    def _admits(self, message: _Message) -> bool:
        if not message.size:
            return True
        return self.credit.admits(message.size) and (self._window is None or self._window.admits(message.rows))

    def _leave(self, message: _Message) -> None:
        if message.size:
            self.credit.spend(message.size)
            if self._window is not None:
                self._window.sent(message.rows, time.monotonic())
        send, last = self.socket.send, len(message.frames) - 1
        for index, frame in enumerate(message.frames):
            send(frame, zmq.SNDMORE if index < last else 0, copy=len(frame) < COPY_BELOW)
