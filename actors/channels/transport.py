"""The data plane of one worker: elements in order on numbered channels, over one ROUTER and one DEALER per downstream worker.

Every channel delivers its elements once and in order, or `poll` raises. The effect of a message that breaks the protocol depends
on its sender. From an accepted peer, it means that data is lost or can't be trusted (a gap, a corrupt body, a batch without
credit): `poll` raises ProtocolError, and the job must restore its last checkpoint. From any other sender, or on a channel not
accepted from the peer, it is rejected: counted, logged once per peer, and ignored. Messages of an older attempt are dropped and
counted.

>>> from evenflow.engine.protocol.elements import Watermark
>>> security, limits = Security.generate(), ChannelLimits()
>>> with Transport("read[0]", 0, security, limits) as up, Transport("map[0]", 0, security, limits) as down:
...     down.accept(7, "read[0]")
...     up.connect(7, down.address)
...     up.send(7, Watermark(5))
...     down.poll(10)
[(7, Watermark(time=5))]
"""

from __future__ import annotations

import logging
import time
from types import TracebackType
from typing import Any, Self

import zmq

from ...engine.batch import Batch
from ...engine.errors import JobTimeoutError, ProtocolError
from ...engine.protocol.elements import Element
from ...engine.protocol.ids import Attempt, ChannelId, attempt_name
from ..clocks import Stopwatch
from .address import Address
from .credit import ChannelLimits
from .frames import MAX_FRAMES, ChannelDecoder, ChannelEncoder
from .headers import number, pack, unpack
from .in_flight import InFlightLimit
from .inbox import Inbox
from .outbox import Outbox
from .security import Security
from .sockets import Sockets, routing_id
from .waker import Waker

MAX_RECEIVED = 1_000
"""The most elements that one `poll` returns."""

GRANT_INTERVAL = 0.005
"""Seconds after which a receiver returns even a little credit: each grant wakes the sender."""

_MAX_LOGGED_PEERS = 1_000
_LOG = logging.getLogger(__name__)


class Transport:
    """The channels of worker `name` in `attempt` of its job. Used by one thread, except for `wake`.

    `host` is an address of this node that peers on other nodes can reach; `prefer_tcp` connects over TCP within the node too. All
    transports of a job have the same `security` and `limits`. Raises ClusterError if it can't listen.
    """

    def __init__(
        self, name: str, attempt: Attempt, security: Security, limits: ChannelLimits, *, host: str = "127.0.0.1", prefer_tcp: bool = False
    ) -> None:
        self.name, self.attempt = name, attempt
        self._refused = 0
        self.stale = 0
        """Messages of older attempts that were dropped."""
        self._limits = limits
        self._sockets = Sockets(name, attempt, security, host, prefer_tcp=prefer_tcp)
        self._router = self._sockets.router
        self._waker = Waker()
        self._sockets.poller.register(self._waker.fileno(), zmq.POLLIN)
        self._outboxes: dict[ChannelId, Outbox] = {}
        self._inboxes: dict[ChannelId, Inbox] = {}
        self._retiring: set[ChannelId] = set()
        self._retired: set[ChannelId] = set()
        self._blocked: set[ChannelId] = set()
        self._blocked_time = Stopwatch()
        self._owed: set[ChannelId] = set()
        self._next_grant = 0.0
        self._logged: set[bytes] = set()

    @property
    def address(self) -> Address:
        return self._sockets.address

    @property
    def refused(self) -> int:
        """The number of rejected messages (malformed, or on channels not accepted from their sender) and connections."""
        return self._refused + self._sockets.rejected

    @property
    def blocked(self) -> bool:
        """True if a batch of some channel waits for credit."""
        return bool(self._blocked)

    @property
    def blocked_channels(self) -> tuple[ChannelId, ...]:
        """The channels that wait for credit."""
        return tuple(sorted(self._blocked))

    @property
    def blocked_seconds(self) -> float:
        """The total time during which it was blocked."""
        return self._blocked_time.seconds

    @property
    def drained(self) -> bool:
        """True if everything sent was passed to ZeroMQ, so that it survives `close` for as long as that lingers."""
        return not self._blocked

    @property
    def queued(self) -> int:
        """The bytes of batches that wait for credit."""
        return sum(self._outboxes[channel].queued_bytes for channel in self._blocked)

    def connect(self, channel: ChannelId, address: Address, *, paced: bool = False) -> None:
        """Open the outgoing `channel` to the transport at `address`, which must have accepted it before the first element
        arrives.

        `paced`: its batches may be cut and held back, so that the receiver soon processes the rows in flight (`in_flight.py`).
        Raises ValueError if this transport sends on `channel` already.
        """
        if channel in self._outboxes:
            raise ValueError(f"transport `{self.name}`: channel {channel} is connected already")
        encoder = ChannelEncoder(ChannelId(number(channel, "channel")), self.attempt, self.name)
        limit = InFlightLimit() if paced else None
        self._outboxes[channel] = Outbox(self._sockets.dealer(address), encoder, self._limits, limit)

    def accept(self, channel: ChannelId, peer: str) -> None:
        """Accept elements of `channel` from the transport named `peer` only. Raises ValueError if it is accepted already."""
        if channel in self._inboxes:
            raise ValueError(f"transport `{self.name}`: channel {channel} is accepted already")
        decoder = ChannelDecoder(ChannelId(number(channel, "channel")), self.attempt)
        self._inboxes[channel] = Inbox(routing_id(peer, self.attempt), decoder, self._limits)

    def send(self, channel: ChannelId, element: Element) -> None:
        """Send `element` after the earlier ones on `channel`. Never waits: a batch without credit is queued, and sets `blocked`.

        Raises RecordError for a batch that can't be sent, ProtocolError if the receiver rejects this transport, KeyError for a
        channel that is not connected.
        """
        outbox = self._outboxes[channel]
        outbox.send(element)
        if outbox.blocked and channel not in self._blocked:
            self._blocked.add(channel)
            self._blocked_time.start()

    def listen(self, host: str) -> Address:
        """Listen at `host` too, an address of this node, for peers on other nodes; return the new address.

        Raises ClusterError if it can't listen.
        """
        self._sockets.listen(host)
        return self.address

    def retire(self, channel: ChannelId) -> None:
        """Close the channel's socket, unless other channels use it, once everything has been sent. Nothing more may be sent."""
        if channel in self._outboxes:
            self._retiring.add(channel)
            self._close_retired()

    def abandon(self, channel: ChannelId) -> None:
        """Drop the elements that wait for credit of `channel`, because its receiver has left, and retire it."""
        self._outboxes[channel].abandon()
        self._unblock(channel)
        self.retire(channel)

    def poll(self, timeout: float) -> list[tuple[ChannelId, Element]]:
        """Return received elements, in order of arrival, with their channels; waits at most `timeout` seconds for the first
        element.

        Returns early, perhaps without elements, on `wake` and when the last blocked channel has got credit. Raises ProtocolError
        when an accepted peer broke the protocol (see the module's text); this transport can then only be closed.
        """
        received: list[tuple[ChannelId, Element]] = []
        deadline = time.monotonic() + timeout
        while True:
            until = min(deadline, self._next_grant) if self._owed else deadline
            ready = self._sockets.poll(max(0.0, until - time.monotonic()))
            if self._serve(ready, received) or received:
                break
            self._grant_due()
            if time.monotonic() >= deadline:
                break
        self._grant_due()
        if self._retiring:
            self._close_retired()
        return received

    def consumed(self, channel: ChannelId, element: Element) -> None:
        """Return the credit of `element`, the oldest unconsumed one that `poll` returned for `channel`.

        Raises ValueError if `channel` has no unconsumed batch.
        """
        if type(element) is not Batch:
            return
        if self._inboxes[channel].credit.processed():
            self._grant(channel)
            self._owed.discard(channel)
        else:
            self._owed.add(channel)

    def flush(self, timeout: float) -> None:
        """Wait until everything has been sent. Received elements stay for `poll`. Raises JobTimeoutError after `timeout` seconds."""
        self._grant_owed()
        deadline = time.monotonic() + timeout
        while self._blocked:
            wait = deadline - time.monotonic()
            if wait <= 0:
                raise JobTimeoutError(
                    f"transport `{self.name}`: {self.queued:,} bytes still wait for credit on the channels {sorted(self._blocked)} "
                    f"after {timeout} s; their receivers don't process their input"
                )
            for socket in self._sockets.poll_dealers(wait):
                self._take_credit(socket)

    def wake(self) -> None:
        """Make `poll` return now, or its next call return at once. May be called by any thread, at any time."""
        self._waker.wake()

    def close(self, linger: float = 5.0) -> None:
        """Close everything; messages passed to ZeroMQ get `linger` seconds to arrive. May be called twice."""
        self._sockets.close(linger)
        self._waker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close(0 if kind else 5.0)

    def _serve(self, ready: list[tuple[Any, int]], received: list[tuple[ChannelId, Element]]) -> bool:
        """Handle the ready sockets; return True if `poll` should return even without elements."""
        blocked, woken = bool(self._blocked), False
        for source, _ in ready:
            if source is self._router:
                self._receive(received)
            elif source == self._waker.fileno():
                self._waker.clear()
                woken = True
            else:
                self._take_credit(source)
        return woken or (blocked and not self._blocked)

    def _receive(self, received: list[tuple[ChannelId, Element]]) -> None:
        receive = self._router.recv
        for _ in range(MAX_RECEIVED):
            if not _readable(self._router):
                return
            frame = receive(zmq.NOBLOCK, copy=False)
            frames = [frame]
            while frame.more:
                frame = receive(zmq.NOBLOCK, copy=False)
                if len(frames) <= MAX_FRAMES + 1:
                    frames.append(frame)
            self._take(frames, received)

    def _take(self, frames: list[Any], received: list[tuple[ChannelId, Element]]) -> None:
        """Handle a message: the sender's routing id, the header, the other frames."""
        peer = frames[0].bytes
        try:
            header = _header(frames[1:])
            channel, attempt = header[1], header[2]
            if attempt < self.attempt:
                self.stale += 1
                return
            inbox = self._inboxes.get(channel)
            if inbox is None or inbox.peer != peer:
                self._refuse(peer, f"channel {channel} was not accepted from it")
                return
            received.append((channel, inbox.take(len(frames[1]), header, frames[2:])))
        except ProtocolError as error:
            if any(inbox.peer == peer for inbox in self._inboxes.values()):
                raise ProtocolError(f"transport `{self.name}`, from {_shown(peer)}: {error}") from error
            self._refuse(peer, str(error))

    def _take_credit(self, socket: zmq.Socket[bytes]) -> None:
        """Handle the credit messages of a downstream worker: channel, attempt, batches, bytes."""
        while _readable(socket):
            frames = socket.recv_multipart(zmq.NOBLOCK)
            peer = self._sockets.peer(socket)
            try:
                self._restore(socket, frames)
            except ProtocolError as error:
                self._refuse(peer, str(error))

    def _restore(self, socket: zmq.Socket[bytes], frames: list[bytes]) -> None:
        fields = unpack(frames[0])
        if len(frames) != 1 or len(fields) != 4:
            raise ProtocolError(f"a credit message has one frame with 4 fields, got {len(frames)} with {len(fields)}")
        named, attempt, batches, size = (number(field, "credit") for field in fields)
        channel = ChannelId(named)
        if attempt < self.attempt:
            self.stale += 1
            return
        if channel in self._retired:
            return
        outbox = self._outboxes.get(channel)
        if outbox is None or outbox.socket is not socket or attempt != self.attempt:
            raise ProtocolError(
                f"credit arrived for channel {channel} of attempt {attempt_name(Attempt(attempt))}, which is not connected to it"
            )
        outbox.restore(batches, size)
        self._unblock(channel)

    def _close_retired(self) -> None:
        """Close the sockets of retired channels.

        Not called while a socket's messages are being read, because it may be the one to close.
        """
        for channel in self._retiring - self._blocked:
            socket = self._outboxes.pop(channel).socket
            self._retiring.discard(channel)
            self._retired.add(channel)
            if all(other.socket is not socket for other in self._outboxes.values()):
                self._sockets.release(socket)

    def _unblock(self, channel: ChannelId) -> None:
        if not self._outboxes[channel].blocked and channel in self._blocked:
            self._blocked.remove(channel)
            if not self._blocked:
                self._blocked_time.stop()

    def _grant_due(self) -> None:
        if self._owed and time.monotonic() >= self._next_grant:
            self._grant_owed()

    def _grant_owed(self) -> None:
        for channel in self._owed:
            self._grant(channel)
        self._owed.clear()
        self._next_grant = time.monotonic() + GRANT_INTERVAL

    def _grant(self, channel: ChannelId) -> None:
        inbox = self._inboxes[channel]
        self._router.send(inbox.peer, zmq.SNDMORE)
        self._router.send(pack((channel, self.attempt, *inbox.credit.grant())))

    def _refuse(self, peer: bytes, problem: str) -> None:
        self._refused += 1
        if peer not in self._logged and len(self._logged) < _MAX_LOGGED_PEERS:
            self._logged.add(peer)
            _LOG.warning("transport `%s` rejected a message from %s: %s", self.name, _shown(peer), problem)


def _readable(socket: zmq.Socket[bytes]) -> bool:
    """Return True if a message has arrived. This check takes a sixth of the time of a failed receive that raises `zmq.Again`."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


def _header(frames: list[Any]) -> tuple[Any, ...]:
    """Unpack the header of a message, with the numbers that route it: kind, channel, attempt, sequence. Raises ProtocolError."""
    if not frames or len(frames) > MAX_FRAMES:
        raise ProtocolError(f"a message has 1 to {MAX_FRAMES} frames, got {'more' if frames else 'none'}")
    header = unpack(frames[0].bytes)
    if len(header) < 4:
        raise ProtocolError(f"a header has at least 4 fields, got {len(header)}")
    number(header[1], "channel")
    number(header[2], "attempt")
    return header


def _shown(peer: bytes) -> str:
    return f"`{peer.decode()}`" if peer.isascii() and peer.decode().isprintable() else f"peer {peer.hex()}"
